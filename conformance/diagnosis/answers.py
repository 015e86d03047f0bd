"""What a target, or a known mistake, answers to one question, and whether two answers are the same."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs
import numpy as np

from ...reference.formats import FORMATS, format_of
from ..calls import CALL_FAILED
from ..cases.case import Case
from ..cases.description import Description
from ..checks.registry import Check
from ..subject import Subject
from ..tally import Tally

#: Two functions that make the same mistake differ by the roundings of either, each of which the envelope bounds.
_EITHER = 2.0

#: A wrong step rounds what the right one need not: a few roundings of a value that the envelope does not know.
_STEPS = 4.0

#: An answer is telling where it is off by so many times what two functions with the same mistake may differ by: then
#: an agreement is one to a tenth of what is wrong, and no accident of roundings.
TELLING = 10.0


@attrs.frozen(eq=False)
class Values:
    """One output or gradient, or what a law makes of several, beside the exact values and their envelope."""

    got: np.ndarray
    expected: np.ndarray
    envelope: np.ndarray
    #: Half a unit in the last place of 1 in the dtype of the values.
    unit: float
    #: What roundings may change in the results of a wrong formula beside that (sensitivity.py).
    unstable: np.ndarray | float = 0.0

    def slack(self) -> np.ndarray:
        """
        By how much the values of another function with the same mistake may differ from these.

        The envelope is that of the right values. A mistake can make values larger, and their roundings with them: by
        as much as the largest value of all is larger.
        """
        with np.errstate(all="ignore"):
            right, here = np.abs(self.expected), np.abs(self.got)
            larger = _largest(here) / _largest(right) if _largest(right) else 1.0
            return _EITHER * (self.envelope * max(larger, 1.0) + _STEPS * self.unit * here) + self.unstable

    def off(self) -> float:
        """How far the worst value is from the exact one, in units of the slack; infinite where it is not finite."""
        return _worst(self.got, self.expected, self.slack())

    def agree(self, other: Values) -> bool:
        """Whether the other values are these but for roundings, not finite where these are not, and nowhere else."""
        return self._agree(other, self.got, other.got)

    def err_alike(self, other: Values) -> bool:
        """
        Whether the other values are off by as much as these.

        A relation expects what follows from other results: where these have a second mistake, so has the expected.
        """
        with np.errstate(all="ignore"):
            return self._agree(other, self.got - self.expected, other.got - other.expected)

    def _agree(self, other: Values, here: np.ndarray, there: np.ndarray) -> bool:
        if here.shape != there.shape:
            return False
        judged = np.isfinite(self.envelope) & np.isfinite(self.expected)
        slack = np.maximum(self.slack(), other.slack())
        return _worst(np.where(judged, here, 0.0), np.where(judged, there, 0.0), slack) <= 1


def _largest(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else 0.0


def _worst(a: np.ndarray, b: np.ndarray, unit: np.ndarray) -> float:
    if not a.size:
        return 0.0
    with np.errstate(all="ignore"):
        apart = np.abs(a - b)
        ratio = np.where(apart == 0, 0.0, apart / unit)
    finite = np.isfinite(a), np.isfinite(b)
    # Where a mistake divides zero by zero or overflows, NaN and infinity depend on the order of steps.
    ratio = np.where(finite[0] & finite[1], ratio, np.where(finite[0] == finite[1], 0.0, np.inf))
    return float(np.nan_to_num(ratio, nan=np.inf, posinf=np.inf).max())


@attrs.frozen(eq=False)
class Answer:
    """What a subject answered: values by name, or words where there are no values."""

    values: Mapping[str, Values] = attrs.field(factory=dict)
    #: What a check says of it without its numbers, "" where it holds; or how the call failed.
    words: str = ""

    @property
    def telling(self) -> bool:
        """Whether the values are off by more than roundings explain."""
        return any(value.off() >= TELLING for value in self.values.values())

    def agrees(self, other: Answer) -> bool:
        """Whether the other answer is this one but for roundings."""
        if self.words != other.words or set(self.values) != set(other.values):
            return False
        return all(value.agree(other.values[name]) for name, value in self.values.items())

    def errs_alike(self, other: Answer) -> bool:
        """Whether the other answer is off by as much as this one, where both are off."""
        if not self.words or self.words != other.words or set(self.values) != set(other.values):
            return False
        return all(value.err_alike(other.values[name]) for name, value in self.values.items())


@attrs.frozen(eq=False)
class Question:
    """A check on a case, or without a check the outputs or the gradients of the case themselves."""

    case: Case
    description: Description
    check: Check | None = None
    #: Whether it is about derivatives: a plain question is about outputs or about gradients.
    derivative: bool = False
    #: An output that no candidate computes under the conventions of the target; "" for none.
    without: str = ""

    @property
    def plain(self) -> bool:
        """Whether it is about the outputs or gradients of the case themselves."""
        return self.check is None

    def put_to(self, subject: Subject) -> Answer:
        """What the subject answers."""
        subject.target.begin()
        if self.check is None:
            values, words = _plain(subject, self.case, gradients=self.derivative)
            return Answer({name: value for name, value in values.items() if name != self.without}, words)
        tally = Tally(self.check)
        with np.errstate(all="ignore"):
            tally.run(subject, self.case, self.description)
        found = tally.violation
        if found is None:
            return Answer(words=_without_numbers(tally.error or tally.unsupported))
        words = f"{found.output}: {found.failure or _without_numbers(found.note)}"
        seen = found.elements
        if seen is None:
            return Answer(words=words)
        judged = seen.ratio >= 0
        got, expected, envelope = (np.where(judged, one, 0.0) for one in (seen.got, seen.expected, seen.envelope))
        values = Values(got, expected, envelope, FORMATS[subject.format].unit_roundoff)
        return Answer({found.output: values}, words)


def _plain(subject: Subject, case: Case, *, gradients: bool) -> tuple[dict[str, Values], str]:
    values: dict[str, Values] = {}
    truth = subject.truth(case)
    try:
        found = subject.pull(case) if gradients else subject.outputs(case)
    except CALL_FAILED as failure:
        return values, type(failure).__name__
    exact = truth.gradients() if gradients else truth.outputs()
    for name, got in found.items():
        if exact.get(name) is not None:
            bound, unit = subject.bound(case, name)(False), format_of(got.dtype).unit_roundoff
            values[name] = Values(got.astype(np.float64), exact[name].hi, np.broadcast_to(bound, got.shape), unit)
    return values, ""


def _without_numbers(note: str) -> str:
    return re.sub(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", "#", note)
