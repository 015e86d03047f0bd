"""Textbook forms on the array as it stands: no rearrangement, keepdims and broadcasting only."""

from __future__ import annotations

import math

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.layer_norm import LayerNorm
from .registry import sound

Array = np.ndarray


@sound("plain", operators=("layer_norm",))
class PlainLayerNorm(LayerNorm):
    """The formula and its gradient on the array as it stands, the squares summed in float64."""

    def call(self, x: Array, gamma: Array | None, beta: Array | None, *, eps: float, axes: tuple[int, ...]) -> Array:
        self.begun((x, gamma, beta), {"eps": eps, "axes": axes})
        xhat, _ = self._normalised(x, eps)
        if gamma is not None:
            xhat = xhat * gamma.astype(self.work)
        if beta is not None:
            xhat = xhat + beta.astype(self.work)
        return xhat.astype(x.dtype)

    def vjp(
        self, x: Array, gamma: Array | None, beta: Array | None, g: Array, *, eps: float, axes: tuple[int, ...]
    ) -> tuple[Array, Array | None, Array | None]:
        self.begun((x, gamma, beta, g), {"eps": eps, "axes": axes}, "g")
        xhat, root = self._normalised(x, eps)
        g = g.astype(self.work)
        h = g if gamma is None else g * gamma.astype(self.work)
        centred = h - self._mean(h) - xhat * self._mean(h * xhat)
        others = tuple(range(x.ndim - len(axes)))
        return (
            (centred / root).astype(x.dtype),
            None if gamma is None else (g * xhat).sum(axis=others).astype(gamma.dtype),
            None if beta is None else g.sum(axis=others).astype(beta.dtype),
        )

    def _mean(self, array: Array) -> Array:
        count = math.prod(self.shape[-len(self.axes) :])
        return array.sum(axis=self.axes, keepdims=True) / array.dtype.type(count)

    def _normalised(self, x: Array, eps: float) -> tuple[Array, Array]:
        wide = x.astype(self.work)
        deviation = wide - self._mean(wide)
        squares = np.square(deviation, dtype=np.float64)
        root = np.sqrt(self._mean(squares) + eps).astype(self.work)
        return deviation / root, root


@sound("plain", operators=("batch_norm",))
class PlainBatchNorm(BatchNorm):
    """The formula on the array as it stands, the squares summed in float64."""

    def call(
        self,
        x: Array,
        gamma: Array | None,
        beta: Array | None,
        running_mean: Array,
        running_var: Array,
        *,
        eps: float,
        momentum: float,
        training: bool,
        channel_axis: int,
    ) -> tuple[Array, Array, Array]:
        settings = {"eps": eps, "momentum": momentum, "training": training, "channel_axis": channel_axis}
        self.begun((x, gamma, beta, running_mean, running_var), settings)
        others = tuple(axis for axis in range(x.ndim) if axis != self.channel_axis)
        along = [-1 if axis == self.channel_axis else 1 for axis in range(x.ndim)]
        wide, mean, variance = (array.astype(self.work) for array in (x, running_mean, running_var))
        new_mean, new_variance = mean, variance
        if self.training and x.size:
            mean, variance = wide.mean(axis=others), wide.var(axis=others, dtype=np.float64)
            new_mean = running_mean.astype(self.work) * self.number(1 - momentum) + mean * self.number(momentum)
            new_variance = running_var.astype(self.work) * self.number(1 - momentum) + variance * momentum
        y = (wide - mean.reshape(along)) / np.sqrt(variance.reshape(along) + eps).astype(self.work)
        if gamma is not None:
            y = y * gamma.astype(self.work).reshape(along)
        if beta is not None:
            y = y + beta.astype(self.work).reshape(along)
        return y.astype(x.dtype), new_mean.astype(running_mean.dtype), new_variance.astype(running_var.dtype)
