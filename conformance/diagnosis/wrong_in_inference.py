"""The search for the mistake of a target that is wrong only in inference mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...spec.identifiers import is_common, kind_of
from ..checks.registry import Check
from ..engine.modes import checks_on, quick_cases
from ..engine.selection import select_cases
from ..engine.tally import Tally
from ..judging.library import fitted
from ..judging.subject import Subject
from ..judging.verdicts import Result
from .calls_again import is_in_inference
from .search import Search

#: Cases for each requirement: as many as show a wrong formula. The search asks for more.
_CASES = 2


def leading_in_inference(violations: Sequence[Result]) -> str:
    """
    The requirement that says that y is wrong in inference mode, if it is wrong only there; empty otherwise.

    That is so if each violated requirement on the values of the operator was first violated in a call in that mode.
    """
    own = [one for one in violations if not is_common(one.requirement)]
    about_y = [one for one in own if kind_of(one.requirement) != "G"]
    return about_y[0].requirement if about_y and all(is_in_inference(one.counterexample) for one in about_y) else ""


def search_in_inference(subject: Subject) -> Search | None:
    """
    The search for what is wrong with the calls in inference mode; None if that violates no formula.

    A slow target is not asked: that takes too many calls.
    """
    if subject.always_slow:
        return None
    subject = subject.anew(in_inference=True, forward_only=True)
    found = [*_violations(subject)]
    return Search(subject, found, frozenset()) if found else None


def _violations(subject: Subject) -> Iterator[Result]:
    """The violated requirements on the formula of y, in calls in inference mode."""
    library = subject.new_library()
    checks = [one for one in checks_on(subject) if _is_of_formula(one)]
    cases = [fit for one in quick_cases(subject) if (fit := fitted(one, subject.binding)) is not None]
    tallies = [Tally(check) for check in checks]
    for description in select_cases(cases, checks, _CASES):
        case = library.case(description)
        for tally in tallies:
            if tally.violation is None and tally.check.when(case):
                subject.target.begin()
                tally.run(subject, case, description)
    for tally in tallies:
        if tally.violation is not None:
            yield tally.result(subject, tally.violation, reason="", violated_on=tally.description, upstream=None)


def _is_of_formula(check: Check) -> bool:
    return kind_of(check.requirement) == "F" and not check.gradient
