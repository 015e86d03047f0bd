"""Faults of residual's derivatives over correct values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....adapters.numpy.operators.residual import Residual
from ..registry import fault, issue

Array = np.ndarray


@fault("gradient-of-identity-twice", rs="RS-G1", kind="gradient")
class GradientOfIdentityTwice(Residual):
    """Adds the cotangent to dx twice."""

    def add_gradient(self, skip: Array, branch: Array, u: Array) -> Array:
        return skip + branch + u


@fault("gradient-at-least-upstream", rs="RS-G6", kind="gradient")
class GradientAtLeastUpstream(Residual):
    """Keeps dx from becoming smaller than the cotangent, as the identity path is said to."""

    def add_gradient(self, skip: Array, branch: Array, u: Array) -> Array:
        dx = super().add_gradient(skip, branch, u)
        return np.where(np.abs(dx) < np.abs(u), u, dx)


@fault("branch-cotangent-doubled", rs="RS-G2", kind="gradient", sources=issue("Dao-AILab/quack#53"))
class BranchCotangentDoubled(Residual):
    """Hands the branch the cotangents of both paths, and takes both off dx again."""

    def branch_gradient(self, x: Array, branch: Any, u: Array) -> Array:
        return super().branch_gradient(x, branch, 2 * u) / 2


@fault("branch-cotangent-negated", rs="RS-G2", kind="gradient")
class BranchCotangentNegated(Residual):
    """Hands the branch the cotangent with its sign changed."""

    def branch_gradient(self, x: Array, branch: Any, u: Array) -> Array:
        return super().branch_gradient(x, branch, -u)


@fault("branch-detached", rs="RS-G2", kind="gradient")
class BranchDetached(Residual):
    """Takes the branch for a constant in the backward pass."""

    def branch_gradient(self, x: Array, branch: Any, u: Array) -> Array:
        return np.zeros_like(u)


@fault("activation-not-differentiated", rs="RS-G3", kind="gradient")
class ActivationNotDifferentiated(Residual):
    """Passes the cotangent by the activation unchanged."""

    def upstream(self, total: Array, activation: Any, g: Array) -> Array:
        return g


@fault("activation-at-x", rs="RS-G3", kind="gradient")
class ActivationAtX(Residual):
    """Takes the activation's derivative at x where it should take it at the sum."""

    at: Array

    def total(self, x: Array, branch: Any, shortcut: Any) -> Array:
        self.at = x
        return super().total(x, branch, shortcut)

    def upstream(self, total: Array, activation: Any, g: Array) -> Array:
        return self.pulled(activation, self.at, g, "activation")


@fault("activation-on-branch-gradient-only", rs="RS-G3", kind="gradient")
class ActivationOnBranchGradientOnly(Residual):
    """Passes the identity path's cotangent by the activation."""

    g: Array | None = None

    def before(self, stage: str, arrays: tuple[Any, ...]) -> None:
        self.g = None

    def upstream(self, total: Array, activation: Any, g: Array) -> Array:
        self.g = g
        return super().upstream(total, activation, g)

    def skip_gradient(self, x: Array, shortcut: Any, u: Array) -> Array:
        return super().skip_gradient(x, shortcut, u if self.g is None else self.g)


@fault("shortcut-not-differentiated", rs="RS-G3", kind="gradient")
class ShortcutNotDifferentiated(Residual):
    """Adds the cotangent itself to dx where a shortcut is given."""

    def skip_gradient(self, x: Array, shortcut: Any, u: Array) -> Array:
        return u


@fault("double-backward-without-branch", rs="RS-G4", kind="second-order")
class DoubleBackwardWithoutBranch(Residual):
    """Leaves out how the branch bends."""

    def curvatures(self, skip: Array, branch: Array) -> Array:
        return skip


@fault("double-backward-without-identity", rs="RS-G4", kind="second-order")
class DoubleBackwardWithoutIdentity(Residual):
    """Leaves the identity path out of the cotangent's own gradient."""

    def cotangents(self, skip: Array, branch: Array) -> Array:
        return branch


@fault("tangent-without-activation", rs="RS-G5", kind="tangent")
class TangentWithoutActivation(Residual):
    """Returns the tangent of the sum where an activation is given."""

    def jvp(self, x: Array, branch: Any, tx: Array, *, shortcut: Any = None, activation: Any = None) -> Array:
        return super().jvp(x, branch, tx, shortcut=shortcut)
