"""Verdicts on requirements, and the records a report is made of."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

if TYPE_CHECKING:
    from ...spec.parts import Parts
    from ..cases.case import Case
    from .call_log import LoggedCall, Raised


class Verdict(str, enum.Enum):
    """The verdict on one requirement, for one binding in one dtype."""

    #: Exercised, and fulfilled on every case.
    PASS = "pass"
    #: At least one case violates the requirement, which is a MUST: the target does not conform.
    FAIL = "fail"
    #: At least one case violates the requirement, which is a SHOULD: the target still conforms.
    ADVICE = "advice"
    #: Differs from the normative choice exactly as the binding declares.
    DEVIATES = "deviates"
    #: The target lacks a feature that the requirement needs; the reason names it.
    UNSUPPORTED = "unsupported"
    #: Nothing ran that could have failed. Never counted as a pass.
    NOT_EXERCISED = "not-exercised"
    #: The target raised or crashed where nothing could be judged.
    ERROR = "error"

    @property
    def is_violation(self) -> bool:
        """Whether a case violates the requirement: FAIL or ADVICE."""
        return self in (Verdict.FAIL, Verdict.ADVICE)


@attrs.frozen
class Counterexample:
    """The smallest case found that violates a requirement."""

    #: The arrays of the call that shows the violation, by argument name; None for an argument that was None. "g" is the
    #: cotangent of y.
    inputs: Mapping[str, np.ndarray | None]
    #: The keyword arguments: eps, axes, momentum, ...
    settings: Mapping[str, Any]
    #: The output or gradient that is wrong ("y", "dx", ...), or the name of something else that was observed.
    output: str
    #: Index of the worst element in that output; () if the finding is not about one element.
    index: tuple[int, ...] = ()
    #: At that element: the value that must be there, the value received, and the largest error of a sound algorithm.
    expected: float | None = None
    got: float | None = None
    envelope: float | None = None
    #: The exact value there, if what must be there was computed from results of the target's other calls.
    exact: float | None = None
    #: How the violation was provoked, in words ("x strided", "the group alone", an exception).
    note: str = ""
    #: How it fails, if the numbers do not show it: "raises", "missing", "shape", "dtype", "accepts", ...
    failure: str = ""
    #: The parts given to a composed operator, by role.
    parts: Parts = attrs.field(factory=dict)
    #: All calls that the check made until the violation showed, in order, and the index of the call that shows it; None
    #: if no single call does.
    calls: tuple[LoggedCall, ...] = ()
    shown_by: int | None = None
    #: The case that the check ran on; its calls are made from it. None if it is not known.
    case: Case | None = attrs.field(default=None, repr=False)

    @property
    def arguments(self) -> dict[str, np.ndarray | None]:
        """The arrays of the call, without the cotangent."""
        return {name: value for name, value in self.inputs.items() if name != "g"}

    @property
    def call(self) -> LoggedCall | None:
        """The call that shows the violation; None if no single call does."""
        return None if self.shown_by is None else self.calls[self.shown_by]

    @property
    def raised(self) -> Raised | None:
        """The exception, if raising it is the violation; otherwise None."""
        return self.call.raised if self.failure == "raises" and self.call is not None else None

    @property
    def multiple(self) -> float | None:
        """The error at this element divided by the envelope; None if that is not a finite number."""
        if self.expected is None or self.got is None or not self.envelope:
            return None
        multiple = abs(self.got - self.expected) / self.envelope
        return multiple if math.isfinite(multiple) else None

    @property
    def why(self) -> str:
        """One sentence that says why this is a violation."""
        if self.failure:
            return WHY.get(self.failure, self.note)
        if self.expected is None or self.got is None:
            return self.note
        if not math.isfinite(self.got):
            return f"it is {self.got}, and must be finite" if math.isfinite(self.expected) else "it is another value"
        if math.isnan(self.expected):
            return "it is finite, and must not be"
        if self.envelope is None:
            return "it is another value, and must be this one to the last bit"
        if self.envelope == 0:
            return "it must be this value itself: no error is allowed here"
        if self.multiple is None:
            return "it is another value"
        return f"the error is {self.multiple:.3g} times the largest that a sound algorithm makes"


#: Sentences for ``Counterexample.why``, by failure.
WHY = {
    "raises": "the call raised, and must return",
    "missing": "a derivative is missing",
    "accepts": "the call returned, and must raise",
}


@attrs.frozen
class Deviation:
    """A known violation of a binding, and the number of comparisons of a run in which it showed."""

    reason: str
    #: Its limits in words: dtypes, modes, provocations, outputs.
    scope: str
    links: tuple[str, ...]
    #: 0 means that the run tested it and it did not show.
    shown: int


@attrs.frozen
class Upstream:
    """One of the framework's own layers that is known to violate a requirement in the same way."""

    binding: str
    reason: str
    links: tuple[str, ...]


@attrs.frozen
class Result:
    """The verdict on one requirement for one binding, operator, dtype and device."""

    target: str
    binding: str
    op: str
    requirement: str
    level: str
    dtype: str
    device: str
    mode: str
    verdict: Verdict
    #: Worst error / envelope over all cases; None if the requirement is not about a magnitude.
    ratio: float | None = None
    #: Number of ratios in each bin (ratios.py).
    ratios: Mapping[int, int] = attrs.field(factory=dict)
    #: The worst ratio by kind of data (cases/regimes.py).
    kinds: Mapping[str, float] = attrs.field(factory=dict)
    #: Number of cases judged.
    cases: int = 0
    #: Number of cases by the reason why the target declined the call or lacked a derivative. Nothing was judged there.
    declined: Mapping[str, int] = attrs.field(factory=dict)
    #: Why the requirement is unsupported, deviates, is violated or could not be judged.
    reason: str = ""
    counterexample: Counterexample | None = None
    #: Description of the smallest violating case found (cases/description.py); the case can be judged again from it.
    violated_on: Any = None
    #: A more telling requirement that fails on the same case for the same reason; empty if there is none.
    same_case_as: str = ""
    #: The first fault of the cause that explains the violation (diagnosis/cause.py), or the cause's sentence if it has
    #: no name; None if no cause explains the violation.
    diagnosis: str | None = None
    #: The violated requirements that alone make this one fail (diagnosis/consequences.py); empty if this one stands
    #: as a cause.
    follows_from: tuple[str, ...] = ()
    #: The traceback of a defect of normspec; empty if there was none.
    traceback: str = ""
    #: The binding's known violations of this requirement that the run tested.
    known: tuple[Deviation, ...] = ()
    #: A layer of the framework that violates it in the same way, if the target is a user's own function.
    upstream: Upstream | None = None
    #: When a kept result was stored, as `2026-11-23T09:12:05Z`; empty if this run established it.
    kept: str = ""


@attrs.frozen
class CaseCount:
    """
    Number of cases that a binding was given in one dtype, and those that it declined.

    Each is a call that the specification allows. Calls that a target may lack are not counted: ranks that a batch_norm
    does not take, optional parts that a function lacks, and 16-bit data with float32 parameters.
    """

    target: str
    binding: str
    op: str
    dtype: str
    cases: int
    #: Number of cases whose plain call it declined, by reason.
    declined: Mapping[str, int] = attrs.field(factory=dict)
    #: "training" or "inference" if batch_norm was judged only in that mode; "" for both modes and for other operators.
    mode: str = ""
    #: Why it was judged only in that mode; empty if the user asked for the mode.
    mode_reason: str = ""
