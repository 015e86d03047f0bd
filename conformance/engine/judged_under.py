"""
Whether wrong values are judged at all under a wider envelope.

A class of accuracy promises nothing where a step of its own may overflow or vanish. That nothing is said about a wrong
value there is no reason to declare the class: the function may be wrong for any other reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from ..cases.case import Case
from ..checks.registry import Check
from ..grouping import grouped
from ..judging.subject import Subject
from ..judging.truth import is_about_gradients, owner_of
from ..judging.verdicts import Counterexample, Result
from .tally import Tally

#: Conventions that only widen envelopes, or make them infinite. All others say what is right.
WIDENING = frozenset(("variance_algorithm", "affine", "storage", "cast", "subnormals", "float64"))


def leaves_some_unjudged(violations: Iterable[Result], judged: Callable[[Result], bool]) -> bool:
    """
    Whether of one kind of result no wrong value is judged: of the outputs, of the gradients, or of the statistics.

    Of each kind one is enough. What overflows in a sound function of a class breaks many laws of what it rounds.
    """
    kinds = grouped(((one.dtype, _kind(one.counterexample)), one) for one in violations)
    return not all(any(map(judged, some)) for some in kinds.values())


def is_judged(checks: Iterable[Check], subject: Subject, case: Case, result: Result) -> bool:
    """Whether one of these checks is judged on the case of a violation, and the wrong value that it shows with it."""
    for check in checks:
        tally = Tally(check)
        if check.when(case):
            tally.run(subject, case, result.violated_on)
        if tally.judged:
            return result.counterexample is None or _is_promised(subject, result.counterexample)
    return False


def _kind(shown: Counterexample | None) -> str:
    if shown is None or shown.output.startswith("new_running"):
        return "" if shown is None else "statistics"
    return "gradients" if is_about_gradients(shown.output, shown.inputs) else ""


def _is_promised(subject: Subject, shown: Counterexample) -> bool:
    """Whether the wrong value has a finite envelope; where that is not known, whether it is a finite number."""
    if shown.got is None or shown.expected is None:
        return True
    inputs, g = shown.arguments, shown.inputs.get("g")
    like = inputs.get(owner_of(shown.output))
    if g is None or like is None:
        return bool(np.isfinite(shown.got) or not np.isfinite(shown.expected))
    if subject.format != subject.dtype:  # such a subject is given other data, which this format holds
        inputs = {name: None if value is None else value.astype(subject.format) for name, value in inputs.items()}
        g = g.astype(subject.format)
    case = Case(subject.operator, inputs, shown.settings, g, parts=shown.parts)
    bound = subject.bound(case, shown.output)(False)
    return bool(np.isfinite(np.broadcast_to(bound, like.shape)[shown.index]))
