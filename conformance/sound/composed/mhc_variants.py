"""Sound variants of mhc: ways to weigh and orders of adding."""

from __future__ import annotations

import numpy as np

from ....adapters.numpy.operators.mhc import Mhc
from ..registry import sound
from .working import NATIVE, Native, Wide

Array = np.ndarray


@sound("plain", operators=("mhc",))
class Plain(Mhc):
    """exp(logits - max) over its sum, and the weighted outputs added to x in order."""


@sound("log-softmax", operators=("mhc",))
class LogSoftmax(Mhc):
    """Weights as exp of the logits less the logarithm of the sum of exponentials."""

    def softmax(self, logits: Array) -> Array:
        shifted = logits - np.max(logits)
        return np.exp(shifted - np.log(np.add.reduce(np.exp(shifted))))


@sound("reversed", operators=("mhc",))
class Reversed(Mhc):
    """The weighted outputs added last to first, and so the weights' denominator and the branches' gradients."""

    def softmax(self, logits: Array) -> Array:
        e = np.exp(logits - np.max(logits))
        return e / np.add.accumulate(e[::-1])[-1]

    def combine(self, skip: Array, outputs: list[Array], w: Array) -> Array:
        return super().combine(skip, outputs[::-1], w[::-1])

    def input_gradient(self, g: Array, through: list[Array]) -> Array:
        return sum(through[::-1], g)


@sound("x-last", operators=("mhc",))
class XLast(Mhc):
    """The weighted outputs added to each other, and x to their sum."""

    def combine(self, skip: Array, outputs: list[Array], w: Array) -> Array:
        return super().combine(np.zeros_like(skip), outputs, w) + skip

    def input_gradient(self, g: Array, through: list[Array]) -> Array:
        return sum(through[1:], through[0]) + g


@sound("pairwise", operators=("mhc",))
class Pairwise(Mhc):
    """The weighted outputs added in pairs, the pairs in pairs, and x at the end."""

    def combine(self, skip: Array, outputs: list[Array], w: Array) -> Array:
        return self.paired([weight * output for weight, output in zip(w, outputs, strict=True)]) + skip

    def input_gradient(self, g: Array, through: list[Array]) -> Array:
        return self.paired(through) + g

    def paired(self, terms: list[Array]) -> Array:
        """The sum of the terms up a binary tree."""
        if len(terms) == 1:
            return terms[0]
        middle = len(terms) // 2
        return self.paired(terms[:middle]) + self.paired(terms[middle:])


@sound("stacked", operators=("mhc",))
class Stacked(Mhc):
    """Outputs in one stack that is weighted and reduced at once, inner products as dot products."""

    def combine(self, skip: Array, outputs: list[Array], w: Array) -> Array:
        stack = np.stack([skip, *outputs])
        weights = np.concatenate([np.ones(1, w.dtype), w])
        return np.add.reduce(weights.reshape(-1, *(1,) * skip.ndim) * stack, axis=0)

    def inner(self, g: Array, output: Array) -> Array:
        return np.asarray(np.vdot(g, output))


sound("wide", operators=("mhc",))(Wide)


@sound("native", operators=("mhc",), conventions=NATIVE)
class NativeMhc(Native, Mhc):
    """16-bit data computed on in its own dtype throughout."""
