"""One call on rows: its exact results, its envelopes, and the ratio of an error to its envelope."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import attrs
import numpy as np

from normspec.reference.accuracy import AccuracyClass, Arithmetic
from normspec.reference.batch_norm import batch_norm_exact, batch_norm_vjp_exact
from normspec.reference.double_double import DD
from normspec.reference.envelope import OperatorEnvelope, envelope_of
from normspec.reference.formats import format_of
from normspec.reference.layer_norm import layer_norm_exact, layer_norm_vjp_exact

Array = np.ndarray

#: The class used if none is named.
NORMATIVE = AccuracyClass()


def ratio(got: Array, exact: DD, envelope: Array) -> Array:
    """|got - exact| / envelope for each element; 0 where the envelope is not finite, which judges nothing."""
    with np.errstate(all="ignore"):
        error = np.abs((got.astype(np.float64) - exact.hi) - exact.lo)
        return np.where((error == 0) | ~np.isfinite(envelope), 0.0, error / envelope)


@attrs.frozen(slots=False, eq=False)
class Problem:
    """Rows of x, normalised as LayerNorm groups or as BatchNorm channels; all arrays of one dtype."""

    x: Array
    gamma: Array
    beta: Array
    g: Array
    eps: float
    operator: str = "layer_norm"

    @property
    def settings(self) -> dict[str, Any]:
        """eps and which values make up a group."""
        if self.operator == "layer_norm":
            return {"eps": self.eps, "axes": (-1,)}
        return {"eps": self.eps, "training": True, "channel_axis": 0}

    @property
    def _running(self) -> tuple[Array, ...]:
        zero = np.zeros(len(self.x))
        return () if self.operator == "layer_norm" else (zero, zero)

    def envelope(self, accuracy: AccuracyClass = NORMATIVE) -> OperatorEnvelope:
        """The envelope in an accuracy class."""
        build = partial(envelope_of, self.operator)
        arithmetic = Arithmetic.of(self.x.dtype, self.gamma.dtype, accuracy)
        return build(self.x, self.gamma, self.beta, *self._running, **self.settings, arithmetic=arithmetic)

    @cached_property
    def exact(self) -> dict[str, DD]:
        """The exact y, dx, dgamma and dbeta, and for channels the mean and variance."""
        forward, backward = (layer_norm_exact, layer_norm_vjp_exact)
        settings = dict(self.settings)
        if self.operator == "batch_norm":
            forward, backward = batch_norm_exact, batch_norm_vjp_exact
            settings["momentum"] = 1.0
        arguments = (self.x, self.gamma, self.beta, *self._running)
        found = forward(*arguments, **settings)
        names = dict(zip(("dx", "dgamma", "dbeta"), backward(*arguments, self.g, **settings), strict=True))
        if self.operator == "layer_norm":
            return {"y": found, **names}
        return {"y": found[0], "mean": found[1], "variance": found[2], **names}

    def bounds(self, accuracy: AccuracyClass = NORMATIVE) -> dict[str, Array]:
        """The envelope of each result, infinite where it is not judged (R1 to R3)."""
        envelope = self.envelope(accuracy)
        with np.errstate(all="ignore"):  # what overflows here is not judged
            found = {"y": envelope.y(), **envelope.gradients(self.g)}
            statistics = envelope.statistics
            found |= {"mean": statistics.mean_error[:, 0], "variance": statistics.variance_error[:, 0]}
            inside = envelope.in_range(gradient=False).all(axis=1)
            for name in ("mean", "variance"):
                found[name] = np.where(inside, found[name], np.inf)
            judged = inside if self.operator == "batch_norm" else inside.all()
            found["dgamma"] = np.where(judged, found["dgamma"], np.inf)
            for name, gradient in (("y", False), ("dx", True)):
                inside = envelope.in_range(y=not gradient, gradient=gradient, g=self.g if gradient else None)
                found[name] = np.where(inside, found[name], np.inf)
            for name, exact in self.exact.items():  # what may be beyond the format may be returned as infinity
                largest = format_of(self.x.dtype).largest
                found[name] = np.where(np.abs(exact.hi) + found[name] < largest, found[name], np.inf)
        return found

    @property
    def parameters(self) -> tuple[Array, Array]:
        """gamma and beta as they broadcast against the rows."""
        turn = (lambda z: z[None, :]) if self.operator == "layer_norm" else (lambda z: z[:, None])
        return turn(self.gamma), turn(self.beta)
