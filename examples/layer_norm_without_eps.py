"""LayerNorm without epsilon, in NumPy.

Check:        normspec check examples/layer_norm_without_eps.py:layer_norm --op layer_norm
Verdict:      does not conform (exit status 1)
Violates:     LN-F1, LN-F4, LN-L11, LN-L12, LN-L13 among others
Unsupported:  LN-G1, LN-G2, LN-G3 among others
Conventions:  none

A constant group becomes 0/0, and rounding noise is blown up to deviation 1. The gradients are unsupported: NumPy has
none of its own, and there is no layer_norm_vjp beside the function.
"""

import numpy as np


def layer_norm(x, gamma, beta, *, eps, axes):
    """(x - mean) / std * gamma + beta."""
    wide = x.astype(np.promote_types(x.dtype, np.float32))
    y = (wide - wide.mean(axes, keepdims=True)) / wide.std(axes, keepdims=True)
    if gamma is not None:
        y = gamma * y
    if beta is not None:
        y = y + beta
    return y.astype(x.dtype)
