"""A target whose blocks have lost something, so that a study's verdict has to change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from normspec.adapters.binding import Binding
from normspec.adapters.targets import resolve
from normspec.studies.operators import Operators


def residual(x, branch, *, shortcut=None, activation=None):
    """branch(x): the skip path is dropped."""
    return branch(x)


def residual_vjp(x, branch, g, *, shortcut=None, activation=None):
    """The gradient of x through the branch."""
    return branch.vjp(x, g)


def block(x, sublayer, gamma, beta, *, eps):
    """sublayer(x): norm and skip path are dropped, in either place of the norm."""
    return sublayer(x)


def block_vjp(x, sublayer, gamma, beta, g, *, eps):
    """The gradient of x through the sublayer."""
    return sublayer.vjp(x, g), None, None


def highway(x, transform, gate, *, carry=None):
    """transform(x): nothing is carried."""
    return transform(x)


def highway_vjp(x, transform, gate, g, *, carry=None):
    """The gradient of x through the transform."""
    return transform.vjp(x, g)


def mhc(x, branches, logits, *, fuse=None):
    """The mean of the branches, without x."""
    return sum(branch(x) for branch in branches) / len(branches)


def mhc_vjp(x, branches, logits, g, *, fuse=None):
    """The gradient of x through the branches."""
    return sum(branch.vjp(x, g / len(branches)) for branch in branches), np.zeros_like(logits)


#: Function and vjp of each operator that takes steps, without its skip path.
_DROPPED = {
    "residual": (residual, residual_vjp),
    "pre_norm": (block, block_vjp),
    "post_norm": (block, block_vjp),
    "highway": (highway, highway_vjp),
    "mhc": (mhc, mhc_vjp),
}


def lost() -> Operators:
    """NumPy's operators; y and the gradient of x are NaN, but in groups of equal values."""

    def spoiled(function):
        def call(x, *others, **settings):
            found = function(x, *others, **settings)
            first, *rest = found if isinstance(found, tuple) else (found,)
            first = np.where(np.ptp(x, axis=-1, keepdims=True) > 0, np.nan, first).astype(first.dtype)
            return (first, *rest) if isinstance(found, tuple) else first

        return call

    target = resolve("numpy")
    bindings = (
        replace(one, call=spoiled(one.call), derivatives={**one.derivatives, "vjp": spoiled(one.derivatives["vjp"])})
        for one in target.bindings
    )
    return Operators(replace(target, bindings=tuple(bindings)), resolve("numpy"))


def without_skips() -> Operators:
    """NumPy's operators without their skip paths."""
    bindings = tuple(
        Binding(operator, f"{operator} without its skip path", call, {"vjp": vjp})
        for operator, (call, vjp) in _DROPPED.items()
    )
    return Operators(replace(resolve("numpy"), bindings=bindings), resolve("numpy"))
