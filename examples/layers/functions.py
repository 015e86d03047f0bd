"""Functions that lack some of the canonical arguments; what they have written in is declared in one line."""

from __future__ import annotations

import numpy as np


def rms_norm(x, weight):
    """RMSNorm over the last axis, with eps = 1e-6 written in."""
    wide = _wide(x)
    y = wide / np.sqrt(np.mean(wide * wide, axis=-1, keepdims=True) + wide.dtype.type(1e-6))
    return (y if weight is None else y * weight).astype(x.dtype)


def normalised(x, epsilon):
    """LayerNorm over the last axis without gamma and beta."""
    wide = _wide(x)
    centred = wide - wide.mean(axis=-1, keepdims=True)
    return (centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + epsilon)).astype(x.dtype)


def channels_first(x, gamma, beta, eps=1e-6):
    """LayerNorm over axis 1 of x, shape (N, C, ...); gamma and beta have always to be given."""
    wide = _wide(x)
    centred = wide - wide.mean(axis=1, keepdims=True)
    y = centred / np.sqrt(np.mean(centred * centred, axis=1, keepdims=True) + eps)
    shape = (1, -1, *(1,) * (x.ndim - 2))
    return (y * gamma.reshape(shape) + beta.reshape(shape)).astype(x.dtype)


def eps_beside(x, weight):
    """RMSNorm with eps = 1e-6 beside the root, where it does not belong."""
    wide = _wide(x)
    y = wide / (np.sqrt(np.mean(wide * wide, axis=-1, keepdims=True)) + wide.dtype.type(1e-6))
    return (y if weight is None else y * weight).astype(x.dtype)


def inference(x, gamma, beta, mean, variance, eps):
    """BatchNorm in inference, channels in axis 1."""
    shape = (1, -1, *(1,) * (x.ndim - 2))
    x, mean, variance = _wide(x), _wide(mean).reshape(shape), _wide(variance).reshape(shape)
    y = (x - mean) / np.sqrt(variance + eps)
    y = y if gamma is None else y * gamma.reshape(shape)
    return (y if beta is None else y + beta.reshape(shape)).astype(x.dtype)


def _wide(values):
    """The values in float32 at least."""
    return values.astype(np.promote_types(values.dtype, np.float32))
