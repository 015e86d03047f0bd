"""The assertion of a script: the plainest fact that the target's own results violate, as the probe saw them."""

from __future__ import annotations

from collections.abc import Sequence

from ..judging.verdicts import Counterexample
from .assertion_lines import Assertion
from .probe import StepOutcome
from .probed_steps import ProbedSteps
from .related_results import related, repeated
from .spelling import CannotWrite
from .step import Step
from .truths import Judge
from .wrong_calls import accepted, changed, form, missing, raising
from .wrong_numbers import contained, derived, given, lost_nan, value

#: The looks at what was seen, in order: each returns an assertion, or None if it finds nothing wrong.
_LOOKS = (
    *(raising, accepted, form, lost_nan, changed, value),
    *(derived, given, contained, repeated, related, missing),
)


def assertion(
    found: Counterexample, steps: Sequence[Step], happened: Sequence[Sequence[StepOutcome]], judge: Judge
) -> Assertion:
    """An assertion that fails on what happened. Raises CannotWrite if a script can show no failure."""
    probed = ProbedSteps(found, steps, happened, judge)
    for look in _LOOKS:
        made = look(probed)
        if made is not None:
            return made
    raise CannotWrite(f"no single result of a plain call shows what is wrong with {found.output}")
