"""The gradients that PyTorch's batch_norm returns on the CPU where it reads the cotangent's memory in another order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..known import Failure, Predicted
from .formats import ROUNDOFFS, UNDERFLOWS


def comes_of(failure: Failure, read: Any) -> Predicted:
    """
    Whether each element of a gradient is what a misread cotangent gives.

    ``read``: the cotangent as it is read, shape (channels, n), with the values of a channel in the order in which they
    follow one another where the channels lie last.

    The error of x - mean is 2 u of the largest |x| or |mean|: relative to deviations of 1/r, that is 2 u |x| r, hence
    the factor k. The error of a product or quotient is u, and that of a sum of n terms n u times the sum of their
    magnitudes. The prediction is computed in float64 too: in float64 it is as far off as PyTorch's result.
    """
    assert failure.got is not None
    inputs, settings = failure.inputs, failure.settings
    axis = settings["channel_axis"]
    x = np.moveaxis(np.asarray(inputs["x"], np.float64), axis, -1)
    rows = x.reshape(-1, x.shape[-1]).T
    dtype = np.asarray(inputs["x"]).dtype.name
    u, eta, n = ROUNDOFFS[dtype], UNDERFLOWS.get(dtype, 0.0), rows.shape[1]
    w = column(np.ones(len(rows)) if inputs["gamma"] is None else inputs["gamma"])
    trains = settings.get("training", True)
    mean = rows.mean(axis=1, keepdims=True) if trains else column(inputs["running_mean"])
    variance = rows.var(axis=1, keepdims=True) if trains else column(inputs["running_var"])
    r = 1 / np.sqrt(variance + settings["eps"])
    xhat = (rows - mean) * r
    k = 1 + 2 * (np.abs(rows).max(axis=1, keepdims=True) + np.abs(mean)) * r
    along, size = (read * xhat).sum(axis=1, keepdims=True), (np.abs(read * xhat)).sum(axis=1, keepdims=True)
    off = (2 * n + 16) * u
    if failure.output == "dbeta":
        predicted, bound = read.sum(axis=1), off * np.abs(read).sum(axis=1) + eta
    elif failure.output == "dgamma":
        # The rounding of an element of xhat may be large even if the element is small.
        predicted, bound = along[:, 0], (off * k * (size + np.abs(read).sum(axis=1, keepdims=True)))[:, 0] + eta
    else:
        average = read.mean(axis=1, keepdims=True) if trains else np.zeros_like(mean)
        inner = along / n if trains else np.zeros_like(mean)
        terms = np.abs(read) + np.abs(read).mean(axis=1, keepdims=True)
        terms = terms + (np.abs(xhat) + 1) * (size / n + np.abs(average))
        values = w * r * (read - average - xhat * inner)
        predicted = np.moveaxis(values.T.reshape(x.shape), -1, axis)
        bound = np.moveaxis((np.abs(w) * r * off * k * terms).T.reshape(x.shape), -1, axis) + eta
    return np.abs(failure.got - predicted) <= bound


def column(values: Any) -> Any:
    """A value for each channel, to be used with rows."""
    return np.asarray(values, np.float64).reshape(-1, 1)
