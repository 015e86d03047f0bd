"""Each row of the table shows the one thing that it is about, and no other row does."""

from __future__ import annotations

import pytest

from normspec.conformance.compare.catalogue import probes_of
from normspec.conformance.compare.run import compare

from .planted import BASES, PLANTED, Plain, target

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

CASES = [(operator, row, change) for row, operators, change in PLANTED for operator in operators]


@pytest.mark.parametrize(("operator", "row", "change"), CASES, ids=[f"{operator}-{row}" for operator, row, _ in CASES])
def test_one_changed_semantic_shows_in_its_row_alone(operator, row, change):
    """A function with one change differs from the plain function only in the row that names the change."""
    table = compare([target(operator), target(operator, change, "changed")], op=operator)
    assert {found.key: [cell.text for cell in found.cells] for _, found in table.differences}.keys() == {row}


@pytest.mark.parametrize("operator", BASES)
def test_every_row_has_something_planted(operator):
    """A row that nothing has ever changed proves nothing."""
    assert {row for row, operators, _ in PLANTED if operator in operators} == {p.key for p in probes_of(operator)}


@pytest.mark.parametrize("operator", BASES)
def test_every_cell_of_a_plain_function_is_measured(operator):
    """Nothing is left out where a target has everything."""
    table = compare([target(operator), target(operator, Plain, "again")], op=operator)
    cells = [cell for section in table.sections for row in section.rows for cell in row.cells]
    assert {cell.kind.value for cell in cells} == {"measured"}
    assert not table.differences
