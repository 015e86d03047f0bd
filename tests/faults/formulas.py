"""The composed operators' formulas, evaluated plainly in float64: what the sound variants are held against."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from normspec.spec.parts import Part

from .situations import Composition

Inputs = Mapping[str, Any]


def part_value(part: Part | None, x: Any, inputs: Inputs) -> Any:
    """What a part returns for an array, or for a list of them."""
    if part is None:
        return x
    leaves = [inputs[name] for name in part.leaves]
    plain = {
        "identity": lambda: x,
        "view": lambda: x,
        "zero": lambda: 0 * x,
        "leaf": lambda: leaves[0],
        "negated": lambda: -x,
        "square": lambda: x * x,
        "relu": lambda: np.maximum(x, 0),
        "tanh": lambda: np.tanh(x),
        "linear": lambda: x @ leaves[0],
        "tanh_linear": lambda: np.tanh(x @ leaves[0]),
        "fuse_sum": lambda: sum(x),
        "fuse_product": lambda: np.prod(np.stack(x), axis=0),
        "fuse_weighted": lambda: sum(a * y for a, y in zip(leaves[0], x, strict=True)),
        "fuse_coupled": lambda: sum(x) + sum(np.tanh(p) * q for p, q in pairwise(x)),
    }
    return plain[part.kind]()


def layer_norm(x: np.ndarray, gamma: Any, beta: Any, eps: float) -> np.ndarray:
    """LayerNorm over the last axis."""
    xhat = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + eps)
    return xhat * (1 if gamma is None else gamma) + (0 if beta is None else beta)


def logistic(z: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-z))."""
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-z))


def value(s: Composition, inputs: Inputs) -> np.ndarray:
    """y of a situation whose inputs are replaced."""
    x, parts = inputs["x"], s.parts

    def of(role: str, handed: Any = x) -> Any:
        return part_value(parts.get(role), handed, inputs)

    if s.operator == "residual":
        return of("activation", of("shortcut") + of("branch"))
    if s.operator == "pre_norm":
        return x + of("sublayer", layer_norm(x, inputs["gamma"], inputs["beta"], s.eps))
    if s.operator == "post_norm":
        return layer_norm(x + of("sublayer"), inputs["gamma"], inputs["beta"], s.eps)
    if s.operator == "highway":
        t = logistic(of("gate"))
        return of("transform") * t + x * (1 - t if parts.get("carry") is None else logistic(of("carry")))
    outputs = [part_value(branch, x, inputs) for branch in parts["branches"]]
    if parts.get("fuse") is not None:
        return x + part_value(parts["fuse"], outputs, inputs)
    e = np.exp(inputs["logits"] - np.max(inputs["logits"]))
    return x + sum(w * y for w, y in zip(e / e.sum(), outputs, strict=True))


def widened(s: Composition) -> dict[str, Any]:
    """The situation's inputs in float64."""
    return {name: None if a is None else np.asarray(a, np.float64) for name, a in s.inputs.items()}


STEP = 1e-5


def slope(of: Any, inputs: Inputs, directions: Mapping[str, np.ndarray]) -> Any:
    """The central difference of a function of the inputs along directions by name."""

    def at(sign: float) -> Any:
        along = {name: inputs[name] + sign * STEP * directions[name] for name in directions}
        return of({**inputs, **along})

    return (at(1) - at(-1)) / (2 * STEP)
