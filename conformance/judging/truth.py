"""The truth about a case: its exact values and their envelopes, each computed once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import attrs
import numpy as np

from ...reference.accuracy import AccuracyClass, Arithmetic
from ...reference.batch_norm import batch_norm_exact
from ...reference.double_double import DD
from ...reference.envelope import OperatorEnvelope, envelope_of
from ...reference.float64 import Float64Values
from ...reference.formats import format_of
from ...reference.normalisation import Normalisation, normalisation
from ...reference.scaled import Scaled
from ..cases.case import Case
from ..kept.methods import CachedMethods, cached_in_memory, cached_on_disk

#: Names of the gradients of the normalisations, by input.
GRADIENTS = {"x": "dx", "gamma": "dgamma", "beta": "dbeta"}


def gradient_name(name: str) -> str:
    """The name of an input's gradient: "dx" of "x", "dgate.z" of "gate.z"."""
    return f"d{name}"


def is_about_gradients(output: str, inputs: Iterable[str]) -> bool:
    """Whether a compared result is a gradient of one of these inputs, or made of one: "dx", "sum of dx"."""
    return not {gradient_name(name) for name in inputs}.isdisjoint(output.split())


def owner_of(name: str) -> str:
    """The name of the input whose shape and dtype an output or gradient has."""
    return "x" if name == "y" else name.removeprefix("new_") if name.startswith("new_") else name[1:]


#: Tangents or cotangents by the names of the inputs whose shapes they have: x, gamma, beta.
Directions = Mapping[str, Any]


def directions_in_order(directions: Directions) -> tuple[Any, Any, Any]:
    """The directions of x, gamma and beta; None for an input that is absent."""
    return directions["x"], directions.get("gamma"), directions.get("beta")


@attrs.define(eq=False)
class CaseUnderConventions(CachedMethods):
    """A case with the conventions that change its exact values."""

    case: Case
    #: "exact" or "float32": whether eps is rounded to float32 first.
    eps_dtype: str = "exact"
    #: "biased" or "bessel": the variance that the running variance of batch_norm averages.
    running_variance: str = "biased"

    @property
    def settings(self) -> dict[str, Any]:
        """The case's settings, with eps rounded as the convention says."""
        settings = dict(self.case.settings)
        if self.eps_dtype == "float32" and "eps" in settings:
            settings["eps"] = float(np.float32(settings["eps"]))
        return settings


@attrs.define(eq=False)
class Truth(CaseUnderConventions):
    """Exact outputs, gradients and envelopes of one case, under the conventions that change values."""

    @property
    def identity(self) -> Hashable:
        return self.case.content, self.eps_dtype, self.running_variance

    @property
    def _narrower(self) -> bool:
        """Whether all inputs are narrower than float64, so that float64 is exact enough."""
        return all(v is None or v.dtype != np.float64 for v in self.case.inputs.values())

    @property
    def _float64(self) -> Float64Values:
        """Plain float64 values. They do not depend on the arithmetic, so any will do."""
        return Float64Values(self.envelope(arithmetic_of(self.case, AccuracyClass())))

    @property
    def _arguments(self) -> tuple[Any, ...]:
        return tuple(self.case.inputs.values())

    @property
    def _exact(self) -> Normalisation:
        """The call in double-double, which is accurate enough for float64 data."""
        return normalisation(self.case.operator, self.case.inputs, self.settings)

    @property
    def _values(self) -> Float64Values | Normalisation:
        """The call, as accurately as its dtype asks for."""
        return self._float64 if self._narrower else self._exact

    @property
    def bessel(self) -> bool:
        return self.running_variance == "bessel"

    @cached_on_disk
    def outputs(self) -> dict[str, DD]:
        """The exact y and, for batch_norm, the exact new running statistics."""
        if self._narrower and self._judged_in_rows:
            values = self._float64
            return {"y": values.y()} | (self._running(values) if self.case.record.statistics else {})
        if not self.case.record.statistics:
            with np.errstate(all="ignore"):
                return {"y": self._exact.y()}
        y, new_mean, new_var = batch_norm_exact(*self._arguments, **self.settings)
        if self.bessel and self.settings["training"]:
            new_var = self._with_bessel(new_var)
        return {"y": y, "new_running_mean": new_mean, "new_running_var": new_var}

    @property
    def _judged_in_rows(self) -> bool:
        """Whether the groups have values. A batch without samples has none and is computed separately."""
        return self.case.x.size > 0

    @cached_on_disk
    def nearly(self) -> np.ndarray:
        """y in float64 arithmetic for any data: near enough for the size of a bound."""
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
        """The running variance that averages n/(n-1) v instead of v; a single value has v = 0."""
        found = self._exact
        n = found.layout.size
        if n < 2:
            return biased
        old, momentum = found.statistic("running_var", self.case.inputs["running_var"]), self.settings["momentum"]
        factor = Scaled.of(float(n)) / Scaled.of(float(n - 1))
        kept = Scaled.of(1.0) - Scaled.of(momentum)
        new = kept * old + Scaled.of(momentum) * (factor * found.rows.variance)
        return found.layout.to_parameter_shape(new).to_dd()

    @cached_on_disk
    def gradients(self, g: np.ndarray | None = None) -> dict[str, DD | None]:
        """The exact "dx", "dgamma" and "dbeta" for a cotangent, by default that of the case."""
        g = self.case.g if g is None else g
        with np.errstate(all="ignore"):
            found = self._values.vjp(g)
        named = dict(zip(GRADIENTS, found, strict=True))
        return {GRADIENTS[name]: named[name] for name in self.case.record.differentiable}

    @cached_on_disk
    def jvp(self, tangents: Directions) -> DD:
        """The exact tangent of y for tangents of x, gamma and beta."""
        with np.errstate(all="ignore"):
            return self._values.jvp(*directions_in_order(tangents))

    @cached_on_disk
    def jvp_bound(self, arithmetic: Arithmetic, tangents: Directions) -> np.ndarray:
        """The envelope of that tangent."""
        return self.envelope(arithmetic).jvp(*directions_in_order(tangents))

    @cached_on_disk
    def jvp_jvp(self, tangents: Directions, again: Directions) -> DD:
        """The exact derivative, in the direction ``again``, of the tangent of y for tangents of x and gamma."""
        directions = *directions_in_order(tangents)[:2], *directions_in_order(again)[:2]
        with np.errstate(all="ignore"):
            return self._values.jvp_jvp(*directions)

    @cached_on_disk
    def jvp_jvp_bound(self, arithmetic: Arithmetic, tangents: Directions, again: Directions) -> np.ndarray:
        """The envelope of that derivative."""
        return self.envelope(arithmetic).jvp_jvp(*directions_in_order(tangents)[:2], *directions_in_order(again)[:2])

    @cached_on_disk
    def vjp_vjp(self, g: np.ndarray, second: Directions) -> dict[str, DD | None]:
        """The exact second-order "x", "gamma" and "g"."""
        with np.errstate(all="ignore"):
            found = self._values.vjp_vjp(g, *directions_in_order(second))
        return dict(zip(("x", "gamma", "g"), found, strict=True))

    @cached_on_disk
    def vjp_vjp_bounds(self, arithmetic: Arithmetic, g: np.ndarray, second: Directions) -> dict[str, np.ndarray]:
        """The envelopes of these second-order gradients."""
        return self.envelope(arithmetic).vjp_vjp(g, *directions_in_order(second))

    def nested(self, kind: str, tangents: Directions, other: Any) -> dict[str, DD | None]:
        """
        The exact derivative of a derivative; ``kind`` is from adapters.binding.NESTED. That of "jvp_jvp" is named "y".

        Either mode over the other gives the second derivative of <y, g> in the direction of the tangents, as the vjp of
        the vjp does.
        """
        return {"y": self.jvp_jvp(tangents, other)} if kind == "jvp_jvp" else self.vjp_vjp(other, tangents)

    def nested_bounds(
        self, kind: str, arithmetic: Arithmetic, tangents: Directions, other: Any
    ) -> dict[str, np.ndarray]:
        """The envelopes of these derivatives."""
        if kind == "jvp_jvp":
            return {"y": self.jvp_jvp_bound(arithmetic, tangents, other)}
        return self.vjp_vjp_bounds(arithmetic, other, tangents)

    @cached_in_memory
    def envelope(self, arithmetic: Arithmetic) -> OperatorEnvelope:
        """The envelope of this case in one arithmetic."""
        return envelope_of(self.case.operator, **self.case.inputs, **self.settings, arithmetic=arithmetic)

    @cached_in_memory
    def output_bounds(self, arithmetic: Arithmetic) -> dict[str, np.ndarray]:
        """The envelope of every output."""
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
        return bounds

    @cached_in_memory
    def gradient_bounds(self, arithmetic: Arithmetic, g: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """The envelope of every gradient for a cotangent."""
        return self.envelope(arithmetic).gradients(self.case.g if g is None else g)

    @cached_on_disk
    def bound(
        self, name: str, arithmetic: Arithmetic, g: np.ndarray | None = None, *, range_rule: bool = True
    ) -> np.ndarray:
        """The envelope of one output or gradient. It is infinite, so nothing is judged, outside the range rules."""
        gradient = name in GRADIENTS.values()
        envelope = (self.gradient_bounds(arithmetic, g) if gradient else self.output_bounds(arithmetic))[name]
        return self._within(name, arithmetic, envelope, g) if range_rule and name != "dbeta" else envelope

    def _within(self, name: str, arithmetic: Arithmetic, envelope: np.ndarray, g: np.ndarray | None) -> np.ndarray:
        """The envelope made infinite outside the range rules."""
        whole = self.envelope(arithmetic)
        if name == "dx":
            inside = whole.in_range(gradient=True, g=self.case.g if g is None else g)
        else:
            inside = whole.in_range(y=name == "y")
        if name not in ("y", "dx"):  # a sum over groups is judged only if all the groups are in range,
            layout = self.case.layout  # and a channel's value only if all of the channel is
            inside = layout.stretches(layout.rows(inside)).all(axis=(0, 2)).reshape(layout.parameter_shape)
        # An intermediate value may be as large as the envelope, so the envelope too must not overflow (R6).
        return np.where(inside & (envelope < arithmetic.largest / 4), envelope, np.inf)


def arithmetic_of(case: Case, accuracy: AccuracyClass) -> Arithmetic:
    """Return the arithmetic of a case's dtypes in an accuracy class, without rules that do not apply to it."""
    held = next(
        (
            value.dtype
            for name, value in case.inputs.items()
            if name != "x" and value is not None and value.dtype != case.x.dtype
        ),
        case.x.dtype,
    )
    return _arithmetic(case.x.dtype, held, case.g.dtype, accuracy, case.record.centred)


@lru_cache(maxsize=256)
def _arithmetic(data: Any, held: Any, result: Any, accuracy: AccuracyClass, centred: bool) -> Arithmetic:
    wide = not format_of(data).narrow
    if wide:
        accuracy = attrs.evolve(accuracy, storage="H0")
    if wide or centred:
        accuracy = attrs.evolve(accuracy, cast="last")
    return Arithmetic.of(data, held, accuracy, result)
