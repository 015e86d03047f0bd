"""
Multi-scale highway connections on NumPy arrays, with their derivatives.

    y = x + sum_k w_k H_k, w = softmax(logits)        or y = x + fuse([H_1 ... H_K])        H_k = branches[k](x)

With A_k = <g, H_k>: dlogits = w (A - <w, A>).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .arguments import check_float, like
from .arithmetic import Array, summed, widened


def mhc(x, branches, logits, *, fuse: Any = None) -> Array:
    """y in x's shape and dtype. Raises ValueError where the arguments, or a part's result, do not fit together."""
    w = _weights(x, branches, logits, fuse)
    if w is None:
        return summed(x, like(fuse(_outputs(x, branches)), x, "the result of fuse")).astype(x.dtype)
    # Each output is used up before the next branch is called, which may share memory with this one.
    total = np.zeros_like(widened(x))
    for k, branch in enumerate(branches):
        total += w[k] * _output(x, branch, k)
    return summed(x, total).astype(x.dtype)


def mhc_vjp(x, branches, logits, g, *, fuse: Any = None) -> tuple[Array, Array | None]:
    """(dx, dlogits) of sum(y * g); dlogits is None with fuse."""
    w, dx = _weights(x, branches, logits, fuse), widened(like(g, x, "g"))
    if w is None:
        for branch, cotangent in zip(branches, fuse.vjp(_outputs(x, branches), g)):
            dx = summed(dx, branch.vjp(x, cotangent))
        return dx.astype(x.dtype), None
    wide, along = dx, np.zeros_like(w)
    for k, branch in enumerate(branches):
        along[k] = _dot(wide, _output(x, branch, k))
        dx = summed(dx, branch.vjp(x, (w[k] * wide).astype(x.dtype)))
    return dx.astype(x.dtype), _through(w, along).astype(logits.dtype)


def mhc_jvp(x, branches, logits, tx, tlogits, *, fuse: Any = None) -> Array:
    """The tangent of y."""
    w, ty = _weights(x, branches, logits, fuse), widened(like(tx, x, "tx"))
    moved = [branch.jvp(x, tx) for branch in branches]
    if w is None:
        return summed(ty, fuse.jvp(_outputs(x, branches), moved)).astype(x.dtype)
    tw = np.zeros_like(w) if tlogits is None else _through(w, widened(tlogits))
    for k, branch in enumerate(branches):
        ty = ty + w[k] * widened(moved[k]) + tw[k] * _output(x, branch, k)
    return ty.astype(x.dtype)


def mhc_vjp_vjp(x, branches, logits, g, a, b, *, fuse: Any = None) -> tuple[Array, Array | None, Array]:
    """(x_bar, logits_bar, g_bar): the vjp of the vjp at cotangents (a, b); b may be None, which is zero."""
    w, wide, along = _weights(x, branches, logits, fuse), widened(like(g, x, "g")), widened(like(a, x, "a"))
    x_bar, bars = np.zeros_like(wide), []
    if w is None:
        ys = _outputs(x, branches)
        for branch, cotangent in zip(branches, fuse.vjp(ys, g)):
            more, bar = branch.vjp_vjp(x, cotangent, a)
            x_bar = summed(x_bar, more)
            bars.append(bar)
        y_bars, g_bar = fuse.vjp_vjp(ys, g, bars)
        for branch, y_bar in zip(branches, y_bars):
            x_bar = summed(x_bar, branch.vjp(x, y_bar))
        return x_bar.astype(x.dtype), None, summed(along, g_bar).astype(g.dtype)

    b = np.zeros_like(w) if b is None else widened(b)
    # dlogits = w (A - <w, A>) is symmetric: what reaches A_k is what b would become.
    reaching, products, pulled = _through(w, b), np.zeros_like(w), np.zeros_like(w)
    g_bar = along
    for k, branch in enumerate(branches):
        h = _output(x, branch, k)
        more, bar = branch.vjp_vjp(x, (w[k] * wide).astype(x.dtype), a)
        products[k], pulled[k] = _dot(wide, h), _dot(wide, bar)
        g_bar = g_bar + w[k] * widened(bar) + reaching[k] * h
        x_bar = summed(x_bar, more) + widened(branch.vjp(x, (reaching[k] * wide).astype(x.dtype)))
    w_bar = pulled + b * (products - _mean(w, products)) - products * _mean(w, b)
    return x_bar.astype(x.dtype), _through(w, w_bar).astype(logits.dtype), g_bar.astype(g.dtype)


def _weights(x, branches, logits, fuse) -> Array | None:
    """The softmax of the logits, None with fuse. Raises ValueError unless exactly one of the two says how to fuse."""
    check_float(x, "x")
    if not branches:
        raise ValueError("there is no branch")
    if fuse is not None:
        if logits is not None:
            raise ValueError("both logits and fuse are given: one of them says how the branches are fused")
        return None
    if logits is None:
        raise ValueError("neither logits nor fuse is given: one of them says how the branches are fused")
    check_float(logits, "logits")
    if logits.shape != (len(branches),):
        raise ValueError(f"logits has shape {logits.shape}, not one entry for each of {len(branches)} branches")
    wide = widened(logits)
    e = np.exp(wide - wide.max())
    return e / e.sum()


def _output(x, branch, k: int) -> Array:
    return widened(like(branch(x), x, f"the result of branches[{k}]"))


def _outputs(x, branches) -> list[Array]:
    """What fuse is handed: the outputs themselves, in order."""
    return [like(branch(x), x, f"the result of branches[{k}]") for k, branch in enumerate(branches)]


def _through(w: Array, z: Array) -> Array:
    """The Jacobian of softmax, which is symmetric, times a vector."""
    return w * (z - _mean(w, z))


def _mean(w: Array, z: Array) -> Array:
    return (w * z).sum()


def _dot(left: Array, right: Array) -> Array:
    return (left * widened(right)).sum()
