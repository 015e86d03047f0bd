"""
Parts: the callables that a composed operator takes, described without any framework.

A part is a value. Each framework's bridge turns it into a callable that closes over the framework's tensors, and the
reference knows its exact value and Jacobian. Target and reference therefore work with the same part.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .errors import PART_ERRORS, choices

#: The kinds of part, and what each returns for an input x of shape (..., n).
#: A leaf is a tensor that the part closes over; gradients are taken with respect to leaves, as for any input.
KINDS: Mapping[str, str] = {
    # Plain functions of x.
    "identity": "x itself, the same object",
    "view": "another view of x's memory",
    "zero": "zeros of x's shape",
    "leaf": "its leaf, of x's shape, whatever x is",
    "negated": "-x",
    "scaled": "number * x; number is a power of two",
    "linear": "x @ w over the last axis; leaf w of shape (n, n)",
    "tanh_linear": "tanh(x @ w); leaf w of shape (n, n)",
    "square": "x * x",
    "relu": "max(x, 0)",
    "tanh": "tanh(x)",
    "convolution": (
        "sum over j = 0, 1, 2 of k[j] * x[..., t + (j - 1) * number, :], zero beyond the ends: depthwise over the"
        " second last axis t, dilation number; leaf k of shape (3, n)"
    ),
    "causal": "the same with x[..., t + (j - 2) * number, :]: it reads no later position",
    "cascade": "the inner parts one after the other, the first first",
    "dropout": "inner(x) * mask; leaf mask, 0 or 1 / (1 - p), of x's shape and without gradient",
    # Parts with a behaviour; the value is that of the inner part unless stated otherwise.
    "counted": "inner(x) times the number of times it has been called in this evaluation: a state",
    "buffered": "inner(x), written into one buffer that the part owns and every call returns",
    "transposed": "inner(x), with its axes reversed in memory where the framework has strides",
    "strided": "inner(x), with gaps between its elements in memory where the framework has strides",
    "common": "inner(x), from one callable for all roles of a call that have an equal part of this kind",
    "misshapen": "inner(x) without its last feature, which cannot be broadcast to x's shape",
    "flattened": "inner(x) with one axis alone: as many values as x has, in another shape",
    "broadcasting": "inner(x)[..., :1], which would be broadcast to x's shape",
    "raising": "nothing: it raises PartRaised, which is a built-in error of kind number too (errors.py)",
    "itself": (
        "what the operator returns for -x/2: its parameters are the leaves, eps is number, and the parts that it must"
        " have are the inner ones"
    ),
    "replayed": "its first leaf; its cotangent of x is the second leaf, whatever the cotangent of its value is",
    # Parts that fuse a list of tensors [y_1 ... y_K] of one shape.
    "fuse_sum": "sum of y_k",
    "fuse_product": "product of y_k",
    "fuse_weighted": "sum of a[k] * y_k; leaf a of shape (K, n)",
    "fuse_coupled": "sum of y_k + sum over k >= 2 of tanh(y_(k-1)) * y_k: each branch reads the one before it",
}


@dataclass(frozen=True)
class Part:
    """One callable that an operator takes."""

    #: One of KINDS.
    kind: str
    #: The names of the inputs that it closes over, such as "branch.w", in the order of its kind.
    leaves: tuple[str, ...] = ()
    #: The number in the description of its kind.
    number: float = 0.0
    #: The parts inside it.
    inner: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"no part is of the kind {self.kind!r}{choices(self.kind, KINDS)}")

    def __str__(self) -> str:
        """Its function as a formula: ``x @ branch.w``."""
        if self.kind == "raising":
            return f"raises {PART_ERRORS[int(self.number)].__name__}"
        inner = [str(part) for part in self.inner]
        leaf = self.leaves[0] if self.leaves else ""
        first = inner[0] if inner else "x"
        formulas = {
            "identity": "x",
            "view": "x, another view",
            "zero": "0",
            "leaf": leaf,
            "negated": "-x",
            "scaled": f"{self.number:g} * x",
            "linear": f"x @ {leaf}",
            "tanh_linear": f"tanh(x @ {leaf})",
            "square": "x * x",
            "convolution": f"convolution(x, {leaf}, dilation={self.number:g})",
            "causal": f"causal convolution(x, {leaf}, dilation={self.number:g})",
            "cascade": ", then ".join(inner),
            "dropout": f"({first}) * {leaf}",
            "counted": f"({first}) times its calls so far",
            "buffered": f"{first}, in one buffer",
            "transposed": f"{first}, transposed in memory",
            "strided": f"{first}, strided in memory",
            "common": f"{first}, one callable",
            "misshapen": f"({first})[..., :-1]",
            "flattened": f"({first}), flattened",
            "broadcasting": f"({first})[..., :1]",
            "itself": f"the operator itself of -x/2, with {', '.join(inner)}",
            "replayed": leaf,
            "fuse_weighted": f"sum of {leaf}[k] * y_k",
            "fuse_coupled": "sum of y_k + sum of tanh(y_(k-1)) * y_k",
        }
        return formulas.get(self.kind, self.kind.replace("fuse_", "").replace("_", " "))

    @property
    def offsets(self) -> tuple[int, int, int]:
        """The positions at which each tap of a convolution reads x, relative to the position of the result."""
        dilation = int(self.number)
        return (-2 * dilation, -dilation, 0) if self.kind == "causal" else (-dilation, 0, dilation)

    @property
    def constant(self) -> bool:
        """Whether its result does not depend on its argument."""
        if self.kind == "itself":  # every operator has a path for x
            return False
        if self.kind in ("leaf", "zero"):
            return True
        return any(part.constant for part in self.inner)

    def all_leaves(self) -> Iterator[str]:
        """The names of all leaves, including those of inner parts."""
        yield from self.leaves
        for part in self.inner:
            yield from part.all_leaves()


#: The parts of a call by role: one part, None, or several for "branches".
Parts = typing.Mapping[str, typing.Union[Part, typing.Tuple[Part, ...], None]]


def every_part(parts: Parts) -> Iterator[Part]:
    """Every part of a call, the branches one by one."""
    for part in parts.values():
        if part is not None:
            yield from part if isinstance(part, tuple) else (part,)
