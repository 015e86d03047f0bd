"""A multi-scale highway connection whose softmax overflows, in NumPy.

Check:        normspec check examples/mhc_softmax_overflow.py:mhc --op mhc
Verdict:      does not conform (exit status 1)
Violates:     MH-F2, MH-F3 among others
Unsupported:  MH-G1, MH-G3 among others
Conventions:  none

exp(89) is infinite in float32, and inf/inf is NaN. Logits grow while a layer trains, and the day comes late; taking
away the largest logit first changes no weight and cannot overflow.
"""

import numpy as np


def mhc(x, branches, logits, *, fuse=None):
    """x plus the branches, weighed by exp(logits) / sum(exp(logits))."""
    outputs = [branch(x) for branch in branches]
    if fuse is not None:
        return x + fuse(outputs)
    dtype = np.promote_types(x.dtype, np.float32)
    weights = np.exp(logits.astype(dtype))
    weights = weights / weights.sum()
    mixed = sum(weight * output.astype(dtype) for weight, output in zip(weights, outputs, strict=True))
    return (x.astype(dtype) + mixed).astype(x.dtype)
