"""Faults of residual's value: what is added to what."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....adapters.numpy.operators.residual import Residual
from ..neighbours import next_up
from ..registry import fault, issue

Array = np.ndarray


@fault("branch-halved", rs="RS-F1")
class BranchHalved(Residual):
    """Adds half of the branch."""

    def add(self, skip: Array, branch: Array) -> Array:
        return skip + branch / 2


@fault("rectified-unasked", rs="RS-F1")
class RectifiedUnasked(Residual):
    """Applies a rectifier to the sum where no activation is given."""

    def activated(self, total: Array, activation: Any) -> Array:
        return np.maximum(total, 0) if activation is None else super().activated(total, activation)


@fault("shortcut-ignored", rs="RS-F2", sources=issue("adobe/antialiased-cnns#40"))
class ShortcutIgnored(Residual):
    """Adds x itself where a shortcut is given."""

    def skip(self, x: Array, shortcut: Any) -> Array:
        return super().skip(x, None)


@fault("shortcut-added-twice", rs="RS-F2", sources=issue("yakhyo/darknet-pytorch#2"))
class ShortcutAddedTwice(Residual):
    """Adds x beside the shortcut of it."""

    def skip(self, x: Array, shortcut: Any) -> Array:
        own = super().skip(x, shortcut)
        return own if shortcut is None else own + self.read(x, "x")


@fault("activation-ignored", rs="RS-F3", sources=issue("kuangliu/pytorch-cifar#4", "dmlc/mxnet-memonger#12"))
class ActivationIgnored(Residual):
    """Returns the sum where an activation is given."""

    def activated(self, total: Array, activation: Any) -> Array:
        return total


class ActivationAtPath(Residual):
    """The base that applies the activation to one of the paths and adds afterwards."""

    def both(self, skip: Array, branch: Array, activation: Any) -> Array:
        """The sum, one path having passed the activation."""
        raise NotImplementedError

    def call(self, x: Array, branch: Any, *, shortcut: Any = None, activation: Any = None) -> Array:
        if activation is None:
            return super().call(x, branch, shortcut=shortcut)
        self.begin(x)
        y = self.both(self.skip(x, shortcut), self.branch_value(x, branch), activation)
        return self.write(y, x.shape, x.dtype, "y")


@fault(
    "activation-before-addition",
    rs="RS-F3",
    sources=issue("D-X-Y/AutoDL-Projects#65", "fastai/fastbook#1", "akamaster/pytorch_resnet_cifar10#23"),
)
class ActivationBeforeAddition(ActivationAtPath):
    """Applies the activation to the branch alone, before the addition."""

    def both(self, skip: Array, branch: Array, activation: Any) -> Array:
        return skip + self.activated(branch, activation)


@fault("activation-of-x", rs="RS-F3")
class ActivationOfX(ActivationAtPath):
    """Applies the activation only to the identity path."""

    def both(self, skip: Array, branch: Array, activation: Any) -> Array:
        return self.activated(skip, activation) + branch


@fault("dropout-of-the-sum", rs="RS-F4", sources=issue("hyunwoongko/transformer#8", "codertimo/BERT-pytorch#85"))
class DropoutOfTheSum(Residual):
    """Drops x as well where dropout leaves a zero in the branch."""

    def add(self, skip: Array, branch: Array) -> Array:
        # A branch of nothing but zeros is not dropout.
        return np.where((branch == 0) & (branch != 0).any(), branch, skip + branch)


@fault("dropout-unscaled", rs="RS-F4")
class DropoutUnscaled(Residual):
    """Takes dropout's factor 1 / (1 - p) back, counting the zeros in the branch for p."""

    def add(self, skip: Array, branch: Array) -> Array:
        kept = np.count_nonzero(branch) / max(branch.size, 1)
        return skip + branch * branch.dtype.type(kept or 1)


@fault("skip-by-root-two", rs="RS-L1")
class SkipByRootTwo(Residual):
    """Divides both paths by the root of two and multiplies the sum by it, which gives x except its last bits."""

    def add(self, skip: Array, branch: Array) -> Array:
        root = self.rounded(np.sqrt(skip.dtype.type(2)))
        return self.rounded(self.rounded(skip / root) + self.rounded(branch / root)) * root

    def rounded(self, array: Any) -> Any:
        """A value rounded to the dtype of x."""
        return array.astype(self.data).astype(self.work)


@fault("branch-subtracted", rs="RS-L2")
class BranchSubtracted(Residual):
    """Subtracts the branch."""

    def add(self, skip: Array, branch: Array) -> Array:
        return skip - branch


@fault("never-zero", rs="RS-L2")
class NeverZero(Residual):
    """Puts a small number in the place of a sum that is zero."""

    def add(self, skip: Array, branch: Array) -> Array:
        total = skip + branch
        return np.where(total == 0, total.dtype.type(1e-3), total)


@fault("branch-magnitude", rs="RS-L4")
class BranchMagnitude(Residual):
    """Adds the magnitude of the branch."""

    def add(self, skip: Array, branch: Array) -> Array:
        return skip + np.abs(branch)


@fault("rounds-upwards", rs="RS-L4", dtypes=("float32", "float64"))
class RoundsUpwards(Residual):
    """Rounds the sum towards plus infinity, so that the result of -x is not that of x negated."""

    def add(self, skip: Array, branch: Array) -> Array:
        total = skip + branch
        moved = total - skip
        lost = (skip - (total - moved)) + (branch - moved)
        return np.where(lost > 0, next_up(total), total)


@fault("offset-added", rs="RS-L5")
class OffsetAdded(Residual):
    """Adds a small constant to the sum."""

    def add(self, skip: Array, branch: Array) -> Array:
        return skip + branch + skip.dtype.type(2.0**-6)


@fault("sum-clamped", rs="RS-L5")
class SumClamped(Residual):
    """Clamps the sum to [-4, 4] to keep activations in range."""

    def add(self, skip: Array, branch: Array) -> Array:
        return np.clip(skip + branch, -4, 4)
