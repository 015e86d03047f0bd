"""Recipes: which parts a composed operator gets in a case, and what values their leaves hold.

A recipe has a name and defines the part for every role. The leaves are drawn from counter-based generators keyed by the
seed, the leaf's name and its shape, so that one description gives corresponding leaves in every dtype.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from ...reference.formats import Format
from ...spec.parts import Part
from .logits import fusion_logits, gate_logits
from .parameters import tiny_exponent
from .stream import Stream


@attrs.define
class Drawn:
    """The parts of one case while a recipe puts them together, and the leaves that they close over."""

    #: Shape of x, format of x and of every leaf, and format of the parameters.
    shape: tuple[int, ...]
    format: Format
    held: Format
    seed: int
    #: How logits are drawn (logits.py), and the number of branches.
    logits: str
    count: int
    #: x itself, for a part that nearly cancels it.
    x: NDArray[Any]
    inputs: dict[str, NDArray[Any] | None] = attrs.field(factory=dict)
    parts: dict[str, Any] = attrs.field(factory=dict)

    def random(self, name: str, shape: tuple[int, ...]) -> Stream:
        """A stream for the values of one input."""
        return Stream(self.seed, zlib.crc32(name.encode()), *shape)

    def hold(self, name: str, values: NDArray[Any], format: Format | None = None) -> str:
        """Make an input of these values, in the format of x unless another is given; return its name."""
        with np.errstate(all="ignore"):
            self.inputs[name] = values.astype((format or self.format).dtype)
        return name

    def values(self, name: str, exponent: int = 0) -> str:
        """A leaf of x's shape: both signs, neighbours that differ, with zeros and powers of two among them."""
        random = self.random(name, self.shape)
        values = np.ldexp(random.standard_normal(self.shape), random.integers(-2, 3, self.shape))
        flat = values.reshape(-1)
        for place, special in enumerate((-1.0, 0.0, 2.0, -0.5)[: max(0, flat.size - 2)]):
            flat[(5 * place + 1) % flat.size] = special
        return self.hold(name, np.ldexp(values, exponent))

    def nearly_opposed(self, name: str) -> str:
        """A leaf that leaves half of the digits of x in their sum, which has no rounding."""
        digits = round(-math.log2(self.format.unit_roundoff))
        x = self.x.astype(np.float64)
        left = np.ldexp(self.random(name, self.shape).standard_normal(self.shape), -(digits // 2))
        return self.hold(name, left * x - x)

    def gate(self, name: str) -> str:
        """Gate logits of x's shape."""
        return self.hold(name, gate_logits(self.logits, self.shape, self.random(name, self.shape)))

    def matrix(self, name: str) -> str:
        """A square matrix over x's features, of norm near 1, neither symmetric nor orthogonal."""
        n = self.shape[-1]
        return self.hold(name, self.random(name, (n, n)).standard_normal((n, n)) / math.sqrt(max(n, 1)) + 0.25 / n)

    def kernel(self, name: str) -> str:
        """Three taps for each feature, none of them zero."""
        random = self.random(name, (3, self.shape[-1]))
        return self.hold(name, random.choice([-1.0, 1.0], (3, self.shape[-1])) * (0.25 + random.random()))

    def mask(self, name: str) -> str:
        """A dropout mask of p = 1/2: zeros and twos, at least one of each if there is room."""
        values = 2.0 * self.random(name, self.shape).integers(0, 2, self.shape)
        flat = values.reshape(-1)
        flat[:2] = (0.0, 2.0)[: flat.size]
        return self.hold(name, values)

    def fusion(self) -> None:
        """The fusion logits, one for each branch."""
        self.hold("logits", self._fusion_logits(), self.held)

    def _fusion_logits(self) -> NDArray[np.float64]:
        return fusion_logits(self.logits, self.count, self.random("logits", (self.count,)), self.held.largest)

    # -- parts -----------------------------------------------------------------------------------

    def part(self, kind: str, role: str) -> Part:
        """A part of a kind, with leaves named after the role."""
        if kind == "leaf":
            return Part("leaf", (self.values(f"{role}.h"),))
        if kind == "tiny":
            return Part("leaf", (self.values(f"{role}.h", tiny_exponent(self.format)),))
        if kind == "large":  # code may limit it
            return Part("leaf", (self.values(f"{role}.h", _LARGE),))
        if kind == "cancelling":
            return Part("leaf", (self.nearly_opposed(f"{role}.h"),))
        if kind in ("linear", "tanh_linear"):
            return Part(kind, (self.matrix(f"{role}.w"),))
        if kind == "convolution":
            return Part(kind, (self.kernel(f"{role}.k"),), number=2)
        if kind == "scaled":
            return Part(kind, number=-4.0)
        if kind == "opposed":  # nearly all of x is gone from the sum
            opposed = (2.0**-6 - 1) * np.eye(self.shape[-1])
            return Part("linear", (self.hold(f"{role}.w", opposed),))
        if kind == "dropout":
            return Part(kind, (self.mask(f"{role}.mask"),), inner=(self.part("tanh_linear", role),))
        if kind == "dropped_leaf":
            return Part("dropout", (self.mask(f"{role}.mask"),), inner=(self.part("leaf", role),))
        if kind == "cascade":
            first, second = self.part("linear", f"{role}.first"), self.part("tanh_linear", f"{role}.second")
            return Part(kind, inner=(first, second))
        if kind == "counted":
            return Part(kind, inner=(self.part("leaf", role),))
        return Part(kind)


#: Kinds of branch or sublayer, each with a recipe of the same name.
SINGLE = (
    "leaf",
    "tanh_linear",
    "linear",
    "square",
    "scaled",
    "negated",
    "zero",
    "identity",
    "view",
    "convolution",
    "cascade",
    "dropout",
    "dropped_leaf",
    "counted",
    "tiny",
)

#: The exponent of large parts: thousands, which float16 holds.
_LARGE = 10

Recipe = Callable[[Drawn], None]


def _single(role: str, kind: str) -> Recipe:
    def recipe(drawn: Drawn) -> None:
        drawn.parts[role] = drawn.part(kind, role)

    return recipe


def _residual(branch: str, shortcut: str = "", activation: str = "") -> Recipe:
    def recipe(drawn: Drawn) -> None:
        drawn.parts["branch"] = drawn.part(branch, "branch")
        if shortcut == "shared":
            drawn.parts["shortcut"] = Part("linear", drawn.parts["branch"].leaves)
        elif shortcut:
            drawn.parts["shortcut"] = drawn.part(shortcut, "shortcut")
        if activation:
            drawn.parts["activation"] = Part(activation)

    return recipe


def _highway(transform: str, gate: str, carry: str = "") -> Recipe:
    def logits(drawn: Drawn, kind: str, role: str) -> Part:
        if kind == "leaf":
            return Part("leaf", (drawn.gate(f"{role}.z"),))
        return Part("linear", drawn.parts["transform"].leaves) if kind == "shared" else drawn.part(kind, role)

    def recipe(drawn: Drawn) -> None:
        drawn.parts["transform"] = drawn.part(transform, "transform")
        drawn.parts["gate"] = logits(drawn, gate, "gate")
        if carry:
            drawn.parts["carry"] = logits(drawn, carry, "carry")

    return recipe


def _mhc(branches: str, fuse: str = "") -> Recipe:
    def branch(drawn: Drawn, place: int) -> Part:
        role = f"branches.{place}"
        if branches == "convolutions":  # receptive fields that grow: dilations 1, 2, 4, ...
            return Part("convolution", (drawn.kernel(f"{role}.k"),), number=2**place)
        if branches == "causal":
            return Part("causal", (drawn.kernel(f"{role}.k"),), number=2**place)
        if branches == "equal":
            return Part("leaf", (drawn.values("shared.h"),))
        if branches == "shared":
            return Part("linear" if place % 2 else "tanh_linear", (drawn.matrix("shared.w"),))
        if branches == "mixed":
            return drawn.part(("tanh_linear", "leaf", "linear", "square")[place % 4], role)
        return drawn.part(branches, role)

    def recipe(drawn: Drawn) -> None:
        drawn.parts["branches"] = tuple(branch(drawn, place) for place in range(drawn.count))
        drawn.inputs["logits"] = None
        if not fuse:
            drawn.fusion()
        elif fuse == "fuse_weighted":
            shape = (drawn.count, drawn.shape[-1])
            values = drawn.random("fuse.a", shape).standard_normal(shape)
            drawn.parts["fuse"] = Part(fuse, (drawn.hold("fuse.a", values),))
        else:
            drawn.parts["fuse"] = Part(fuse)

    return recipe


_BLOCKS = {kind: _single("sublayer", kind) for kind in SINGLE}

#: The recipes of each composed operator, the plainest first.
RECIPES: Mapping[str, Mapping[str, Recipe]] = {
    "residual": {
        **{kind: _residual(kind) for kind in SINGLE},
        "shortcut": _residual("leaf", "linear"),
        "activation": _residual("leaf", "", "relu"),
        "post_activation": _residual("tanh_linear", "", "tanh"),
        "projected": _residual("tanh_linear", "linear", "relu"),
        "shared": _residual("linear", "shared"),
        "large": _residual("large"),
    },
    "pre_norm": _BLOCKS,
    "post_norm": {**_BLOCKS, **{kind: _single("sublayer", kind) for kind in ("opposed", "cancelling")}},
    "highway": {
        "leaf": _highway("leaf", "leaf"),
        "chain": _highway("tanh_linear", "linear"),
        "square": _highway("square", "tanh_linear"),
        "linear": _highway("linear", "leaf"),
        "identity": _highway("identity", "leaf"),
        "view": _highway("view", "tanh_linear"),
        "leaf_carry": _highway("leaf", "leaf", "leaf"),
        "chain_carry": _highway("tanh_linear", "linear", "tanh_linear"),
        "shared": _highway("linear", "shared"),
        "counted": _highway("counted", "leaf"),
        "convolution": _highway("convolution", "leaf"),
        "tiny": _highway("tiny", "leaf"),
        "large": _highway("large", "leaf"),
    },
    "mhc": {
        "leaf": _mhc("leaf"),
        "mixed": _mhc("mixed"),
        "convolutions": _mhc("convolutions"),
        "equal": _mhc("equal"),
        "shared": _mhc("shared"),
        "cascade": _mhc("cascade"),
        "counted": _mhc("counted"),
        "identity": _mhc("identity"),
        "view": _mhc("view"),
        "fuse_sum": _mhc("leaf", "fuse_sum"),
        "fuse_product": _mhc("leaf", "fuse_product"),
        "fuse_weighted": _mhc("mixed", "fuse_weighted"),
        "fuse_coupled": _mhc("mixed", "fuse_coupled"),
        "fuse_shared": _mhc("shared", "fuse_coupled"),
        "causal": _mhc("causal"),
        "tiny": _mhc("tiny"),
        "large": _mhc("large"),
    },
}

#: Recipes whose parts read along the second last axis, so that groups are not independent.
ALONG_SEQUENCE = ("convolution", "convolutions", "causal")


def made(operator: str, recipe: str, drawn: Drawn) -> Drawn:
    """Follow a recipe: returns ``drawn`` with inputs and parts filled in."""
    RECIPES[operator][recipe](drawn)
    return drawn
