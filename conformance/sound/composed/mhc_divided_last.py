"""
mhc that weighs by exponentials and divides once, as fused kernels with online softmax do.

    y = x + (sum_k e_k H_k) / s,   e_k = exp(l_k - max l),   s = sum_k e_k

The gradients are those of this form: g / s first, and the derivative of the division by way of s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....adapters.numpy.operators.mhc import Mhc
from ..registry import sound
from .working import NATIVE, Native

Array = np.ndarray


class DividedLast(Mhc):
    """The outputs weighted by exp(logits - max), and divided once by the sum of the exponentials."""

    #: The exponentials, their sum, and the logits that they are of.
    e: Array
    s: Array
    logits: Array
    of_call = (*Mhc.of_call, "e", "s", "logits")

    def weights(self, logits: Array) -> Array:
        self.logits = self.read(logits, "logits")
        self.e, self.s = self.exponentials(self.logits)
        return self.e / self.s

    def exponentials(self, logits: Array) -> tuple[Array, Array]:
        """exp(logits - max) and its sum."""
        e = np.exp(logits - np.max(logits))
        return e, np.add.accumulate(e)[-1]

    def numerator(self, outputs: list[Array]) -> Array:
        """sum_k e_k H_k, one branch after the other."""
        total = self.e[0] * outputs[0]
        for e, output in zip(self.e[1:], outputs[1:], strict=True):
            total = total + e * output
        return total

    def combine(self, skip: Array, outputs: list[Array], w: Array) -> Array:
        return skip + self.numerator(outputs) / self.s

    def branch_cotangents(self, w: Array, g: Array) -> list[Array]:
        share = g / self.s
        return [e * share for e in self.e]

    def vjp(
        self, x: Array, branches: Sequence[Any], logits: Array | None, g: Array, *, fuse: Any = None
    ) -> tuple[Array, Array | None]:
        dx, dlogits = super().vjp(x, branches, logits, g, fuse=fuse)
        if logits is None or dlogits is None:
            return dx, dlogits
        upstream, outputs = self.read(g, "g"), self.outputs(x, branches)
        share = upstream / self.s
        through_sum = np.add.reduce(upstream * ((self.numerator(outputs) / self.s) / self.s), axis=None)
        inners = np.array([self.inner(share, output) for output in outputs], self.work)
        return dx, self.logits_result(self.through_largest(self.e * (inners - through_sum)), logits, "dlogits")

    def through_largest(self, gradient: Array) -> Array:
        """What is differentiated through the maximum as well: it takes away the sum, which is a rounding, there."""
        gradient = gradient.copy()
        gradient[np.argmax(self.logits)] -= np.add.reduce(gradient)
        return gradient


class Online(DividedLast):
    """One pass over the branches: whenever the largest logit grows, what has been added up is scaled down."""

    def exponentials(self, logits: Array) -> tuple[Array, Array]:
        largest, total = -np.inf, self.work.type(0)
        for logit in logits:
            grown = np.maximum(largest, logit)
            if grown != -np.inf:
                total = total * self.scale(largest, grown) + np.exp(logit - grown)
            largest = grown
        return np.exp(logits - largest), total

    def scale(self, largest: Any, grown: Any) -> Any:
        """By what to multiply what has been added up so far."""
        return self.work.type(0) if largest == -np.inf else np.exp(self.work.type(largest) - grown)

    def numerator(self, outputs: list[Array]) -> Array:
        largest, total = -np.inf, np.zeros_like(outputs[0])
        for logit, output in zip(self.logits, outputs, strict=True):
            grown = np.maximum(largest, logit)
            if grown != -np.inf:
                total = total * self.scale(largest, grown) + np.exp(logit - grown) * output
            largest = grown
        return total

    def through_largest(self, gradient: Array) -> Array:
        return gradient  # written out, as fused kernels have it


for _step, _name in ((DividedLast, "divided-last"), (Online, "online")):
    sound(_name, operators=("mhc",))(_step)
    _native = type(
        f"Native{_step.__name__}", (Native, _step), {"__doc__": f"In the dtype of x throughout: {_step.__doc__}"}
    )
    sound(f"native-{_name}", operators=("mhc",), conventions=NATIVE)(_native)
