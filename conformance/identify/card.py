"""
Cards: what one binding does in each respect, and by which measurement that is established.

The JSON is one object: "schema", "versions", "platform", "partial", "seconds", "exit_status", and "cards", each with

    target, binding, op, framework, version, dtype, device
    formula   of y, as far as it is known; empty where it is none of the known ones
    lines     key (stable, that of the row of `normspec compare`), subject, title, dtype, text, kind ("measured",
              "raises", "unsupported", "unclear", "lost"), how, and evidence, the numbers behind it
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping
from typing import Any

import attrs

from ..compare.table import Kind
from ..reporting.json_values import plain
from ..reporting.versions import versions

#: Raised by one when a reader of the old form of the JSON would misread the new one.
SCHEMA = 1


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
    #: By which measurement it is established.
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

    def line(self, key: str) -> Line:
        """The line of this key. Raises KeyError."""
        for line in self.lines:
            if line.key == key:
                return line
        raise KeyError(key)


@attrs.frozen(repr=False)
class Identification:
    """The cards of one target."""

    cards: tuple[Card, ...]
    #: True when the run was interrupted: the cards that are complete are here.
    partial: bool = False
    seconds: float = 0.0
    exit_status: int = 0

    def __str__(self) -> str:
        """What a terminal shows of it, without colour."""
        from ..reporting.card import as_text

        return as_text(self, getattr(sys.stdout, "encoding", None) or "utf-8")

    def __repr__(self) -> str:
        """The formulas."""
        return f"<Identification: {'; '.join(one.formula or one.op for one in self.cards) or 'nothing'}>"

    def card(self, op: str) -> Card:
        """The card of an operator. Raises KeyError."""
        for card in self.cards:
            if card.op == op:
                return card
        raise KeyError(op)

    def to_json(self) -> str:
        """All cards as strict JSON, with the evidence of every line."""
        document = {
            "schema": SCHEMA,
            "versions": versions(),
            "platform": platform.platform(),
            "partial": self.partial,
            "seconds": plain(self.seconds),
            "exit_status": self.exit_status,
            "cards": [_card(card) for card in self.cards],
        }
        return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _card(card: Card) -> dict[str, Any]:
    lines = [{**attrs.asdict(line), "kind": line.kind.value, "evidence": plain(line.evidence)} for line in card.lines]
    return {**attrs.asdict(card, recurse=False), "lines": lines}
