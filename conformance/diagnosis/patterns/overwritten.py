"""Arrays of the caller that a call changes, and what they hold afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ....reference.formats import FORMATS
from ....spec.errors import CALL_FAILED
from ...cases.case import Case
from ...checks.derived import affine_names
from ...checks.later_calls import different_values
from ...judging.subject import Subject
from .formula_steps import Array, FormulaSteps

#: Cases that are tried besides the shown ones, each with its parameters and without.
_MOST_CASES = 4
#: What an array holds is told if so many cases agree: in one, many things may hold the same.
_MIN_AGREEING = 2


def overwritten_in_words(subject: Subject, cases: Sequence[Case], shown: Sequence[Case] = ()) -> str:
    """
    Which of the caller's arrays a call changes, and what they hold afterwards; empty if it changes none.

    ``shown``: the cases that show the violation. What is said of an array has to hold in these, too.
    """
    found: dict[str, list[list[str]]] = {}
    for case in _tried(cases, shown):
        for what, contents in _changed(subject, case):
            found.setdefault(what, []).append(contents)
    return "; ".join(f"{what}{_told(contents)}" for what, contents in found.items())


def _tried(cases: Sequence[Case], shown: Sequence[Case]) -> Iterator[Case]:
    for case in shown:
        yield from (case, different_values(case))
    for case in [one for one in cases if one.x.size > 1][:_MOST_CASES]:
        yield case
        if names := affine_names(case):
            yield case.replace(**dict.fromkeys(names))


def _told(contents: Sequence[Sequence[str]]) -> str:
    """What an array holds in every case; empty if that is not one thing, or if too few cases show it."""
    held = [one for one in contents[0] if all(one in others for others in contents)]
    return f": {held[0]}" if held and len(contents) >= _MIN_AGREEING else ""


def _changed(subject: Subject, case: Case) -> Iterator[tuple[str, list[str]]]:
    """Each array that a call changes, and all that may be said of what it holds afterwards."""
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
) -> Iterator[tuple[str, list[str]]]:
    for name, now in after.items():
        was = before.get(name)
        if was is not None and now is not None and not np.array_equal(was, now, equal_nan=True):
            what = "the cotangent" if name == "g" else name
            yield f"{what} is changed by {when}", [*_contents_in_words(case, name, was, now, results)]


def _contents_in_words(case: Case, name: str, was: Array, now: Array, results: Mapping[str, Array]) -> Iterator[str]:
    """All that is true of what an array holds afterwards, of what is looked for, the most telling first."""
    for result, value in results.items():
        if value.shape == now.shape and np.array_equal(value, now, equal_nan=True):
            yield f"it holds {result} afterwards"
    if not now.any():
        yield "it holds zeros afterwards"
    if (now == 1).all():
        yield "it holds ones afterwards"
    old, new = was.astype(np.float64), now.astype(np.float64)
    for factor in (2, -1, 0.5):
        if np.array_equal(old * factor, new):
            yield f"it holds {factor:g} times what it held"
    centred = {"x": case.record.centred, "g": case.record.normalises}
    if centred.get(name) and not case.record.composed:
        steps = FormulaSteps.of(case)
        rows = steps.rows(old)
        # The mean's sums, in any order that rounds about log2(n) times, and the difference.
        spread = np.abs(rows).max() * (2 + 2 * np.log2(steps.n)) * FORMATS[now.dtype.name].unit_roundoff
        if np.abs(steps.rows(new) - (rows - rows.mean(axis=1, keepdims=True))).max() <= spread:
            yield "it holds x - mean afterwards" if name == "x" else "it holds g - mean(g) afterwards"
