"""Exact sums, products and moments of received values, in double-double, for the laws.

In float64 our own sums would err as much as the target's may, and a law would then accuse a target that rounds better
than we do. Double-double errs by 2^-102 of the sum, far below any envelope (spec/accuracy.md, the reference's own).
"""

from __future__ import annotations

import attrs
import numpy as np

from ...reference.double_double import DD, two_sum
from ...reference.formats import format_of
from ...reference.rows import centred
from ...reference.scaled import Scaled
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Bound, Subject
from ..judging.truth import owner_of

#: The axis of a layout's matrix along which a group lies.
_ALONG = 1


def exact(values: np.ndarray) -> Scaled:
    """Received values, unchanged."""
    return Scaled.of(values.astype(np.float64))


def added(*terms: np.ndarray) -> DD:
    """The sum of received arrays, element by element; each may be negated."""
    total = exact(terms[0])
    for term in terms[1:]:
        total = total + exact(term)
    return total.to_dd()


def summed(values: Scaled) -> Scaled:
    """The sum of each row of a matrix, one number a row."""
    return values.sum(_ALONG).reshape(values.shape[0])


def averaged(values: Scaled) -> Scaled:
    """The mean of each row of a matrix, one number a row."""
    return values.mean(_ALONG).reshape(values.shape[0])


def finite_bound(subject: Subject, case: Case, name: str) -> Bound:
    """
    The envelope of a gradient; infinite where its value may round beyond the largest finite number of its dtype.

    An infinity is right there, and a sum that contains one says nothing.
    """
    owner, value = case.inputs[owner_of(name)], subject.truth(case).gradients()[name]
    assert owner is not None and value is not None
    stored, bound = format_of(owner.dtype), subject.bound(case, name)
    edge = stored.largest * (1 - stored.unit_roundoff)  # as for a single value

    def within(normative: bool) -> np.ndarray:
        envelope = bound(normative)
        return np.where(np.abs(value.hi) + envelope < edge, envelope, np.inf)

    return within


def judge_exactly(
    subject: Subject, case: Case, name: str, got: Scaled, want: Scaled, bounds: Bound, note: str = ""
) -> Finding:
    """Compare a value computed from received ones with the exact one, both in double-double."""
    near = got.to_dd()  # `judge` takes one word of the received value: the second is subtracted from the other side
    return subject.judge(case, name, near.hi, (want - Scaled.of(near.lo)).to_dd(), bounds, note)


@attrs.frozen(eq=False)
class Moments:
    """The deviation x - mu, (groups, n), and the variance, (groups, 1), of a case's groups; mu is 0 in rms_norm."""

    deviation: Scaled
    variance: Scaled

    @property
    def distance(self) -> np.ndarray:
        """|x - mu| in float64, (groups, n)."""
        return np.abs(self.deviation.to_dd().hi)


def moments(case: Case) -> Moments:
    """The exact moments of each group."""
    x = exact(case.layout.rows(case.x))
    deviation = centred(x) if case.record.centred else x
    return Moments(deviation, (deviation * deviation).mean(_ALONG))


def shifted_exactly(values: np.ndarray, shift: float) -> np.ndarray | None:
    """Return values plus a constant in the same dtype, or None where a sum has to be rounded."""
    there, lost = two_sum(values.astype(np.float64), shift)
    moved = there.astype(values.dtype)
    exactly = np.all(lost == 0) and np.array_equal(moved.astype(np.float64), there)
    return moved if exactly else None
