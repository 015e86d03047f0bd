"""
Residual on NumPy arrays, with its derivatives.

    s = shortcut(x) + branch(x)        y = activation(s)
"""

from __future__ import annotations

from typing import Any

from .arguments import check_float, like
from .arithmetic import Array, summed, widened


def residual(x, branch, *, shortcut: Any = None, activation: Any = None) -> Array:
    """y in x's shape and dtype. Raises ValueError where a part's result has another shape."""
    total = _total(x, branch, shortcut)
    if activation is None:
        return total
    # A copy: what the activation returns may be memory that it uses again.
    return like(activation(total), x, "the activation's result").astype(x.dtype, copy=True)


def residual_vjp(x, branch, g, *, shortcut: Any = None, activation: Any = None) -> tuple[Array]:
    """(dx,) of sum(y * g)."""
    like(g, x, "g")
    if activation is not None:
        g = activation.vjp(_total(x, branch, shortcut), g)
    return (_pulled(x, branch, shortcut, g),)


def residual_jvp(x, branch, tx, *, shortcut: Any = None, activation: Any = None) -> Array:
    """The tangent of y."""
    like(tx, x, "tx")
    skipped = tx if shortcut is None else shortcut.jvp(x, tx)
    moved = summed(skipped, branch.jvp(x, tx)).astype(x.dtype)
    return moved if activation is None else activation.jvp(_total(x, branch, shortcut), moved).astype(x.dtype)


def residual_vjp_vjp(x, branch, g, a, *, shortcut: Any = None, activation: Any = None) -> tuple[Array, Array]:
    """(x_bar, g_bar): the vjp of the vjp at cotangent a."""
    like(g, x, "g")
    like(a, x, "a")
    total = None if activation is None else _total(x, branch, shortcut)
    h = g if activation is None else activation.vjp(total, g)
    x_bar, h_bar = _wide(branch.vjp_vjp(x, h, a))
    if shortcut is None:
        h_bar = h_bar + widened(a)
    else:
        x_more, h_more = _wide(shortcut.vjp_vjp(x, h, a))
        x_bar, h_bar = x_bar + x_more, h_bar + h_more
    h_bar = h_bar.astype(x.dtype)
    if activation is None:
        return x_bar.astype(x.dtype), h_bar
    s_bar, g_bar = activation.vjp_vjp(total, g, h_bar)
    return (x_bar + widened(_pulled(x, branch, shortcut, s_bar))).astype(x.dtype), g_bar.astype(g.dtype)


def _total(x, branch, shortcut) -> Array:
    """The sum, in new memory."""
    check_float(x, "x")
    skipped = x if shortcut is None else like(shortcut(x), x, "the shortcut's result")
    return summed(skipped, like(branch(x), x, "the branch's result")).astype(x.dtype)


def _pulled(x, branch, shortcut, g) -> Array:
    """The cotangent of x, for that of the sum."""
    skipped = g if shortcut is None else shortcut.vjp(x, g)
    return summed(skipped, branch.vjp(x, g)).astype(x.dtype)


def _wide(pair: tuple[Array, Array]) -> tuple[Array, Array]:
    return widened(pair[0]), widened(pair[1])
