"""Calls of the composed operators: random ones of every make, and the witnesses of extreme gates and logits."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import numpy as np

from normspec.reference.accuracy import AccuracyClass, Arithmetic
from normspec.reference.composed import Composed
from normspec.spec.parts import Part

from .envelope_judge import NORMATIVE

Array = np.ndarray
OPERATORS = ("residual", "pre_norm", "post_norm", "highway", "mhc")
#: Logits and gates where exp overflows or vanishes in one format or another.
EXTREME = (0.0, 1.0, -1.0, 8.0, -8.0, 30.0, -30.0, 100.0, -100.0, 1e4, -1e4, np.inf, -np.inf)


@attrs.frozen(eq=False)
class Call:
    """One call, and cotangents for all that it has derivatives of."""

    operator: str
    inputs: Mapping[str, Array | None]
    settings: Mapping[str, Any]
    parts: Mapping[str, Any]
    g: Array
    #: Tangents, and cotangents of the gradients, by input.
    second: Mapping[str, Array]

    def composed(self, arithmetic: Arithmetic) -> Composed:
        """The reference's knowledge of this call."""
        return Composed(self.operator, self.inputs, self.settings, self.parts, arithmetic)

    def arithmetic(self, accuracy: AccuracyClass = NORMATIVE) -> Arithmetic:
        """The arithmetic of its tensors in a class."""
        held = next((v.dtype for v in self.inputs.values() if v is not None and v.dtype != self.g.dtype), None)
        return Arithmetic.of(self.g.dtype, held, accuracy)

    def cast(self, dtype: Any, parameters: Any = None) -> Call:
        """The same call on tensors of another dtype; gamma, beta and logits may have a different one."""
        held = dict.fromkeys(("gamma", "beta", "logits"), parameters or dtype)

        def convert(tensors: Mapping[str, Any]) -> dict[str, Any]:
            return {k: None if v is None else v.astype(held.get(k, dtype)) for k, v in tensors.items()}

        return attrs.evolve(self, inputs=convert(self.inputs), second=convert(self.second), g=self.g.astype(dtype))


class Draw:
    """The tensors and parts of one call, drawn when they are requested."""

    def __init__(self, rng: np.random.Generator, shape: tuple[int, ...]) -> None:
        self.rng, self.shape, self.inputs = rng, shape, {}

    def normal(self, *shape: int, scale: float = 1.0) -> Array:
        return scale * self.rng.standard_normal(shape)

    def part(self, role: str, *kinds: str) -> Part:
        """A part of one of these kinds, its leaves drawn."""
        kind, n = str(self.rng.choice(kinds)), self.shape[-1]
        if kind == "cascade":
            inner = tuple(self.part(f"{role}.{k}", "linear", "tanh", "scaled", "convolution") for k in range(2))
            return Part("cascade", inner=inner)
        if kind == "dropout":
            self.inputs[f"{role}.mask"] = 2.0 * (self.rng.random(self.shape) < 0.5)
            return Part("dropout", (f"{role}.mask",), inner=(self.part(f"{role}.0", "linear"),))
        leaf, size = {
            "leaf": ("h", self.shape),
            "linear": ("w", (n, n)),
            "tanh_linear": ("w", (n, n)),
            "convolution": ("k", (3, n)),
            "causal": ("k", (3, n)),
        }.get(kind, ("", ()))
        if not leaf:
            return Part(kind, number=float(2.0 ** self.rng.integers(-2, 3)))
        self.inputs[f"{role}.{leaf}"] = self.normal(*size, scale=1 / np.sqrt(n) if leaf == "w" else 1.0)
        return Part(kind, (f"{role}.{leaf}",), number=float(self.rng.integers(1, 3)))


CONVOLUTIONS = ("convolution", "causal")
PLAIN = ("leaf", "linear", "tanh_linear", *CONVOLUTIONS, "cascade", "square", "tanh", "scaled", "identity", "negated")


def draw(operator: str, seed: int, shape: tuple[int, ...] = (2, 3)) -> Call:
    """A random call in float64, of any make: parts, None, scales, logits and gates are drawn."""
    rng = np.random.default_rng([seed, OPERATORS.index(operator)])
    d = Draw(rng, shape)
    scale = float(2.0 ** rng.integers(-6, 7)) * (rng.random() < 0.5) or 1.0
    offset = float(rng.choice([0, 0, 0, 4, 100]))
    d.inputs["x"] = scale * (offset + d.normal(*shape))
    chance = lambda part: part if rng.random() < 0.4 else None  # noqa: E731
    parts: dict[str, Any]
    settings: dict[str, Any] = {}
    if operator == "residual":
        parts = {"branch": d.part("branch", *PLAIN, "dropout")}
        parts |= {"shortcut": chance(d.part("shortcut", "linear", "scaled"))}
        parts |= {"activation": chance(d.part("activation", "tanh", "square"))}
    elif operator == "highway":
        parts = {
            "transform": d.part("transform", *PLAIN),
            "gate": d.part("gate", "leaf", "leaf", "linear", "tanh_linear"),
        }
        parts |= {"carry": chance(d.part("carry", "leaf", "linear"))}
        for name in ("gate.h", "carry.h"):
            if name in d.inputs:
                d.inputs[name] *= float(rng.choice([1, 4, 30]))
    elif operator == "mhc":
        count = int(rng.choice([1, 2, 3, 12]))
        parts = {"branches": tuple(d.part(f"branches.{k}", *PLAIN) for k in range(count))}
        parts |= {"fuse": chance(Part(str(rng.choice(["fuse_sum", "fuse_product", "fuse_weighted", "fuse_coupled"]))))}
        if parts["fuse"] is None:
            d.inputs["logits"] = d.normal(count) * float(rng.choice([1, 8, 100]))
        elif parts["fuse"].kind == "fuse_weighted":
            parts["fuse"] = dataclasses.replace(parts["fuse"], leaves=("fuse.a",))
            d.inputs["fuse.a"] = d.normal(count, shape[-1])
    else:
        parts, settings = {"sublayer": d.part("sublayer", *PLAIN)}, {"eps": float(rng.choice([1e-12, 1e-5, 1e-3, 0.1]))}
        d.inputs |= {"gamma": chance(d.normal(shape[-1])), "beta": chance(d.normal(shape[-1]))}
    used = set(leaves_of(parts))
    inputs = {k: v for k, v in d.inputs.items() if k in ("x", "gamma", "beta", "logits") or k in used}
    second = {k: d.normal(*v.shape) for k, v in inputs.items() if v is not None and not k.endswith("mask")}
    g = (0.3 + d.normal(*shape)) * float(2.0 ** rng.integers(-4, 5))
    return Call(operator, inputs, settings, parts, g, second)


def leaves_of(parts: Mapping[str, Any]) -> Iterator[str]:
    """The names of all leaves."""
    for part in parts.values():
        for one in part if isinstance(part, tuple) else (part,):
            if one is not None:
                yield from one.all_leaves()


def highway_witness(scale_x: float = 1.0, scale_h: float = 1.0, scale_g: float = 1.0, *, carry: bool = False) -> Call:
    """Every extreme gate, with a transform and a carry that are leaves."""
    rng, shape = np.random.default_rng(3), (1, len(EXTREME))
    inputs = {"x": scale_x * rng.standard_normal(shape), "transform.h": scale_h * rng.standard_normal(shape)}
    inputs["gate.z"] = np.array([EXTREME])
    parts: dict[str, Any] = {
        "transform": Part("leaf", ("transform.h",)),
        "gate": Part("leaf", ("gate.z",)),
        "carry": None,
    }
    if carry:
        inputs["carry.z"] = np.array([EXTREME[3:] + EXTREME[:3]])
        parts["carry"] = Part("leaf", ("carry.z",))
    second = {name: rng.standard_normal(shape) for name in inputs}
    return Call("highway", inputs, {}, parts, scale_g * rng.standard_normal(shape), second)


#: Logits: ties, spreads of 8, 100 and 10^4, one of -inf.
LOGITS = {
    "one": [3.0],
    "ties": [0.5, 0.5, 0.5, 0.5],
    "tied at 1e4": [1e4, 1e4, -1e4],
    "spread 8": [0.0, 3.0, 8.0],
    "spread 100": [-50.0, 50.0, 49.5],
    "spread 1e4": [-5e3, 5e3, 4999.0, 0.0],
    "one of -inf": [0.0, -np.inf, 1.0],
    "twelve": list(np.linspace(-30, 30, 12)),
}


def mhc_witness(logits: list[float], *, scale_h: float = 1.0, scale_g: float = 1.0, equal: bool = False) -> Call:
    """Branches that are leaves, all equal or not, under given logits."""
    rng, shape, count = np.random.default_rng(4), (2, 3), len(logits)
    inputs: dict[str, Array] = {"x": rng.standard_normal(shape), "logits": np.array(logits)}
    names = [f"branches.{0 if equal else k}.h" for k in range(count)]
    inputs |= {name: scale_h * rng.standard_normal(shape) for name in dict.fromkeys(names)}
    parts = {"branches": tuple(Part("leaf", (name,)) for name in names), "fuse": None}
    second = {name: rng.standard_normal(value.shape) for name, value in inputs.items()}
    return Call("mhc", inputs, {}, parts, scale_g * rng.standard_normal(shape), second)
