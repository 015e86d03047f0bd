"""
The cards of a target, as text and as JSON.

The JSON is one object: "schema", "versions", "platform", "partial", "seconds", "exit_status", and "cards", each with

    target, binding, op, framework, version, dtype, device
    formula   of y; empty if it is not a known one
    lines     key (stable; the key of the row of `normspec compare`), subject, title, dtype, text, kind ("measured",
              "raises", "unsupported", "unclear", "lost"), how, and evidence (the numbers behind it)
"""

from __future__ import annotations

import json
import platform
import sys
from typing import Any

import attrs

from ..reporting.card import as_text
from ..reporting.json_values import plain
from ..reporting.versions import versions
from .card import Card, Cards

#: Raised by one when a reader of the old JSON would misread the new one.
SCHEMA = 1


@attrs.frozen(repr=False)
class Identification(Cards):
    """The cards of one target."""

    def __str__(self) -> str:
        """The text that a terminal shows, without colour."""
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
