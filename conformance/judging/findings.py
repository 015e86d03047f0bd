"""Findings: comparisons of the results of a target with exact values."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ...adapters.known import KnownViolation
from ...reference.double_double import DD
from ...reference.formats import format_of
from ..cases.case import Case
from .call_log import LoggedCall
from .verdicts import Counterexample


@attrs.frozen(eq=False)
class Elements:
    """All elements of a failed comparison: received value, exact value, envelope and ratio."""

    got: np.ndarray
    expected: np.ndarray
    envelope: np.ndarray
    #: Error / envelope; negative for an element that was not judged.
    ratio: np.ndarray


@attrs.frozen(eq=False)
class Finding:
    """The result of one comparison on one case."""

    #: The case as the target received it.
    case: Case
    violated: bool
    #: Whether anything was judged. It is False for a comparison that masked every element.
    judged: bool = True
    #: The violated requirement that makes judging impossible here; "" if there is none.
    blocked_by: str = ""
    ratio: float | None = None
    output: str = ""
    index: tuple[int, ...] = ()
    expected: float | None = None
    got: float | None = None
    envelope: float | None = None
    #: The exact value there, where ``expected`` was computed from other results of the target.
    exact: float | None = None
    note: str = ""
    #: The declared conventions that the output depends on, if it passes only under them; empty if it passes anyway.
    deviates: tuple[str, ...] = ()
    #: How it fails (adapters/known.py, FAILURES), if the numbers do not show it.
    failure: str = ""
    #: All compared elements, if one of them is wrong.
    elements: Elements | None = None
    #: The known violations of the binding that cover all of it.
    known: tuple[KnownViolation, ...] = ()
    #: The case that the check ran on, and the calls that it had made by then.
    checked_case: Case | None = None
    calls: tuple[LoggedCall, ...] = ()

    def counterexample(self) -> Counterexample:
        """The finding as it is reported, with the inputs of the call that shows it."""
        shown_by = self._shown_by()
        call = self.case if shown_by is None else self.calls[shown_by]
        return Counterexample(
            inputs=dict(call.inputs) | {"g": self.case.g},
            settings=dict(call.settings),
            output=self.output,
            index=self.index,
            expected=self.expected,
            got=self.got,
            envelope=self.envelope,
            exact=self.exact,
            note=self.note,
            failure=self.failure,
            parts=dict(call.parts),
            calls=self.calls,
            shown_by=shown_by,
            case=None if self.checked_case is None else self.checked_case.alone(),
        )

    @property
    def call(self) -> LoggedCall | None:
        """The call that shows the finding; None if no such call is known."""
        shown_by = self._shown_by()
        return None if shown_by is None else self.calls[shown_by]

    def _shown_by(self) -> int | None:
        """Index of the call that shows the finding: the last that raised, or the last on this case."""
        places = range(len(self.calls) - 1, -1, -1)
        if self.failure == "raises":
            places = [place for place in places if self.calls[place].raised is not None]
        else:
            places = [place for place in places if self.calls[place].inputs is self.case.inputs]
        return next(iter(places), None)


@attrs.frozen
class WorstElement:
    """The worst element of received values compared with exact ones."""

    ratio: float
    judged: int
    index: tuple[int, ...] = ()
    expected: float = float("nan")
    got: float = float("nan")
    envelope: float = float("nan")
    #: All elements, if one is wrong.
    elements: Elements | None = attrs.field(default=None, eq=False, repr=False)


def compare(got: np.ndarray, exact: DD, envelope: np.ndarray, *, where: np.ndarray | None = None) -> WorstElement:
    """Return the worst |got - exact| / envelope; see ``ratios``."""
    if got.shape != exact.hi.shape:
        return WorstElement(float("inf"), 1)
    ratio = ratios(got, exact, envelope, where=where)
    value = got.astype(np.float64)
    count = int(np.count_nonzero(ratio >= 0))
    if count == 0:
        return WorstElement(0.0, 0)
    index = place_of_largest(ratio)
    bound = envelope if np.shape(envelope) == ratio.shape else np.broadcast_to(envelope, ratio.shape)
    worst = float(ratio[index])
    return WorstElement(
        ratio=worst,
        judged=count,
        index=index,
        expected=float(exact.hi[index]),
        got=float(value[index]),
        envelope=float(bound[index]),
        elements=Elements(value, exact.hi, bound, ratio) if worst > 1 else None,
    )


def place_of_largest(values: np.ndarray) -> tuple[int, ...]:
    """The index of the largest of some values, the first of several; of a mask, that of its first true element."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(values)), values.shape))


def ratios(got: np.ndarray, exact: DD, envelope: np.ndarray, *, where: np.ndarray | None = None) -> np.ndarray:
    """
    Return |got - exact| / envelope of every element; -1 for one that is not judged.

    An element is not judged if its envelope or exact value is not finite, or if ``where`` leaves it out. A result that
    may round beyond the largest finite number may be infinite.
    """
    stored = format_of(got.dtype)
    value = got.astype(np.float64)
    judged = np.isfinite(envelope) & np.isfinite(exact.hi)
    if where is not None:
        judged = judged & where
    with np.errstate(all="ignore"):
        error = np.abs((value - exact.hi) - exact.lo)
        ratio = np.divide(error, envelope, out=np.zeros_like(error), where=error != 0)
        # Near enough to the largest number for roundings to carry it over.
        beyond = np.abs(value) >= stored.largest * (1 - 4 * stored.unit_roundoff)
        if beyond.any():
            # A result that may overflow, to either side, may be infinite or the largest finite value.
            edge = np.sign(value) * exact.hi + envelope >= stored.largest * (1 - stored.unit_roundoff)
            ratio[edge & beyond] = 0.0
    ratio[np.isnan(ratio)] = np.inf
    ratio[~judged] = -1.0
    return ratio


def as_exact(values: Any) -> DD:
    """Return float64 values as double-double numbers."""
    values = np.asarray(values).astype(np.float64)
    return DD(values, np.zeros_like(values))
