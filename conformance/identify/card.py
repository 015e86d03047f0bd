"""Cards: what one binding does in each respect, and the measurement that shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs

from ..compare.table import Kind


@attrs.frozen
class Line:
    """One respect, and what the binding does in it."""

    key: str
    subject: str
    title: str
    #: The dtype of the data it was measured on.
    dtype: str
    text: str
    kind: Kind
    #: The measurement that shows it.
    how: str
    #: The numbers behind it.
    evidence: Mapping[str, Any]


@attrs.frozen
class Card:
    """All lines about one binding."""

    target: str
    binding: str
    op: str
    framework: str
    version: str
    dtype: str
    device: str
    formula: str
    lines: tuple[Line, ...]

    @property
    def failing(self) -> str:
        """How most calls fail, if none returned a result; empty if one did."""
        failed = [line for line in self.lines if line.kind in (Kind.RAISES, Kind.LOST)]
        failures = Counter(line.evidence.get("reason", line.text) for line in failed)
        # A missing function for a derivative is known without a call, so it does not count as a result.
        returned = any(line.kind is Kind.MEASURED and line.subject != "derivatives" for line in self.lines)
        return "" if returned or not failures else failures.most_common(1)[0][0]

    @property
    def established(self) -> int:
        """The number of lines that say what the binding does."""
        return 0 if self.failing else sum(line.kind not in (Kind.UNCLEAR, Kind.LOST) for line in self.lines)

    def line(self, key: str) -> Line:
        """The line of this key. Raises KeyError."""
        for line in self.lines:
            if line.key == key:
                return line
        raise KeyError(key)


@attrs.frozen
class Cards:
    """The cards of one target. An Identification can also be written as text and JSON (identification.py)."""

    cards: tuple[Card, ...]
    #: True if the run was interrupted; only complete cards are here.
    partial: bool = False
    seconds: float = 0.0
    exit_status: int = 0
