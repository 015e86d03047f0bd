"""mhc on NumPy arrays, soundly: the base that variants and faults override."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .arguments import check_shapes
from .composed import Composed

Array = np.ndarray


class Mhc(Composed):
    """x + sum of w_k branches[k](x), w = softmax(logits); or x + fuse of the branches' values."""

    operator = "mhc"

    def begin(self, x: Array, branches: Sequence[Any], logits: Array | None, fuse: Any, **likewise: Array) -> None:
        """Refuse bad arguments, and note the shape and dtypes of this call."""
        check_shapes(likewise, x.shape)
        if not branches:
            raise ValueError("mhc needs at least one branch")
        if (logits is None) == (fuse is None):
            raise ValueError("mhc takes either logits or fuse")
        self.check_logits(branches, logits)
        self.begin_with(x)

    def check_logits(self, branches: Sequence[Any], logits: Array | None) -> None:
        """Refuse logits that are not one number per branch."""
        check_shapes({"logits": logits}, (len(branches),))

    # Weights.

    def softmax(self, logits: Array) -> Array:
        """exp(logits - max) over its sum."""
        e = np.exp(logits - np.max(logits))
        return e / np.add.reduce(e)

    def weights(self, logits: Array) -> Array:
        """The branches' weights, in the working dtype."""
        return self.softmax(self.read(logits, "logits"))

    def softmax_jvp(self, w: Array, t: Array) -> Array:
        """The Jacobian of softmax, which is symmetric, applied to t: w (t - <w, t>)."""
        return w * (t - np.add.reduce(w * t))

    def softmax_second_derivative(self, w: Array, t: Array, s: Array) -> Array:
        """The second derivative of softmax along t and s: w ((t - <w, t>) (s - <w, s>) - their mean under w)."""
        product = (t - np.add.reduce(w * t)) * (s - np.add.reduce(w * s))
        return self.softmax_jvp(w, product)

    # Forward.

    def outputs(self, x: Array, branches: Sequence[Any]) -> list[Array]:
        """Every branch's value, in order, in the working dtype."""
        return [self.value(branch, x, f"branches.{k}") for k, branch in enumerate(branches)]

    def skip(self, x: Array) -> Array:
        """The skip path, to which the branches are added: x."""
        return self.read(x, "x")

    def combine(self, skip: Array, outputs: list[Array], w: Array) -> Array:
        """x plus the weighted outputs."""
        y = skip
        for weight, output in zip(w, outputs):
            y = y + weight * output
        return y

    def for_fuse(self, outputs: list[Array]) -> list[Array]:
        """The input of fuse: the outputs in order, each in x's dtype."""
        return [self.part_input(output, "fuse") for output in outputs]

    def fused(self, fuse: Any, outputs: list[Array]) -> Array:
        """The value of fuse."""
        return self.taken(fuse(self.for_fuse(outputs)), "fuse")

    def add(self, skip: Array, fused: Array) -> Array:
        """x plus the value of fuse."""
        return skip + fused

    # Backward.

    def inner(self, g: Array, output: Array) -> Array:
        """The sum of g times an output, over all elements."""
        return np.add.reduce(g * output, axis=None)

    def inners(self, g: Array, outputs: list[Array]) -> Array:
        """<g, H_k> for every branch."""
        return np.array([self.inner(g, output) for output in outputs], self.work)

    def logits_gradient(self, w: Array, q: Array) -> Array:
        """w_k (<g, H_k> - sum_j w_j <g, H_j>), q holding the inner products."""
        return self.softmax_jvp(w, q)

    def branch_cotangents(self, w: Array, g: Array) -> list[Array]:
        """The cotangent of each branch's value: w_k g."""
        return [weight * g for weight in w]

    def fuse_cotangents(self, fuse: Any, outputs: list[Array], g: Array) -> list[Array]:
        """The cotangent of each branch's value through fuse."""
        return [self.taken(v, "fuse") for v in fuse.vjp(self.for_fuse(outputs), self.part_input(g, "fuse"))]

    def through_branches(self, x: Array, branches: Sequence[Any], cotangents: list[Array]) -> list[Array]:
        """The contribution to dx through each branch."""
        pairs = enumerate(zip(branches, cotangents))
        return [self.pulled(branch, x, v, f"branches.{k}") for k, (branch, v) in pairs]

    def input_gradient(self, g: Array, through: list[Array]) -> Array:
        """dx: the sum of g and the branches' contributions."""
        return sum(through, g)

    def logits_result(self, gradient: Array, given: Array | None, role: str) -> Array | None:
        """A gradient of the logits, in their shape and dtype; None if the logits are None."""
        return None if given is None else self.write(gradient, given.shape, given.dtype, role)

    # Forward mode and second order.

    def tangent(self, tx: Array, tangents: list[Array], outputs: list[Array], w: Array, tw: Array) -> Array:
        """The tangent of y, from the tangents of x, of the outputs and of the weights."""
        ty = tx
        for weight, tangent, moved, output in zip(w, tangents, tw, outputs):
            ty = ty + weight * tangent + moved * output
        return ty

    def weights_cotangent(self, w: Array, q: Array, b: Array, along: Array) -> Array:
        """The cotangent of the weights: `along` comes through the branches, the other terms through dlogits."""
        return along + b * q - np.add.reduce(b * w) * q - np.add.reduce(w * q) * b

    # The canonical callables; the base class has those that nest forward and reverse mode.

    def call(self, x: Array, branches: Sequence[Any], logits: Array | None, *, fuse: Any = None) -> Array:
        """y, of x's shape and dtype."""
        self.begin(x, branches, logits, fuse)
        outputs = self.outputs(x, branches)
        if logits is None:
            y = self.add(self.skip(x), self.fused(fuse, outputs))
        else:
            y = self.combine(self.skip(x), outputs, self.weights(logits))
        return self.write(y, x.shape, x.dtype, "y")

    def vjp(
        self, x: Array, branches: Sequence[Any], logits: Array | None, g: Array, *, fuse: Any = None
    ) -> tuple[Array, Array | None]:
        """(dx, dlogits), each of its input's shape and dtype; dlogits is None if the logits are."""
        self.begin(x, branches, logits, fuse, g=g)
        upstream, outputs = self.read(g, "g"), self.outputs(x, branches)
        gradient = np.zeros(0, self.work)
        if logits is None:
            cotangents = self.fuse_cotangents(fuse, outputs, upstream)
        else:
            w = self.weights(logits)
            cotangents = self.branch_cotangents(w, upstream)
            gradient = self.logits_gradient(w, self.inners(upstream, outputs))
        dx = self.input_gradient(upstream, self.through_branches(x, branches, cotangents))
        return self.write(dx, x.shape, x.dtype, "dx"), self.logits_result(gradient, logits, "dlogits")

    def jvp(
        self,
        x: Array,
        branches: Sequence[Any],
        logits: Array | None,
        tx: Array,
        tlogits: Array | None,
        *,
        fuse: Any = None,
    ) -> Array:
        """The tangent of y, of x's shape and dtype."""
        self.begin(x, branches, logits, fuse, tx=tx)
        t, outputs = self.read(tx, "tx"), self.outputs(x, branches)
        tangents = [self.pushed(branch, x, t, f"branches.{k}") for k, branch in enumerate(branches)]
        if logits is None:
            moved = fuse.jvp(self.for_fuse(outputs), [self.part_input(tangent, "fuse") for tangent in tangents])
            ty = self.add(t, self.taken(moved, "fuse"))
        else:
            w = self.weights(logits)
            tw = np.zeros_like(w) if tlogits is None else self.softmax_jvp(w, self.read(tlogits, "tlogits"))
            ty = self.tangent(t, tangents, outputs, w, tw)
        return self.write(ty, x.shape, x.dtype, "ty")

    def vjp_vjp(
        self,
        x: Array,
        branches: Sequence[Any],
        logits: Array | None,
        g: Array,
        a: Array,
        b: Array | None,
        *,
        fuse: Any = None,
    ) -> tuple[Array, Array | None, Array]:
        """(x_bar, logits_bar, g_bar) of the map (x, logits, g) -> (dx, dlogits) at the cotangents (a, b)."""
        self.begin(x, branches, logits, fuse, g=g, a=a)
        wide_g, wide_a, outputs = self.read(g, "g"), self.read(a, "a"), self.outputs(x, branches)
        logits_bar = np.zeros(0, self.work)
        if logits is None:
            handed = self.for_fuse(outputs)
            cotangents = self.fuse_cotangents(fuse, outputs, wide_g)
            through, backs = self.branches_twice(x, branches, cotangents, wide_a)
            given = [self.part_input(back, "fuse") for back in backs]
            bars, fused_bar = fuse.vjp_vjp(handed, self.part_input(wide_g, "fuse"), given)
            output_bars = [self.taken(bar, "fuse") for bar in bars]
            g_bar = self.add(wide_a, self.taken(fused_bar, "fuse"))
        else:
            w = self.weights(logits)
            through, backs = self.branches_twice(x, branches, self.branch_cotangents(w, wide_g), wide_a)
            q, wide_b = self.inners(wide_g, outputs), np.zeros_like(w) if b is None else self.read(b, "b")
            logits_bar = self.softmax_jvp(w, self.weights_cotangent(w, q, wide_b, self.inners(wide_g, backs)))
            q_bar = self.softmax_jvp(w, wide_b)
            output_bars = [bar * wide_g for bar in q_bar]
            g_bar = self.tangent(wide_a, backs, outputs, w, q_bar)
        x_bar = sum(through[1:], through[0]) + sum(self.through_branches(x, branches, output_bars))
        return (
            self.write(x_bar, x.shape, x.dtype, "x_bar"),
            self.logits_result(logits_bar, logits, "logits_bar"),
            self.write(g_bar, g.shape, g.dtype, "g_bar"),
        )

    def branches_twice(
        self, x: Array, branches: Sequence[Any], cotangents: list[Array], a: Array
    ) -> tuple[list[Array], list[Array]]:
        """For each branch, the cotangents of x and of the branch's cotangent; ``a`` is the cotangent of dx."""
        pairs = enumerate(zip(branches, cotangents))
        found = [self.pulled_twice(branch, x, v, a, f"branches.{k}") for k, (branch, v) in pairs]
        return [x_bar for x_bar, _ in found], [back for _, back in found]

    def jvp_jvp(
        self,
        x: Array,
        branches: Sequence[Any],
        logits: Array | None,
        tx: Array,
        tlogits: Array | None,
        sx: Array,
        slogits: Array | None,
        *,
        fuse: Any = None,
    ) -> Array:
        """The tangent along (sx, slogits) of the tangent of y along (tx, tlogits)."""
        self.begin(x, branches, logits, fuse, tx=tx, sx=sx)
        outputs, t, s = self.outputs(x, branches), self.read(tx, "tx"), self.read(sx, "sx")
        along, across = (
            [self.pushed(branch, x, one, f"branches.{k}") for k, branch in enumerate(branches)] for one in (t, s)
        )
        bent = [self.pushed_twice(branch, x, t, s, f"branches.{k}") for k, branch in enumerate(branches)]
        if logits is None:
            found = self.fuse_second_tangent(fuse, outputs, along, across, bent)
        else:
            w = self.weights(logits)
            tw, sw = (np.zeros_like(w) if one is None else self.read(one, "tlogits") for one in (tlogits, slogits))
            found = self.second_tangent(w, outputs, along, across, bent, tw, sw)
        return self.write(found, x.shape, x.dtype, "tty")

    def fuse_second_tangent(
        self, fuse: Any, outputs: list[Array], along: list[Array], across: list[Array], bent: list[Array]
    ) -> Array:
        """The second derivative of fuse's value, from the tangents of the outputs and their second derivatives."""
        handed, t, s, moved = (self.for_fuse(one) for one in (outputs, along, across, bent))
        return self.taken(fuse.jvp_jvp(handed, t, s), "fuse") + self.taken(fuse.jvp(handed, moved), "fuse")

    def second_tangent(
        self,
        w: Array,
        outputs: list[Array],
        along: list[Array],
        across: list[Array],
        bent: list[Array],
        tlogits: Array,
        slogits: Array,
    ) -> Array:
        """The second derivative of y, from the outputs' second derivatives and the tangents of outputs and logits."""
        tw, sw, both = (
            self.softmax_jvp(w, tlogits),
            self.softmax_jvp(w, slogits),
            self.softmax_second_derivative(w, tlogits, slogits),
        )
        found = np.zeros_like(outputs[0])
        for k, output in enumerate(outputs):
            found = found + w[k] * bent[k] + tw[k] * across[k] + sw[k] * along[k] + both[k] * output
        return found
