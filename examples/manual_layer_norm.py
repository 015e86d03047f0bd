"""A sound LayerNorm written out, and its twin, which computes in whatever dtype it is given.

Check:        normspec check examples/manual_layer_norm.py:manual_layer_norm --op layer_norm
Verdict:      conforms (exit status 0)
Conventions:  none

Check:        normspec check examples/manual_layer_norm.py:native_layer_norm --op layer_norm
Verdict:      does not conform (exit status 1)
Violates:     CM-D1, LN-F1, LN-F8, LN-G1, LN-G2 among others
Conventions:  none

Check:        normspec check examples/manual_layer_norm.py:native_layer_norm --op layer_norm --convention storage=native
Verdict:      conforms (exit status 0)
Conventions:  storage=native

In float32 and float64 the two are one function. In 16 bits the first computes in float32 and rounds once; the twin
rounds every step to 16 bits, which costs most digits of a long group. Undeclared, that is a failure; declared, the
report says `deviates` wherever the weaker class was needed.
"""

import torch


def manual_layer_norm(x, gamma, beta, *, eps, axes):
    """LayerNorm computed in float32 at least."""
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    return normalised(wide, gamma, beta, eps, axes).to(x.dtype)


def native_layer_norm(x, gamma, beta, *, eps, axes):
    """LayerNorm computed in the dtype of x."""
    return normalised(x, gamma, beta, eps, axes).to(x.dtype)


def normalised(x, gamma, beta, eps, axes):
    """The formula, in the dtype that x has here."""
    deviation = x - x.mean(axes, keepdim=True)
    variance = deviation.square().mean(axes, keepdim=True)
    y = deviation / torch.sqrt(variance + eps)
    if gamma is not None:
        y = gamma * y
    if beta is not None:
        y = y + beta
    return y
