"""Derivatives of derivatives, and of forward mode, on large data: a path for it has derivatives of its own."""

from __future__ import annotations

from typing import Any

import attrs

from ...spec.operators import OPERATORS, Groups
from .description import Description, Kinds

#: The values of a long group, past 4096, and the number of many groups, past 1024.
_LONG, _MANY = 4100, 1030

_NORMAL: Kinds = (("normal", 0), ("near_eps", 1), ("normal", 1))

#: Parts whose second derivatives are not zero. Those of blocks with long groups have no matrix over the features.
_CURVED = {"residual": "square", "pre_norm": "square", "post_norm": "square", "highway": "chain", "mhc": "mixed"}


def large_derivatives_deck(operator: str, requirements: frozenset[str]) -> list[Description]:
    """The cases of an operator with long groups and with many, for these requirements."""
    record = OPERATORS[operator]
    fields = {"eps": 0.5, "recipe": _CURVED[operator], "count": 4} if record.composed else {"eps": 0.5}
    plain = Description(operator, 6, _NORMAL, requirements=requirements, only=True)
    return [attrs.evolve(plain, **fields, **shape) for shape in _shapes(operator)]


def _shapes(operator: str) -> list[dict[str, Any]]:
    record = OPERATORS[operator]
    long, many = {"n": _LONG, "groups": _NORMAL[:2]}, {"n": 8, "repeat": _MANY}
    if record.groups is Groups.CHANNEL:
        around = {"samples": 2, "rank": 4}
        return [{**long, **around}, {**many, **around}, {**many, **around, "training": False}]
    if record.groups is Groups.SAMPLE_CHANNELS:
        around = {"samples": 2, "rank": 4, **({} if record.channels_alone else {"width": 2})}
        return [{**long, **around}, {**many, **around}]
    return [long, many] if record.normalises else [many]
