"""Pace: whether calls of a target are so slow that fewer cases run on it."""

from __future__ import annotations

import contextlib
import time

from ...adapters.frameworks import KNOWN
from ...spec.errors import CALL_FAILED, Unsupported
from ..cases.description import Description
from ..judging.library import fitted
from ..judging.subject import Subject
from .modes import modes_to_try

#: A function is slow if a call takes this many seconds or more: a hundred times a plain NumPy or PyTorch function.
SLOW = 0.02
#: Number of calls that are timed. One quick call settles it: a busy machine delays some calls, but not eight in a row.
CALLS = 8


def pace(subject: Subject, asked: bool | None) -> str:
    """
    Why fewer cases run on a target; empty if all run.

    ``asked`` is what the user said. If it is None, the pace of a framework is known, and that of a user's function is
    measured.
    """
    if asked is not None:
        return "the caller says that calls are slow" if asked else ""
    if subject.target.slow:
        return "a call of a new shape is compiled or dispatched step by step there"
    if subject.target.name in KNOWN:
        return ""
    for training in modes_to_try(subject.binding, subject.mode):
        with contextlib.suppress(Unsupported):  # it declines this mode
            seconds = _quickest(subject, training=training)
            return f"a call takes {1000 * seconds:.0f} ms" if seconds >= SLOW else ""
    return ""


def is_slow_once(subject: Subject, description: Description) -> bool:
    """Whether a slow target is quick where it is called again in a shape that it was called in."""
    fit = fitted(description, subject.binding) if subject.slow else None
    if fit is None:
        return False
    case = subject.new_library().case(fit)
    subject.target.begin()
    other = case.replace(x=-case.x)  # a result may be kept for the same values
    taken = []
    for results in (subject.outputs, *(() if subject.forward_only else (subject.pull,))):
        with contextlib.suppress(*CALL_FAILED):
            results(case)  # the shape may be new here
            started = time.perf_counter()
            results(other)
            taken.append(time.perf_counter() - started)
    return bool(taken) and max(taken) < SLOW  # calls that fail tell nothing


def _quickest(subject: Subject, *, training: bool) -> float:
    """
    Seconds of the quickest of some plain calls of new shapes; 0 if a call fails, or one was quick.

    Raises Unsupported if the target declines such a call.
    """
    taken = []
    for n in range(4, 4 + CALLS):
        plain = Description(subject.operator, n, (("normal", 0), ("normal", 1)), recipe="leaf", training=training)
        fit = fitted(plain, subject.binding)
        if fit is None:
            return 0.0
        case = subject.new_library().case(fit)
        subject.target.begin()
        started = time.perf_counter()
        try:
            subject.outputs(case)
        except Unsupported:
            raise
        except CALL_FAILED:
            return 0.0
        taken.append(time.perf_counter() - started)
        if taken[-1] < SLOW:
            return 0.0
    return min(taken)
