"""Arrays of the caller that a call changes, and what they hold afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ....reference.formats import FORMATS
from ....spec.errors import CALL_FAILED
from ...cases.case import Case
from ...judging.subject import Subject
from .formula_steps import FormulaSteps

Array = np.ndarray

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
        yield from _changes_in_words(case, after, "the call", outputs)
        if subject.forward_only:
            return
        pulled = evaluation.pull(case.g)
        gradients = subject.named_gradients(pulled.gradients(), case)
        known = {name: value for name, value in after.items() if value is not None}
        yield from _changes_in_words(case, evaluation.inputs(), "taking gradients", {**outputs, **gradients}, known)
        now = pulled.cotangent()
        if not np.array_equal(now, case.g, equal_nan=True):
            held = _content_in_words(case, "g", case.g, now, {**outputs, **gradients})
            yield "the cotangent is changed by taking gradients", held
    except CALL_FAILED:
        return


def _changes_in_words(
    case: Case,
    after: dict[str, Array | None],
    when: str,
    results: dict[str, Array],
    before: dict[str, Array] | None = None,
) -> Iterator[tuple[str, str]]:
    for name, now in after.items():
        was = (before or case.inputs).get(name)
        if was is None or now is None or np.array_equal(was, now, equal_nan=True):
            continue
        yield f"{name} is changed by {when}", _content_in_words(case, name, was, now, results)


def _content_in_words(case: Case, name: str, was: Array, now: Array, results: dict[str, Array]) -> str:
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
