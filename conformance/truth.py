"""The truth about a case: exact values, and the envelope around them, each worked out once."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ..reference.accuracy import AccuracyClass, Arithmetic
from ..reference.batch_norm import (
    batch_norm_exact,
    batch_norm_jvp_exact,
    batch_norm_jvp_jvp_exact,
    batch_norm_vjp_exact,
    batch_norm_vjp_vjp_exact,
)
from ..reference.double_double import DD, add, div, mul
from ..reference.envelope import OperatorEnvelope, batch_norm_envelope, layer_norm_envelope
from ..reference.float64 import Float64Values
from ..reference.formats import format_of
from ..reference.layer_norm import (
    layer_norm_exact,
    layer_norm_jvp_exact,
    layer_norm_jvp_jvp_exact,
    layer_norm_vjp_exact,
    layer_norm_vjp_vjp_exact,
)
from .cases.case import Case

_EXACT = {
    "layer_norm": (
        layer_norm_exact,
        layer_norm_vjp_exact,
        layer_norm_jvp_exact,
        layer_norm_vjp_vjp_exact,
        layer_norm_jvp_jvp_exact,
    ),
    "batch_norm": (
        batch_norm_exact,
        batch_norm_vjp_exact,
        batch_norm_jvp_exact,
        batch_norm_vjp_vjp_exact,
        batch_norm_jvp_jvp_exact,
    ),
}

#: Names of the gradients of the normalisations, by the input they belong to.
GRADIENTS = {"x": "dx", "gamma": "dgamma", "beta": "dbeta"}


def gradient_name(name: str) -> str:
    """The name of an input's gradient: "dx" of "x", "dgate.z" of "gate.z"."""
    return f"d{name}"


def owner_of(name: str) -> str:
    """The input that an output or gradient has the shape and dtype of."""
    return "x" if name == "y" else name.removeprefix("new_") if name.startswith("new_") else name[1:]


@attrs.define(eq=False)
class Truth:
    """Exact outputs, gradients and envelopes of one case, under the conventions that change values."""

    case: Case
    #: "exact" or "float32": whether eps is rounded to float32 first.
    eps_dtype: str = "exact"
    #: "biased" or "bessel": what the running variance averages.
    running_variance: str = "biased"
    _outputs: dict[str, DD] | None = None
    _gradients: dict[int, dict[str, DD | None]] = attrs.field(factory=dict)
    _envelopes: dict[Arithmetic, OperatorEnvelope] = attrs.field(factory=dict)
    _bounds: dict[Any, Any] = attrs.field(factory=dict)

    @property
    def _narrower(self) -> bool:
        """Whether all of the data is narrower than float64, so that float64 is exact enough."""
        return all(v is None or v.dtype != np.float64 for v in self.case.inputs.values())

    @property
    def _float64(self) -> Float64Values:
        """Plain float64 values; any arithmetic will do, they do not depend on it."""
        return Float64Values(self.envelope(arithmetic_of(self.case, AccuracyClass())))

    @property
    def settings(self) -> dict[str, Any]:
        settings = dict(self.case.settings)
        if self.eps_dtype == "float32":
            settings["eps"] = float(np.float32(settings["eps"]))
        return settings

    @property
    def arguments(self) -> tuple[Any, ...]:
        return tuple(self.case.inputs.values())

    @property
    def bessel(self) -> bool:
        return self.running_variance == "bessel"

    def outputs(self) -> dict[str, DD]:
        """The exact y and, for batch_norm, the exact new running statistics."""
        if self._outputs is None and self._narrower and self._judged_in_rows:
            values = self._float64
            self._outputs = {"y": values.y()}
            if self.case.record.statistics:
                self._outputs |= self._running(values)
        if self._outputs is None:
            result = _EXACT[self.case.operator][0](*self.arguments, **self.settings)
            if not self.case.record.statistics:
                self._outputs = {"y": result}
            else:
                y, new_mean, new_var = result
                if self.bessel and self.settings["training"]:
                    new_var = self._with_bessel(new_var)
                self._outputs = {"y": y, "new_running_mean": new_mean, "new_running_var": new_var}
        return self._outputs

    @property
    def _judged_in_rows(self) -> bool:
        """Whether there are values in every group: a batch without samples is a case of its own."""
        return self.case.x.size > 0

    def nearly(self) -> np.ndarray:
        """y in float64 arithmetic, whatever the data: near enough for the size of a bound."""
        return self._float64.y().hi

    def _running(self, values: Float64Values) -> dict[str, DD]:
        settings, found = self.settings, {}
        for name, variance in (("running_mean", False), ("running_var", True)):
            old = np.asarray(self.case.inputs[name])
            if settings["training"]:
                moved = values.running(old, settings["momentum"], variance=variance, bessel=self.bessel)
            else:
                moved = DD(old.astype(np.float64), np.zeros(old.shape))
            found[f"new_{name}"] = moved
        return found

    def _with_bessel(self, biased: DD) -> DD:
        """The running variance that averages n/(n-1) v in place of v; one value counts as v = 0."""
        x, settings = self.case.x, self.settings
        axis = settings["channel_axis"] % x.ndim
        n = x.size // x.shape[axis] if x.shape[axis] else 0
        if n < 2:
            return biased
        ones = np.ones_like(biased.hi)
        zero = np.zeros_like(ones)
        momentum = DD(ones * settings["momentum"], zero)
        _, _, plain = batch_norm_exact(
            self.case.x,
            None,
            None,
            np.zeros_like(ones),
            np.zeros_like(ones),
            **{**settings, "momentum": 1.0},
        )
        old = DD(np.asarray(self.case.inputs["running_var"]).astype(np.float64), zero)
        factor = div(DD(ones * n, zero), DD(ones * (n - 1), zero))
        keep = add(DD(ones, zero), DD(-momentum.hi, zero))
        with np.errstate(all="ignore"):
            return add(mul(keep, old), mul(momentum, mul(factor, plain)))

    def gradients(self, g: np.ndarray | None = None) -> dict[str, DD | None]:
        """The exact "dx", "dgamma", "dbeta" for a cotangent, the case's own by default."""
        g = self.case.g if g is None else g
        key = id(g)
        if key not in self._gradients:
            if self._narrower:
                found = self._float64.gradients(g)
            else:
                found = _EXACT[self.case.operator][1](*self.arguments, g, **self.settings)
            self._gradients[key] = dict(zip(GRADIENTS.values(), found, strict=True))
            self._bounds["keep", key] = g  # an id stands for its array only while the array lives
        return self._gradients[key]

    def jvp(self, tangents: tuple[Any, ...]) -> DD:
        """The exact tangent of y for tangents of x, gamma and beta."""
        if self._narrower:
            return self._float64.jvp(*tangents)
        return _EXACT[self.case.operator][2](*self.arguments, *tangents, **self.settings)

    def jvp_jvp(self, tangents: tuple[Any, ...], again: tuple[Any, ...]) -> DD:
        """The exact derivative, in the direction ``again``, of the tangent of y for tangents of x, gamma and beta."""
        if self._narrower:
            return self._float64.jvp_jvp(*tangents[:2], *again[:2])
        return _EXACT[self.case.operator][4](*self.arguments, *tangents, *again, **self.settings)

    def vjp_vjp(self, g: np.ndarray, second: tuple[Any, ...]) -> dict[str, DD | None]:
        """The exact second-order "x", "gamma" and "g"."""
        if self._narrower:
            found = self._float64.vjp_vjp(g, *second)
            return dict(zip(("x", "gamma", "g"), found, strict=True))
        found = _EXACT[self.case.operator][3](*self.arguments, g, *second, **self.settings)
        return dict(zip(("x", "gamma", "g"), found, strict=True))

    def envelope(self, arithmetic: Arithmetic) -> OperatorEnvelope:
        """The envelope of this case in one arithmetic."""
        if arithmetic not in self._envelopes:
            settings, (x, gamma, beta, *running) = self.settings, self.arguments
            if not self.case.record.has_channels:
                self._envelopes[arithmetic] = layer_norm_envelope(
                    x, gamma, beta, eps=settings["eps"], axes=settings["axes"], arithmetic=arithmetic
                )
            else:
                self._envelopes[arithmetic] = batch_norm_envelope(
                    x,
                    gamma,
                    beta,
                    *running,
                    eps=settings["eps"],
                    training=settings["training"],
                    channel_axis=settings["channel_axis"],
                    arithmetic=arithmetic,
                )
        return self._envelopes[arithmetic]

    def output_bounds(self, arithmetic: Arithmetic) -> dict[str, np.ndarray]:
        """The envelope of every output."""
        key = ("outputs", arithmetic)
        if key not in self._bounds:
            envelope = self.envelope(arithmetic)
            with np.errstate(all="ignore"):
                bounds = {"y": envelope.y()}
            if self.case.record.statistics:
                old = self.case.inputs["running_mean"], self.case.inputs["running_var"]
                if self.settings["training"]:
                    bounds |= envelope.running(*old, self.settings["momentum"], bessel=self.bessel)
                else:
                    zero = np.zeros(np.asarray(old[0]).shape)
                    bounds |= {"new_running_mean": zero, "new_running_var": zero}
            self._bounds[key] = bounds
        return self._bounds[key]

    def gradient_bounds(self, arithmetic: Arithmetic, g: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """The envelope of every gradient for a cotangent."""
        g = self.case.g if g is None else g
        key = ("gradients", arithmetic, id(g))
        if key not in self._bounds:
            self._bounds[key] = self.envelope(arithmetic).gradients(g)
            self._bounds["keep", id(g)] = g
        return self._bounds[key]

    def bound(
        self, name: str, arithmetic: Arithmetic, g: np.ndarray | None = None, *, range_rule: bool = True
    ) -> np.ndarray:
        """The envelope of one output or gradient; infinite, and so not judged, outside the range rules."""
        gradient = name in GRADIENTS.values()
        envelope = (self.gradient_bounds(arithmetic, g) if gradient else self.output_bounds(arithmetic))[name]
        if not range_rule or name == "dbeta":
            return envelope
        key = (name, arithmetic, id(self.case.g if g is None else g) if gradient else None)
        if key not in self._bounds:
            self._bounds[key] = self._within(name, arithmetic, envelope, g)
        return self._bounds[key]

    def _within(self, name: str, arithmetic: Arithmetic, envelope: np.ndarray, g: np.ndarray | None) -> np.ndarray:
        """An envelope, infinite outside the range rules."""
        whole = self.envelope(arithmetic)
        if name == "dx":
            inside = whole.in_range(gradient=True, gain=True, g=self.case.g if g is None else g)
        else:
            inside = whole.in_range(gain=name == "y")
        if name not in ("y", "dx"):  # a sum over groups is judged where all of them are
            layout = self.case.layout  # and a value of a channel where all of the channel is
            inside = layout.rows(inside).all(axis=1) if layout.shared else inside.all()
        # The envelope, too, is a size that something on the way may reach (R6).
        return np.where(inside & (envelope < arithmetic.largest / 4), envelope, np.inf)


def arithmetic_of(case: Case, accuracy: AccuracyClass) -> Arithmetic:
    """Return the arithmetic of a case's dtypes in an accuracy class; wide dtypes share one in all classes."""
    if not format_of(case.x.dtype).narrow:
        accuracy = attrs.evolve(accuracy, storage="H0")
    held = next(
        (
            value.dtype
            for name, value in case.inputs.items()
            if name != "x" and value is not None and value.dtype != case.x.dtype
        ),
        case.x.dtype,
    )
    return Arithmetic.of(case.x.dtype, held, accuracy, case.g.dtype)
