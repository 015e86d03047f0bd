"""Layer normalisation in NumPy, with its gradients, as one would write it for a small model."""

from __future__ import annotations

import numpy as np


def layer_norm(x, gamma, beta, *, eps, axes):
    """Return gamma * (x - mean) / sqrt(var + eps) + beta, computed in float32 at least."""
    xhat, _ = _normalised(x, eps, axes)
    y = xhat if gamma is None else xhat * gamma
    return (y if beta is None else y + beta).astype(x.dtype)


def layer_norm_vjp(x, gamma, beta, g, *, eps, axes):
    """Return the gradients of sum(y * g) in x, gamma and beta; None for a parameter that is not there."""
    xhat, r = _normalised(x, eps, axes)
    g = g.astype(xhat.dtype)
    rows = tuple(range(x.ndim - len(axes)))
    dgamma = None if gamma is None else np.sum(g * xhat, axis=rows).astype(gamma.dtype)
    dbeta = None if beta is None else np.sum(g, axis=rows).astype(beta.dtype)
    d = g if gamma is None else g * gamma
    mean, product = d.mean(axes, keepdims=True), (d * xhat).mean(axes, keepdims=True)
    return (r * (d - mean - xhat * product)).astype(x.dtype), dgamma, dbeta


def _normalised(x, eps, axes):
    """The normalised values, and one over the root: 16-bit data is computed in float32."""
    if x.size == 0:
        raise ValueError("the batch is empty")
    wide = x.astype(np.result_type(x, np.float32))
    d = wide - wide.mean(axes, keepdims=True)
    r = 1 / np.sqrt(np.square(d).mean(axes, keepdims=True) + np.asarray(eps, wide.dtype))
    return d * r, r
