"""The violations that a diagnosis looks at: those in a report, and those of a candidate in a run of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from ..engine.engine import Run
from ..judging.library import Library
from ..judging.verdicts import Result, Verdict
from ..requests.plan import Plan
from ..requests.profiles import profile_of
from .candidates import Candidate


def is_violation(result: Result) -> bool:
    """Whether a diagnosis looks at a result: a failed MUST with a case that shows it."""
    return result.verdict is Verdict.FAIL and result.violated_on is not None


def violations_of(candidate: Candidate, requirements: Iterable[str], library: Library) -> Iterator[Result]:
    """Run a candidate on the checks of some requirements; ``library``: the target's, which all candidates share."""
    subject = candidate.subject
    plan = Plan(
        targets=(subject.target,),
        dtypes=(subject.dtype,),
        device="cpu",
        conventions=dict(subject.conventions),
        profile=attrs.evolve(profile_of("quick"), repeats=64, large_repeats=32),
        seed=0,
        forward_only=subject.forward_only,
        explain=False,
        mode=subject.mode,
        requirements=frozenset(requirements),
        required=frozenset(requirements),
    )
    run = Run(plan, libraries={(subject.operator, *library.kind): library})
    report = run.report([(subject.operator, subject.dtype)])
    if run.interrupted:  # by Ctrl-C: half of a run shows nothing
        raise KeyboardInterrupt
    return filter(is_violation, report.results)
