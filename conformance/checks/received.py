"""Received results, each number with its largest distance from the exact one, and what follows from several of them."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from ...reference.double_double import DD
from ...reference.formats import FORMATS
from ...reference.scaled import Scaled
from ..cases.case import Case
from ..judging.findings import WorstElement, compare
from ..judging.subject import Subject
from .exactly import exact


@attrs.frozen(eq=False)
class Received:
    """
    Numbers computed from received results in double-double, and the most by which a sound target moves them.

    Sums and products with given numbers propagate the bound, as (A32) of spec/accuracy.md says.
    """

    value: Scaled
    #: float64, in the shape of the value; infinite where nothing is known.
    error: np.ndarray

    @classmethod
    def given(cls, value: Scaled) -> Received:
        """Given numbers, which have no error."""
        return cls(value, np.zeros(value.shape))

    def __add__(self, other: Received) -> Received:
        return Received(self.value + other.value, self.error + other.error)

    def __sub__(self, other: Received) -> Received:
        return Received(self.value - other.value, self.error + other.error)

    def placed(self, place: Callable[[np.ndarray], np.ndarray]) -> Received:
        """The same numbers in other places."""
        hi, lo = self.value.to_dd()
        return Received(exact(place(hi)) + exact(place(lo)), place(self.error))

    def times(self, factor: np.ndarray) -> Received:
        """The product with given numbers."""
        with np.errstate(invalid="ignore"):
            error = np.where(factor == 0, 0.0, np.abs(factor) * self.error)
        return Received(exact(factor) * self.value, error)


@attrs.frozen(eq=False)
class Claim:
    """Two sides that are the same number, element by element."""

    #: The case whose result is the left side.
    case: Case
    left: Received
    right: Received
    #: The left side in words, and what was done to provoke a difference.
    name: str
    note: str
    #: The elements that it claims; None for all.
    where: np.ndarray | None = None
    #: The exact left side, if the right side comes from other results and the left side is no result itself.
    exactly: np.ndarray | None = None

    def compared(self) -> WorstElement:
        """The distance of the two sides in bounds. Where both sides are infinite or NaN, nothing is judged."""
        near, far = self.left.value.to_dd(), self.right.value.to_dd()
        judged = np.isfinite(near.hi) | np.isfinite(far.hi)
        if self.where is not None:
            judged = judged & self.where
        # `compare` takes one word of the left side: the second is subtracted from the right side.
        want = (self.right.value - Scaled.of(near.lo)).to_dd()
        apart = judged & ~np.isfinite(want.hi)
        got = np.where(apart, np.inf, near.hi)
        expected = DD(np.where(apart, 0.0, want.hi), np.where(apart, 0.0, want.lo))
        with np.errstate(invalid="ignore"):
            return compare(got, expected, self.left.error + self.right.error, where=judged)


@attrs.frozen(eq=False)
class RelatedCall:
    """One call of a relation: its case, and its y, both received and exact."""

    case: Case
    #: y as received, and the exact y rounded to float64, which tells how large bounds are.
    got: np.ndarray
    nearly: np.ndarray
    #: The envelope of y; infinite where nothing is judged.
    envelope: np.ndarray
    #: The unit roundoff of y's format.
    roundoff: float
    #: The eps that the conventions use.
    eps: float

    @classmethod
    def of(cls, subject: Subject, case: Case, y: np.ndarray, *, normative: bool) -> RelatedCall:
        """A received result of a case, judged under the declared or the normative conventions."""
        truth = subject.truth(case, normative=normative)
        arithmetic = subject.arithmetic(case, normative=normative)
        nearly, envelope = truth.nearly(), subject.bound(case, "y")(normative)
        largest = FORMATS[case.g.dtype.name].largest
        with np.errstate(invalid="ignore"):  # a value that may round to infinity takes part in no relation
            envelope = np.where(np.abs(nearly) + envelope < largest / 2, envelope, np.inf)
        return cls(case, y.astype(np.float64), nearly, envelope, arithmetic.of_y[0], truth.settings["eps"])

    @property
    def error(self) -> np.ndarray:
        """
        The envelope. If the received value is larger than the exact one, its last rounding is taken from the received
        (A32).

        The excess itself is judged by the formula, LN-F1 and BN-F1.
        """
        with np.errstate(invalid="ignore"):
            excess = np.maximum(np.abs(self.got) - np.abs(self.nearly), 0.0)
        return self.envelope + self.roundoff * np.where(np.isfinite(excess), excess, 0.0)

    @property
    def y(self) -> Received:
        """y as received."""
        return Received(exact(self.got), self.error)

    @property
    def truly(self) -> Received:
        """The exact y, with its envelope."""
        return Received(exact(self.nearly), self.envelope)

    def slope(self, groups: np.ndarray, one: np.ndarray, other: np.ndarray) -> Received:
        """
        q = ((x_i - x_j) / (y_i - y_j))^2 with its bound (A33). Without parameters it is var + eps.

        ``groups``, ``one`` and ``other``: the group, i and j of each number.
        """

        def pair(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            rows = self.case.layout.rows(values).astype(np.float64)
            return rows[groups, one], rows[groups, other]

        def apart(values: np.ndarray) -> Scaled:
            one, other = pair(values)
            return exact(one) - exact(other)

        root = apart(self.case.x) / apart(self.got)
        value = root * root
        with np.errstate(all="ignore"):  # float64 suffices for the size of a bound
            x, got, truly = (np.abs(np.subtract(*pair(z))) for z in (self.case.x, self.got, self.nearly))
            share = np.fmax(np.add(*pair(self.envelope)) / truly, np.add(*pair(self.error)) / got)
            size = np.fmax(x / got, x / truly) ** 2
            error = np.where(share < 1, size * share * (2 - share) / (1 - share) ** 2, np.inf)
        return Received(value, error)
