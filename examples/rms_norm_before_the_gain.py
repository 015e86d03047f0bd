"""RMSNorm as Llama and T5 have it: rounded to the dtype of x before the gain, and once more after it.

Check:        normspec check examples/rms_norm_before_the_gain.py:rms_norm --op rms_norm
Verdict:      does not conform (exit status 1)
Violates:     RM-F1 among others
Conventions:  none

Check:        normspec check examples/rms_norm_before_the_gain.py:rms_norm --op rms_norm --convention cast=before-gain
Verdict:      conforms (exit status 0)
Conventions:  cast=before-gain

In float32 the two orders are one. In bfloat16 about a quarter of all elements differ by a unit in the last place from
what PyTorch's own layer gives, which rounds once at the end; the report of the first command names the declaration.
"""

import torch


def rms_norm(x, gamma, *, eps, axes):
    """gamma (x / sqrt(mean(x^2) + eps)), the quotient in the dtype of x."""
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    y = (wide * torch.rsqrt(wide.square().mean(axes, keepdim=True) + eps)).to(x.dtype)
    return y if gamma is None else (gamma * y).to(x.dtype)
