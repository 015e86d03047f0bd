"""LayerNorm with sqrt(sigma + eps), as textbooks print it: under the root stands the deviation, not its square.

Check:        normspec check examples/layer_norm_sigma_in_the_root.py:layer_norm --op layer_norm
Verdict:      does not conform (exit status 1)
Violates:     LN-F1, LN-L1, LN-L11, LN-G1 among others
Conventions:  none

The root is taken twice, of the variance and again of the deviation: groups of deviation 4 come out with deviation 2.
"""

import torch


def layer_norm(x, gamma, beta, *, eps, axes):
    """(x - mu) / sqrt(sigma + eps) * gamma + beta."""
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    mu = wide.mean(axes, keepdim=True)
    sigma = wide.std(axes, keepdim=True, unbiased=False)
    y = (wide - mu) / torch.sqrt(sigma + eps)
    if gamma is not None:
        y = gamma * y
    if beta is not None:
        y = y + beta
    return y.to(x.dtype)
