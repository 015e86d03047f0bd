"""What an operator is stands in its record alone."""

from __future__ import annotations

import re
from pathlib import Path

import normspec
from normspec.spec.operators import OPERATORS

PACKAGE = Path(normspec.__file__).parent
#: A comparison with the name of an operator, which asks for what the record should say.
ASKED = re.compile(rf'(==|!=|\bin\b)\s*\(?\s*"({"|".join(OPERATORS)})"')


def test_no_file_asks_for_an_operator_by_name():
    """A difference between operators is a field of the record, or a property of it."""
    rooms = ("spec", "reference", "adapters", "conformance")
    asking = [
        f"{path.relative_to(PACKAGE)}:{number}"
        for room in rooms
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if ASKED.search(line)
    ]
    assert asking == []
