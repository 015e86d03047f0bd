"""Sound variants of residual."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....adapters.numpy.operators.residual import Residual
from ..registry import sound
from .working import Wide

Array = np.ndarray


@sound("plain", operators=("residual",))
class Plain(Residual):
    """The two paths added once, forwards and backwards."""


@sound("branch-first", operators=("residual",))
class BranchFirst(Residual):
    """F(x) + x, the branch asked before the shortcut, and its gradient before the identity's."""

    def total(self, x: Array, branch: Any, shortcut: Any) -> Array:
        through = self.branch_value(x, branch)
        return through + self.skip(x, shortcut)

    def add_gradient(self, skip: Array, branch: Array, u: Array) -> Array:
        return branch + skip


@sound("in-place", operators=("residual",))
class InPlace(Residual):
    """Adds in place, to copies of its own: of x on the way there, of the cotangent on the way back."""

    def add(self, skip: Array, branch: Array) -> Array:
        own = skip.copy()
        own += branch
        return own

    def add_gradient(self, skip: Array, branch: Array, u: Array) -> Array:
        return self.add(skip, branch)


@sound("blockwise", operators=("residual",))
class Blockwise(Residual):
    """Adds 32 values at a time, the last block shorter, into an output that starts unwritten."""

    def add(self, skip: Array, branch: Array) -> Array:
        one, other = skip.reshape(-1), branch.reshape(-1)
        out = np.empty_like(one)
        for start in range(0, out.size, 32):
            out[start : start + 32] = one[start : start + 32] + other[start : start + 32]
        return out.reshape(skip.shape)

    def add_gradient(self, skip: Array, branch: Array, u: Array) -> Array:
        return self.add(skip, branch)


@sound("stacked", operators=("residual",))
class Stacked(Residual):
    """Sums the paths along the first axis of a stack, zeros standing in front of them."""

    def add(self, skip: Array, branch: Array) -> Array:
        return np.add.reduce(np.stack([np.zeros_like(skip), skip, branch]), axis=0)


sound("wide", operators=("residual",))(Wide)
