"""BatchNorm of a (N, L, C) array over axis 0 alone, in NumPy.

Check:        normspec check examples/batch_norm_over_axis_zero.py:batch_norm --op batch_norm
Verdict:      does not conform (exit status 1)
Violates:     BN-F1, BN-F7, BN-S2, BN-L12 among others
Unsupported:  BN-G1, BN-G2, BN-G3, BN-G4 among others
Conventions:  none

For (N, C) this is right, and so a test on a table of features passes. With a sequence axis each position gets a mean
and a variance of its own: the batch of one sequence is all zeros, and inference normalises by something else.
"""

import numpy as np


def batch_norm(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
    """Normalise over axis 0; the running statistics keep the average over the positions."""
    wide = np.moveaxis(in_float32(x), channel_axis, -1)
    if training:
        mean, var = wide.mean(axis=0), wide.var(axis=0)
        running_mean = updated(running_mean, mean, momentum)
        running_var = updated(running_var, var, momentum)
    else:
        mean, var = in_float32(running_mean), in_float32(running_var)
    y = (wide - mean) / np.sqrt(var + eps)
    if gamma is not None:
        y = gamma * y
    if beta is not None:
        y = y + beta
    return np.moveaxis(y, -1, channel_axis).astype(x.dtype), running_mean, running_var


def updated(running, batch, momentum):
    """The moving average, one value for each channel."""
    batch = batch.reshape(-1, running.shape[0]).mean(axis=0)
    return ((1 - momentum) * in_float32(running) + momentum * batch).astype(running.dtype)


def in_float32(array):
    """The array in float32 at least."""
    return array.astype(np.promote_types(array.dtype, np.float32))
