"""Faults of mhc's derivatives over correct values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....adapters.numpy.operators.mhc import Mhc
from ..registry import fault

Array = np.ndarray


@fault("dx-without-x", mh="MH-G1", kind="gradient")
class DxWithoutX(Mhc):
    """Leaves the cotangent itself out of dx."""

    def input_gradient(self, g: Array, through: list[Array]) -> Array:
        return super().input_gradient(np.zeros_like(g), through)


@fault("cotangents-kept-by-branch", mh="CM-C8", kind="gradient")
class CotangentsKeptByBranch(Mhc):
    """Keeps the cotangents of the branches by the callable, so that only the last is left of one that stands twice."""

    def through_branches(self, x: Array, branches: Sequence[Any], cotangents: list[Array]) -> list[Array]:
        last = {id(branch): k for k, branch in enumerate(branches)}
        return [self.pulled(branches[k], x, cotangents[k], f"branches.{k}") for k in last.values()]


@fault("dx-without-branches", mh="MH-G1", kind="gradient")
class DxWithoutBranches(Mhc):
    """Leaves the branches out of dx."""

    def input_gradient(self, g: Array, through: list[Array]) -> Array:
        return g


@fault("dx-of-last-branch", mh="MH-G1", kind="gradient")
class DxOfLastBranch(Mhc):
    """Overwrites what the branches carry to dx by each other, so that only the last is added."""

    def input_gradient(self, g: Array, through: list[Array]) -> Array:
        return g + through[-1]


@fault("branch-cotangent-unweighted", mh="MH-G2", kind="gradient")
class BranchCotangentUnweighted(Mhc):
    """Hands every branch the cotangent without its weight."""

    def branch_cotangents(self, w: Array, g: Array) -> list[Array]:
        return [g for _ in w]


@fault("closed-branch-trained", mh="MH-G10", kind="gradient")
class ClosedBranchTrained(Mhc):
    """Hands a branch of weight 0 a two-hundred-and-fifty-sixth of the cotangent."""

    def branch_cotangents(self, w: Array, g: Array) -> list[Array]:
        return super().branch_cotangents(np.where(w == 0, w.dtype.type(2.0**-8), w), g)


@fault("branch-cotangent-averaged", mh="MH-G2", kind="gradient")
class BranchCotangentAveraged(Mhc):
    """Hands every branch the cotangent divided by the number of branches."""

    def branch_cotangents(self, w: Array, g: Array) -> list[Array]:
        return [g / g.dtype.type(w.size) for _ in w]


@fault("dlogits-without-weights", mh="MH-G3", kind="gradient")
class DlogitsWithoutWeights(Mhc):
    """Leaves w_k out of dlogits."""

    def logits_gradient(self, w: Array, q: Array) -> Array:
        return q - np.add.reduce(w * q)


@fault("dlogits-sigmoid", mh="MH-G3", kind="gradient")
class DlogitsSigmoid(Mhc):
    """Uses w_k (1 - w_k) <g, H_k>, only the diagonal of softmax's Jacobian."""

    def logits_gradient(self, w: Array, q: Array) -> Array:
        return w * (1 - w) * q


@fault("dlogits-averaged", mh="MH-G3", kind="gradient")
class DlogitsAveraged(Mhc):
    """Averages g H_k over the elements where it should sum."""

    def inner(self, g: Array, output: Array) -> Array:
        return super().inner(g, output) / g.dtype.type(max(g.size, 1))


@fault("dlogits-of-last-row", mh="MH-G3", kind="gradient")
class DlogitsOfLastRow(Mhc):
    """Overwrites <g, H_k> row by row where it should add, so that only the last row is summed."""

    def inner(self, g: Array, output: Array) -> Array:
        return super().inner(g[-1:], output[-1:]) if g.ndim > 1 else super().inner(g, output)


@fault("dlogits-without-mean", mh="MH-G4", kind="gradient")
class DlogitsWithoutMean(Mhc):
    """Uses w_k <g, H_k>, without what all logits have in common taken off."""

    def logits_gradient(self, w: Array, q: Array) -> Array:
        return w * q


@fault("dlogits-plain-mean", mh="MH-G4", kind="gradient")
class DlogitsPlainMean(Mhc):
    """Takes the plain mean of the inner products off where the weighted one belongs."""

    def logits_gradient(self, w: Array, q: Array) -> Array:
        return w * (q - np.mean(q))


@fault("fuse-not-differentiated", mh="MH-G5", kind="gradient")
class FuseNotDifferentiated(Mhc):
    """Hands every branch the cotangent whole where fuse is given."""

    def fuse_cotangents(self, fuse: Any, outputs: list[Array], g: Array) -> list[Array]:
        return [g for _ in outputs]


@fault("fuse-cotangents-reversed", mh="MH-G5", kind="gradient")
class FuseCotangentsReversed(Mhc):
    """Hands the branches the cotangents of fuse last to first."""

    def fuse_cotangents(self, fuse: Any, outputs: list[Array], g: Array) -> list[Array]:
        return super().fuse_cotangents(fuse, outputs, g)[::-1]


@fault("dlogits-divided-by-weights", mh="MH-G6", kind="non-finite")
class DlogitsDividedByWeights(Mhc):
    """Recovers <g, H_k> from the weighted output, which divides by zero where a weight is zero."""

    def logits_gradient(self, w: Array, q: Array) -> Array:
        weighted = w * q
        return w * (weighted / w - np.add.reduce(weighted))


@fault("vanished-weights-kept", mh="MH-G6", kind="gradient")
class VanishedWeightsKept(Mhc):
    """Keeps the weights in the backward pass from falling below 1/64."""

    def logits_gradient(self, w: Array, q: Array) -> Array:
        return super().logits_gradient(np.maximum(w, w.dtype.type(2.0**-6)), q)


@fault("branches-pulled-twice", mh="MH-G7", kind="gradient")
class BranchesPulledTwice(Mhc):
    """Runs the backward pass of every branch twice, so that its leaves' gradients double."""

    def through_branches(self, x: Array, branches: Sequence[Any], cotangents: list[Array]) -> list[Array]:
        super().through_branches(x, branches, cotangents)
        return super().through_branches(x, branches, cotangents)


@fault("lightest-branch-not-pulled", mh="MH-G7", kind="gradient")
class LightestBranchNotPulled(Mhc):
    """Skips the backward pass of the branch with the least weight, which leaves its leaves without a gradient."""

    def branch_cotangents(self, w: Array, g: Array) -> list[Array]:
        cotangents = super().branch_cotangents(w, g)
        if w.size > 1:
            least = int(np.argmin(w))
            cotangents[least] = np.zeros_like(cotangents[least])
        return cotangents


@fault("double-backward-without-branches", mh="MH-G8", kind="second-order")
class DoubleBackwardWithoutBranches(Mhc):
    """Leaves out how the branches bend."""

    def branches_twice(
        self, x: Array, branches: Sequence[Any], cotangents: list[Array], a: Array
    ) -> tuple[list[Array], list[Array]]:
        bars, backs = super().branches_twice(x, branches, cotangents, a)
        return [np.zeros_like(bar) for bar in bars], backs


@fault("double-backward-without-weights", mh="MH-G8", kind="second-order")
class DoubleBackwardWithoutWeights(Mhc):
    """Takes the weights within dlogits for constants when the gradient is differentiated."""

    def weights_cotangent(self, w: Array, q: Array, b: Array, along: Array) -> Array:
        return along


@fault("tangent-without-logits", mh="MH-G9", kind="tangent")
class TangentWithoutLogits(Mhc):
    """Takes the weights for constants in forward mode."""

    def tangent(self, tx: Array, tangents: list[Array], outputs: list[Array], w: Array, tw: Array) -> Array:
        return super().tangent(tx, tangents, outputs, w, np.zeros_like(tw))


@fault("tangent-without-x", mh="MH-G9", kind="tangent")
class TangentWithoutX(Mhc):
    """Leaves the tangent of x itself out."""

    def tangent(self, tx: Array, tangents: list[Array], outputs: list[Array], w: Array, tw: Array) -> Array:
        return super().tangent(np.zeros_like(tx), tangents, outputs, w, tw)
