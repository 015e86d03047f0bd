"""A LayerNorm as a kernel author writes it, in NumPy: computed in float32 at least, rounded once; no gradients."""

import numpy as np


def layer_norm(x, gamma, beta, *, eps, axes):
    """LayerNorm over the trailing axes."""
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 else x
    deviation = wide - wide.mean(axes, keepdims=True)
    y = deviation / np.sqrt((deviation * deviation).mean(axes, keepdims=True) + wide.dtype.type(eps))
    y = y if gamma is None else y * gamma
    y = y if beta is None else y + beta
    return y.astype(x.dtype)
