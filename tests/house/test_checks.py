"""Each requirement's id is at its check, so that a reader's search finds it."""

from __future__ import annotations

import ast
from pathlib import Path

from normspec.conformance.checks.catalogue import checks_of
from normspec.spec.operators import OPERATORS

#: Files that name ids without checking them: the operators of an id, and what a layer's seams can show.
ELSEWHERE = {"registry.py", "seams.py"}


def strings(file: Path) -> set[str]:
    """The string literals of a file, the constant parts of f-strings left out."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    within = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in within)
    return {node.value for node in found if isinstance(node.value, str)}


def test_every_id_stands_as_a_literal_at_its_check(checkout):
    """A search for an id in quotes finds its check: no id is put together from parts."""
    files = {file for file in (checkout / "conformance" / "checks").glob("*.py") if file.name not in ELSEWHERE}
    written = set().union(*map(strings, files))
    checked = {check.requirement for operator in OPERATORS for check in checks_of(operator)}
    assert checked - written == set()


def test_a_requirement_about_gradients_needs_them():
    """Of a function without gradients it is unsupported, without a call: those with a G, and others."""
    for operator in OPERATORS:
        about = [check for check in checks_of(operator) if "-G" in check.requirement]
        assert about
        assert [check.requirement for check in about if not check.gradient] == []
