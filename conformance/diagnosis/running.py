"""
Why results of batch_norm are wrong: a new running variance by its weight, or because y's variance is wrong; y, because
training reads the running statistics.
"""

from __future__ import annotations

import numpy as np

from ..cases.case import Case
from ..checks.received import RelatedCall
from ..judging.subject import Subject
from .answers import CLEARLY_WRONG
from .question import results_if_any

_MEAN, _VARIANCE = "new_running_mean", "new_running_var"


def has_the_weight_of_the_mean(subject: Subject, case: Case) -> bool | None:
    """Whether the new running variance is the formula's, with the weight that the new running mean has."""
    if not _updates(case):
        return None
    outputs, exact = subject.outputs(case), subject.truth(case).outputs()
    moved, truly = ((value - _old(case, _MEAN)) for value in (outputs[_MEAN].astype(np.float64), exact[_MEAN].hi))
    best = int(np.argmax(np.abs(truly)))
    if not truly[best]:
        return None
    factor = moved[best] / truly[best]
    old, change = _old(case, _VARIANCE), exact[_VARIANCE].hi - _old(case, _VARIANCE)
    unsure = 2 * subject.bound(case, _MEAN)(False)[best] / abs(truly[best]) * np.abs(change)
    return _seen(subject, case, old + factor * change, unsure * max(1.0, abs(factor)))


def is_of_the_variance_of_y(subject: Subject, case: Case) -> bool | None:
    """Whether the new running variance is the formula's, with the variance that y was divided by."""
    if not _updates(case) or case.layout.size < 2:
        return None
    bare = case.replace(gamma=None, beta=None)
    rows = case.layout.rows(case.x).astype(np.float64)
    run = RelatedCall.of(subject, bare, subject.outputs(bare)["y"], normative=False)
    divided = run.slope(np.arange(len(rows)), rows.argmin(axis=1), rows.argmax(axis=1))
    momentum = case.settings["momentum"]
    variance = divided.value.to_dd().hi - run.eps
    return _seen(subject, case, _old(case, _VARIANCE) * (1 - momentum) + variance * momentum, momentum * divided.error)


def reads_running_statistics(subject: Subject, case: Case) -> bool:
    """Whether y of a call in training changes with the running statistics, and with nothing else."""
    if not case.settings.get("training", False) or not case.x.size:
        return False
    mean, variance = (case.given(name) for name in ("running_mean", "running_var"))
    moved = case.replace(running_mean=(mean + 1).astype(mean.dtype), running_var=(variance * 4).astype(variance.dtype))
    first, again, after = (results_if_any(subject, one, gradients=False).get("y") for one in (case, case, moved))
    if first is None or again is None or after is None or not np.array_equal(first, again, equal_nan=True):
        return False
    return not np.array_equal(first, after, equal_nan=True)


def _seen(subject: Subject, case: Case, predicted: np.ndarray, unsure: np.ndarray) -> bool | None:
    got = subject.outputs(case)[_VARIANCE].astype(np.float64)
    exact = subject.truth(case).outputs()[_VARIANCE].hi
    larger = np.maximum(np.abs(got) / np.maximum(np.abs(exact), np.finfo(np.float64).tiny), 1.0)
    slack = unsure + 2 * subject.bound(case, _VARIANCE)(False) * larger
    judged = np.isfinite(slack) & np.isfinite(predicted) & np.isfinite(got)
    if (np.abs(got - predicted) > slack)[judged].any():
        return False
    return True if (np.abs(got - exact) >= CLEARLY_WRONG * slack)[judged].any() else None


def _updates(case: Case) -> bool:
    return bool(case.settings.get("training", False) and case.settings["momentum"] and case.x.size)


def _old(case: Case, name: str) -> np.ndarray:
    return case.given(name.removeprefix("new_")).astype(np.float64)
