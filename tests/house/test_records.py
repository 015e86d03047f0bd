"""The properties of an operator are only in its record."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import normspec
from normspec.spec.operators import OPERATORS, Groups, Operator, enter, files_of

PACKAGE = Path(normspec.__file__).parent
#: A comparison with the name of an operator; it should use the record instead.
ASKED = re.compile(rf'(==|!=|\bin\b)\s*\(?\s*"({"|".join(OPERATORS)})"')


def test_no_file_asks_for_an_operator_by_name():
    """A difference between operators is a field of the record, or a property of it."""
    rooms = ("spec", "reference", "adapters", "studies", "conformance", "testing")
    asking = [
        f"{path.relative_to(PACKAGE)}:{number}"
        for room in rooms
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if ASKED.search(line)
    ]
    assert asking == []


@pytest.mark.parametrize(("name", "prefix"), [("layer_norm", "ZZ"), ("zz_norm", "LN")])
def test_an_operator_from_elsewhere_takes_no_name_and_no_prefix_of_another(name: str, prefix: str) -> None:
    """Entering it raises, and those that there are stay."""
    before = dict(OPERATORS)
    with pytest.raises(ValueError, match="is taken: there is layer_norm"):
        enter(Operator(name, prefix, ("x",), Groups.LAST, file=__file__, page="# nothing"))
    assert dict(OPERATORS) == before


def test_no_operator_of_the_house_has_a_file_to_be_loaded() -> None:
    """An operator that every process knows is not loaded a second time."""
    assert files_of(OPERATORS) == ()


@pytest.mark.parametrize("name", ["Rows", "Probe", "Finding", "Section", "Comparison"])
def test_a_name_that_is_met_often_names_one_thing(name):
    """One class has each of these names, in all rooms."""
    rooms = ("spec", "reference", "adapters", "conformance", "testing")
    found = [
        file.relative_to(PACKAGE).as_posix()
        for room in rooms
        for file in sorted((PACKAGE / room).rglob("*.py"))
        if re.search(rf"^class {name}\b", file.read_text(), re.MULTILINE)
    ]
    assert len(found) == 1, found
