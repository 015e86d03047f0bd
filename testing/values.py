"""The exact values of y and dx for some groups, and their envelopes."""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np

from ..reference import rows as mathematics
from ..reference.double_double import DD
from ..reference.envelope import OperatorEnvelope
from ..reference.envelope_rows import Array
from ..reference.float64 import Float64Values
from ..reference.scaled import Scaled
from ..spec.layout import Layout
from .call import Call
from .certified import Certified


@attrs.frozen(eq=False, slots=False)
class Block:
    """Some groups of a call, with a cotangent of y where gradients are judged; results have one group per row."""

    call: Call
    groups: np.ndarray
    g: np.ndarray | None = None

    @cached_property
    def envelope(self) -> OperatorEnvelope:
        """Their envelope."""
        return self.call.envelope(self.groups)

    @cached_property
    def cotangent(self) -> Array:
        """Their rows of g."""
        assert self.g is not None
        return self.call.rows(self.g, self.groups).astype(np.float64)

    @cached_property
    def certified(self) -> Certified:
        """Their values in plain float64, with bounds of their own."""
        return Certified(self.envelope.forward)

    def bound(self, name: str) -> Array:
        """The envelope of "y" or "dx"; infinite, and so not judged, outside the range rules."""
        whole, largest = self.envelope, self.call.arithmetic.largest
        if name == "y":
            found, inside = whole.forward.y(), whole.in_range(y=True)
        else:
            found = whole.forward.dx(self.cotangent)
            inside = whole.in_range(gradient=True, g=self.cotangent)
        return np.where(inside & (found < largest / 4), found, np.inf)

    def approximate(self, name: str) -> tuple[Array, Array | None]:
        """The float64 values, and a bound on their distance from the exact ones; None where the envelope covers it."""
        if not self.call.has_float64:
            values = Float64Values(self.envelope)
            return (values.y() if name == "y" else values.dx(self.cotangent)).hi, None
        return self.certified.y() if name == "y" else self.certified.dx(self.cotangent)

    def exact_rows(self, name: str, which: np.ndarray) -> DD:
        """The double-double values of some of the rows."""
        forward = self.envelope.forward
        x, gamma, beta = (_some(values, which) for values in (forward.rows.x, forward.gamma, forward.beta))
        found = self._normalised(x, which)
        if name == "y":
            return mathematics.affine(found, gamma, beta).to_dd()
        # vjp also sums over groups; those sums are not used, so any layout of the right size will do.
        return mathematics.vjp(found, gamma, _some(self.cotangent, which), _matrix(x))[0].to_dd()

    def normalised(self) -> mathematics.Rows:
        """All of the rows, normalised in double-double."""
        which = np.arange(len(self.groups))
        return self._normalised(_some(self.envelope.forward.rows.x, which), which)

    def _normalised(self, x: Scaled, which: np.ndarray) -> mathematics.Rows:
        rows = self.envelope.forward.rows
        if rows.given_mean is not None and rows.given_variance is not None:
            mean, variance = Scaled.of(rows.given_mean[which]), Scaled.of(rows.given_variance[which])
            return mathematics.normalise_by(x, mean, variance, rows.eps)
        normalise = mathematics.normalise if rows.centred else mathematics.normalise_by_mean_square
        return normalise(x, rows.eps)

    def cannot_be_finite(self) -> np.ndarray:
        """
        Where y cannot be finite because a value that it depends on is not (CM-N3, CM-N4, CM-N6).

        A product with a gamma of 0 may ignore that value, and so may the only value of a group less its own mean.
        """
        forward, record = self.envelope.forward, self.call.record
        rows = forward.rows
        lost = ~np.isfinite(rows.x)
        if self.call.statistics_given or not lost.any():
            of_x = np.isnan(rows.x) if self.call.statistics_given else lost
        elif record.centred:
            of_x = np.broadcast_to(lost.any(axis=1, keepdims=True), rows.x.shape)
        else:  # an infinity makes the root infinite, so the other values of its group become 0
            of_x = lost | np.isnan(rows.x).any(axis=1, keepdims=True)
        if rows.n < 2:
            of_x = np.zeros_like(of_x)
        of_x = of_x & (forward.gamma != 0)
        return of_x | np.isnan(forward.gamma) | np.isnan(forward.beta)


def _some(values: Array, which: np.ndarray) -> Scaled:
    """Some rows of an array that broadcasts to a matrix, in double-double."""
    return Scaled.of(values if len(values) == 1 else values[which])


def _matrix(x: Scaled) -> Layout:
    return Layout.trailing((x.shape[0], x.shape[1]), 1)
