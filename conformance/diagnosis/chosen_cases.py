"""Cases chosen from many: an even spread, and every kind of values, whatever the order of the deck."""

from __future__ import annotations

from collections.abc import Sequence

from ..cases.description import Description

#: The seed of the deck from which fresh cases are chosen: no user gives it.
FRESH_SEED = 1 << 65


def evenly_spread(cases: Sequence[Description], number: int) -> list[Description]:
    """About this many of the cases, from first to last."""
    return list(cases[:: max(1, len(cases) // number)])


def of_every_kind(cases: Sequence[Description], number: int) -> list[Description]:
    """
    About this many of the cases, evenly spread, and the first of each kind of values that these lack.

    A few cases of a deck have the largest values, and a few the smallest. They alone may tell one mistake from another.
    """
    chosen = evenly_spread(cases, number)
    kinds = {kind for one in chosen for kind in _kinds(one)}
    for one in cases:
        if not kinds.issuperset(new := _kinds(one)):
            kinds |= new
            chosen.append(one)
    return chosen


def _kinds(case: Description) -> set[tuple[object, ...]]:
    """How the values of a case are drawn, each with what it is drawn for; and which parameters are None together."""
    drawn = {("gamma", case.gamma), ("beta", case.beta), ("g", case.cotangent), ("logits", case.logits)}
    return {*drawn, *(("group", name) for name, _ in case.groups), ("none", case.gamma == "none", case.beta == "none")}
