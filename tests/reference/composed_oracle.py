"""The composed operators in arbitrary precision, by the textbook formulas on jets: the standard for the reference.

Derivatives are taken along directions, with one evaluation for each element of each input; use small arrays. Nothing
here is shared with the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

from .jets import jets, mapped, part
from .oracle import exact

#: 120 decimal digits, and room for terms that differ by the range of float64 and cancel.
BITS = 400


def applied(p: Any, x: np.ndarray, leaves: Mapping[str, np.ndarray]) -> np.ndarray:
    """A part's result."""
    own = [leaves[name] for name in p.leaves]
    if p.kind == "cascade":
        for inner in p.inner:
            x = applied(inner, x, leaves)
        return x
    if p.kind in ("convolution", "causal"):
        (k,), n, d, last = own, x.shape[-2], int(p.number), 2 if p.kind == "causal" else 1
        result = jets(np.full(x.shape, mpf(0), dtype=object))
        for t in range(n):
            for j in range(3):
                source = t + (j - last) * d
                if 0 <= source < n:
                    result[..., t, :] = result[..., t, :] + k[j] * x[..., source, :]
        return result
    return {
        "identity": lambda: x,
        "zero": lambda: x * mpf(0),
        "leaf": lambda: own[0],
        "negated": lambda: -x,
        "scaled": lambda: x * mpf(p.number),
        "linear": lambda: x @ own[0],
        "tanh_linear": lambda: mapped("tanh", x @ own[0]),
        "square": lambda: x * x,
        "tanh": lambda: mapped("tanh", x),
        "dropout": lambda: applied(p.inner[0], x, leaves) * own[0],
    }[p.kind]()


def fused(p: Any, ys: list[np.ndarray], leaves: Mapping[str, np.ndarray]) -> np.ndarray:
    """A fusing part's result."""
    if p.kind == "fuse_product":
        result = ys[0]
        for y in ys[1:]:
            result = result * y
        return result
    terms = list(ys)
    if p.kind == "fuse_weighted":
        terms = [leaves[p.leaves[0]][k] * y for k, y in enumerate(ys)]
    if p.kind == "fuse_coupled":
        terms += [mapped("tanh", ys[k - 1]) * ys[k] for k in range(1, len(ys))]
    return sum(terms[1:], terms[0])


def normalised(s: np.ndarray, inputs: Mapping[str, np.ndarray], eps: float) -> np.ndarray:
    """LN over the last axis."""
    n = s.shape[-1]
    d = s - s.sum(axis=-1, keepdims=True) / mpf(n)
    variance = (d * d).sum(axis=-1, keepdims=True) / mpf(n)
    y = d / mapped("sqrt", variance + mpf(eps))
    y = y * inputs["gamma"] if "gamma" in inputs else y
    return y + inputs["beta"] if "beta" in inputs else y


def forward(operator: str, inputs: Mapping[str, np.ndarray], settings: Mapping[str, Any], parts: Mapping[str, Any]):
    """y as jets."""
    x = inputs["x"]
    call = lambda role: applied(parts[role], x, inputs)  # noqa: E731
    if operator == "residual":
        total = (x if parts.get("shortcut") is None else call("shortcut")) + call("branch")
        return total if parts.get("activation") is None else applied(parts["activation"], total, inputs)
    if operator == "pre_norm":
        return x + applied(parts["sublayer"], normalised(x, inputs, settings["eps"]), inputs)
    if operator == "post_norm":
        return normalised(x + call("sublayer"), inputs, settings["eps"])
    if operator == "highway":
        z = call("gate")
        c = mapped("logistic", -z) if parts.get("carry") is None else mapped("logistic", call("carry"))
        return call("transform") * mapped("logistic", z) + x * c
    ys = [applied(branch, x, inputs) for branch in parts["branches"]]
    if parts.get("fuse") is not None:
        return x + fused(parts["fuse"], ys, inputs)
    weights = mapped("exp", inputs["logits"] - max(part(inputs["logits"], "z")))
    total = weights.sum()
    return x + sum((y * (w / total) for w, y in zip(weights, ys, strict=True)), x * mpf(0))


class Oracle:
    """One call, exactly: `inputs` are float64 arrays by name, parts are those of the reference."""

    def __init__(self, operator: str, inputs: Mapping[str, Any], settings: Mapping[str, Any], parts: Any) -> None:
        self.operator, self.settings, self.parts = operator, settings, parts
        with mpmath.workprec(BITS):
            self.inputs = {name: exact(value) for name, value in inputs.items() if value is not None}

    def _y(self, a: Mapping[str, Any] | None = None, b: Mapping[str, Any] | None = None) -> np.ndarray:
        moved = {name: jets(value, (a or {}).get(name), (b or {}).get(name)) for name, value in self.inputs.items()}
        return forward(self.operator, moved, self.settings, self.parts)

    def y(self) -> np.ndarray:
        """The result."""
        with mpmath.workprec(BITS):
            return part(self._y(), "z")

    def jvp(self, tangents: Mapping[str, Any]) -> np.ndarray:
        """The derivative of y along tangents."""
        with mpmath.workprec(BITS):
            return part(self._y({name: exact(value) for name, value in tangents.items()}), "a")

    def gradients(self, g: np.ndarray) -> dict[str, np.ndarray]:
        """The derivative of sum(y g) by each element of each input."""
        return self._each(g, None, "b")

    def vjp_vjp(self, g: np.ndarray, second: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The derivatives of sum <gradient, second>, which is that of sum(y g) along `second`."""
        found = self._each(g, {name: exact(value) for name, value in second.items()}, "m")
        return {**found, "g": self.jvp(second)}

    def _each(self, g: np.ndarray, along: Mapping[str, Any] | None, coefficient: str) -> dict[str, np.ndarray]:
        with mpmath.workprec(BITS):
            cotangent, found = exact(g), {}
            for name, value in self.inputs.items():
                if name.endswith("mask"):
                    continue
                found[name] = np.empty(value.shape, dtype=object)
                for index in np.ndindex(value.shape):
                    direction = np.full(value.shape, mpf(0), dtype=object)
                    direction[index] = mpf(1)
                    y = part(self._y(along, {name: direction}), coefficient)
                    found[name][index] = (y * cotangent).sum()
            return found
