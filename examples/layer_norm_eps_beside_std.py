"""LayerNorm with (x - mean) / (std + eps), the form of many Keras and transformer tutorials.

Check:        normspec check examples/layer_norm_eps_beside_std.py:layer_norm --op layer_norm
Verdict:      does not conform (exit status 1)
Violates:     LN-F1, LN-F3, LN-L1, LN-L11, LN-G1 among others
Conventions:  none

Where the deviation is 1 nobody sees the difference. Where it is near sqrt(eps), in a layer whose output is almost
constant, the gain is another one; and the derivative of the bare root is infinite for a constant group.
"""

import torch


def layer_norm(x, gamma, beta, *, eps, axes):
    """(x - mean) / (std + eps) * gamma + beta."""
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    mean = wide.mean(axes, keepdim=True)
    std = wide.std(axes, keepdim=True, unbiased=False)
    y = (wide - mean) / (std + eps)
    if gamma is not None:
        y = gamma * y
    if beta is not None:
        y = y + beta
    return y.to(x.dtype)
