"""Verdicts: what a run established about each requirement."""

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
    from .asked import Ask, Raised


class Verdict(str, enum.Enum):
    """What a run established about one requirement, in one dtype of one binding."""

    #: Exercised, and within the requirement on every case.
    PASS = "pass"
    #: At least one case violates the requirement, which is a MUST: the target does not conform.
    FAIL = "fail"
    #: At least one case violates the requirement, which is a SHOULD: the target conforms all the same.
    ADVICE = "advice"
    #: Differs from the normative choice exactly as the binding declares.
    DEVIATES = "deviates"
    #: The target lacks what the requirement is about; the reason says what.
    UNSUPPORTED = "unsupported"
    #: Nothing ran that could have failed. Never counted as a pass.
    NOT_EXERCISED = "not-exercised"
    #: The target raised or crashed where nothing could be judged.
    ERROR = "error"

    @property
    def is_violation(self) -> bool:
        """Whether a case violates the requirement: fail, or advice."""
        return self in (Verdict.FAIL, Verdict.ADVICE)


@attrs.frozen
class Counterexample:
    """The smallest case found that violates a requirement."""

    #: The arrays handed to the target in the call that shows it, by argument name; None where the argument was None.
    #: "g" is the cotangent of y.
    inputs: Mapping[str, np.ndarray | None]
    #: The keyword arguments: eps, axes, momentum, ...
    settings: Mapping[str, Any]
    #: Which output or gradient is wrong ("y", "dx", ...), or what else was observed.
    output: str
    #: Index of the worst element in that output; () where the finding is not about one element.
    index: tuple[int, ...] = ()
    #: The exact value there, the value received, and the largest error a sound algorithm can make.
    expected: float | None = None
    got: float | None = None
    envelope: float | None = None
    #: What was done to provoke the violation, in words ("x strided", "the group alone", an exception).
    note: str = ""
    #: How it fails, where the numbers do not say: "raises", "missing", "shape", "dtype", "accepts", ...
    failure: str = ""
    #: What a composed operator is handed for its roles.
    parts: Parts = attrs.field(factory=dict)
    #: All that the check asked of the target, in order, until the violation showed, and the place there of the call
    #: that shows it; None where no single one does.
    calls: tuple[Ask, ...] = ()
    shown_by: int | None = None
    #: The case that the check was put to, of which it makes its calls; None where that is not known.
    case: Case | None = attrs.field(default=None, repr=False)

    @property
    def call(self) -> Ask | None:
        """The call that shows it."""
        return None if self.shown_by is None else self.calls[self.shown_by]

    @property
    def raised(self) -> Raised | None:
        """The exception that is the violation; None where it is none."""
        return self.call.raised if self.failure == "raises" and self.call is not None else None

    @property
    def multiple(self) -> float | None:
        """The error of this very case in envelopes, where it is a number."""
        if self.expected is None or self.got is None or not self.envelope:
            return None
        multiple = abs(self.got - self.expected) / self.envelope
        return multiple if math.isfinite(multiple) else None

    @property
    def why(self) -> str:
        """Why it is a violation, in one sentence."""
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


#: Why it is a violation, by how it fails.
WHY = {
    "raises": "the call raised, and must return",
    "missing": "a derivative is missing",
    "accepts": "the call returned, and must raise",
}


@attrs.frozen
class Deviation:
    """A known violation of a binding, and in how many comparisons of a run it showed."""

    reason: str
    #: Its limits in words: dtypes, modes, what was done, which outputs.
    scope: str
    links: tuple[str, ...]
    #: 0: the run put it to the test, and nothing of it showed.
    shown: int


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
    #: Worst error / envelope over all cases; None where the requirement is not about a magnitude.
    ratio: float | None = None
    #: How many of the ratios lie in each bin (ratios.py).
    ratios: Mapping[int, int] = attrs.field(factory=dict)
    #: The worst ratio by kind of data (cases/regimes.py).
    kinds: Mapping[str, float] = attrs.field(factory=dict)
    #: Number of cases judged.
    cases: int = 0
    #: On how many cases the target declined the call, or lacked a derivative, by the reason: nothing was judged there.
    declined: Mapping[str, int] = attrs.field(factory=dict)
    #: Why it is unsupported, deviates, is violated or could not be judged.
    reason: str = ""
    counterexample: Counterexample | None = None
    #: The description of the smallest case found that violates it (cases/description.py), to be judged again.
    violated_on: Any = None
    #: The requirement that fails on the same case for the same reason, and tells more; empty where none does.
    same_case_as: str = ""
    #: The first of the faults of the cause that explains the violation (diagnosis/cause.py), or its sentence where it
    #: has no name; None where no cause explains it.
    diagnosis: str | None = None
    #: The violated requirements that it fails because of, and for nothing else (diagnosis/following_from.py); empty for
    #: what stands as a cause.
    follows_from: tuple[str, ...] = ()
    #: The traceback of a defect of normspec; empty where there was none.
    traceback: str = ""
    #: The binding's known violations of this requirement that the run put to the test.
    known: tuple[Deviation, ...] = ()
    #: Since when it has been kept, as `2026-11-23T09:12:05Z`; empty where this run established it.
    kept: str = ""


@attrs.frozen
class Taken:
    """
    How many of the cases put to a binding in one dtype it took.

    Each is a call that the specification allows. Not counted are those in another rank than a batch_norm takes, with
    an optional part that a function lacks, and 16-bit data with float32 parameters: a target may lack these.
    """

    target: str
    binding: str
    op: str
    dtype: str
    cases: int
    #: The cases whose plain call it declined, by the reason.
    declined: Mapping[str, int] = attrs.field(factory=dict)
    #: "training" or "inference" where batch_norm was judged in that mode alone; "" for both, and other operators.
    mode: str = ""
    #: Why, where nobody asked for that mode.
    mode_reason: str = ""
