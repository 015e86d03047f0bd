"""Causes of several bindings and dtypes, merged where they are one mistake."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from ...adapters.dtypes import DTYPES
from .alike import in_one
from .cause import Cause


def merged_causes(causes: Iterable[Cause]) -> list[Cause]:
    """One cause for each mistake of a target, however many bindings and dtypes show it."""
    merged: list[Cause] = []
    for cause in causes:
        place = next((place for place, one in enumerate(merged) if _is_same_mistake(one, cause)), None)
        if place is None:
            merged.append(cause)
        else:
            merged[place] = _merged_two(merged[place], cause)
    return merged


def _is_same_mistake(one: Cause, other: Cause) -> bool:
    """Whether two causes are one mistake. In 16 bits, two mistakes may look alike that another dtype tells apart."""
    here, there = set(one.faults), set(other.faults)
    if (one.target, one.op, one.convention) != (other.target, other.op, other.convention) or bool(here) != bool(there):
        return False
    return here <= there or here >= there if here else in_one(one.sentence, other.sentence) is not None


def _merged_two(one: Cause, other: Cause) -> Cause:
    clearer = min(one, other, key=lambda cause: len(cause.faults))
    parts: dict[str, tuple[str, ...]] = {
        name: tuple(dict.fromkeys((*getattr(one, name), *getattr(other, name))))
        for name in ("bindings", "dtypes", "explains")
    }
    parts["dtypes"] = tuple(sorted(parts["dtypes"], key=tuple(DTYPES).index))
    sentence = clearer.sentence if clearer.is_known else in_one(one.sentence, other.sentence) or clearer.sentence
    return attrs.evolve(clearer, sentence=sentence, **parts)
