"""The message of an assertion that fails."""

from __future__ import annotations

import numpy as np

from ..conformance.reporting.numbers import ratio_text
from ..spec import requirement
from .cause import Mistake
from .judgement import Judgement

#: Up to this many groups or places are listed one by one.
_NAMED = 6


def message(judgement: Judgement, causes: tuple[Mistake, ...], allowed: str) -> str:
    """The worst element, how many are outside and where, and the mistake or the option that would allow the result."""
    worst = judgement.worst
    assert worst is not None
    several = judgement.outside != 1
    head = (
        f"{judgement.name} of {judgement.op}: {judgement.outside:,} of {judgement.judged:,} elements"
        f" {'lie' if several else 'lies'} outside the error envelope"
    )
    rows = [
        ("worst", f"{judgement.name}[{', '.join(map(str, worst.index))}], {_times(worst.ratio)}"),
        ("expected", _number(worst.expected)),
        ("got", _number(worst.got)),
        ("bound", f"{worst.bound:.3g}" if np.isfinite(worst.bound) else "it cannot be a finite number"),
        ("where", _where(judgement)),
        ("judged", _judged(judgement)),
    ]
    if allowed:
        rows.append(("allowed", f"with {allowed}: pass that if it is how the function computes"))
    for place, cause in enumerate(causes):
        rows.append(("cause" if place == 0 else "or", f"{cause.sentence} (normspec explain {cause.fault})"))
    if causes:
        rows.append(("right", f"{requirement(causes[0].requirement).sentence} ({causes[0].requirement})"))
    return "\n".join([head, *(f"  {label:<10}{text}" for label, text in rows)])


def _times(ratio: float) -> str:
    return f"{ratio_text(ratio)} times the bound away" if np.isfinite(ratio) else "where no bound is wide enough"


def _number(value: float) -> str:
    return f"{value:.9g}" if abs(value) < 1e16 else f"{value:.9e}"


def _where(judgement: Judgement) -> str:
    places = f"at {_listed(judgement.places_outside, 'place')}"
    if not judgement.groups_outside.size:
        return places
    groups = _listed(judgement.groups_outside, "group")
    return f"in {groups} of {judgement.of_groups:,}; {places} within a group"


def _listed(numbers: np.ndarray, what: str) -> str:
    """Numbers in order: a few one by one, a run by its first and last, or their count and ends."""
    first, last = int(numbers[0]), int(numbers[-1])
    if len(numbers) == 1:
        return f"{what} {first}"
    if last - first + 1 == len(numbers):
        return f"{what}s {first} to {last}"
    if len(numbers) <= _NAMED:
        return f"{what}s {', '.join(str(int(n)) for n in numbers)}"
    return f"{len(numbers):,} {what}s from {first} to {last}"


def _judged(judgement: Judgement) -> str:
    if judgement.groups == judgement.of_groups:
        return f"all {judgement.of_groups:,} groups" if judgement.of_groups > 1 else "the one group"
    return f"{judgement.groups:,} of {judgement.of_groups:,} groups, drawn with seed {judgement.seed}"
