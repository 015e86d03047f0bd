"""Arrays of the caller that a call changes, and what they hold afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ....reference.formats import FORMATS
from ....spec.errors import CALL_FAILED
from ...cases.case import Case
from ...judging.subject import Subject
from .formula_steps import Array, FormulaSteps

#: Cases that are tried.
_MOST_CASES = 4


def overwritten_in_words(subject: Subject, cases: Sequence[Case]) -> str:
    """Which of the caller's arrays a call changes, and what they hold afterwards; empty if it changes none."""
    found: dict[str, set[str]] = {}
    for case in [one for one in cases if one.x.size > 1][:_MOST_CASES]:
        for what, holds in _changed(subject, case):
            found.setdefault(what, set()).add(holds)
    # The content of an array is told only if it is the same in every case.
    return "; ".join(
        f"{what}: {next(iter(holds))}" if len(holds) == 1 and "" not in holds else what for what, holds in found.items()
    )


def _changed(subject: Subject, case: Case) -> Iterator[tuple[str, str]]:
    """Each array that a call changes, and what it holds afterwards."""
    try:
        evaluation = subject.start(case)
        outputs = evaluation.outputs()
        after = evaluation.inputs()
        yield from _changes_in_words(case, case.inputs, after, "the call", outputs)
        if subject.forward_only:
            return
        pulled = evaluation.pull(case.g)
        results = {**outputs, **subject.named_gradients(pulled.gradients(), case)}
        yield from _changes_in_words(case, after, evaluation.inputs(), "taking gradients", results)
        yield from _changes_in_words(case, {"g": case.g}, {"g": pulled.cotangent()}, "taking gradients", results)
    except CALL_FAILED:
        return


def _changes_in_words(
    case: Case,
    before: Mapping[str, Array | None],
    after: Mapping[str, Array | None],
    when: str,
    results: Mapping[str, Array],
) -> Iterator[tuple[str, str]]:
    for name, now in after.items():
        was = before.get(name)
        if was is not None and now is not None and not np.array_equal(was, now, equal_nan=True):
            what = "the cotangent" if name == "g" else name
            yield f"{what} is changed by {when}", _content_in_words(case, name, was, now, results)


def _content_in_words(case: Case, name: str, was: Array, now: Array, results: Mapping[str, Array]) -> str:
    """What an array holds afterwards, in words; "" if it is none of what is looked for."""
    for result, value in results.items():
        if value.shape == now.shape and np.array_equal(value, now, equal_nan=True):
            return f"it holds {result} afterwards"
    if not now.any():
        return "it holds zeros afterwards"
    if (now == 1).all():
        return "it holds ones afterwards"
    old, new = was.astype(np.float64), now.astype(np.float64)
    for factor in (2, -1, 0.5):
        if np.array_equal(old * factor, new):
            return f"it holds {factor:g} times what it held"
    steps = FormulaSteps.of(case)
    if name == "x" and not case.record.composed and case.record.centred:
        rows = steps.rows(old)
        # The mean's sums, in any order that rounds about log2(n) times, and the difference.
        spread = np.abs(rows).max() * (2 + 2 * np.log2(steps.n)) * FORMATS[now.dtype.name].unit_roundoff
        if np.abs(steps.rows(new) - (rows - rows.mean(axis=1, keepdims=True))).max() <= spread:
            return "it holds x - mean afterwards"
    return ""
