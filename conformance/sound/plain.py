"""Textbook forms on the array as it stands: no rearrangement, keepdims and broadcasting only."""

from __future__ import annotations

import math

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.group_norm import GroupNorm
from ...adapters.numpy.operators.layer_norm import LayerNorm
from ...adapters.numpy.operators.rms_norm import RmsNorm
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


@sound("plain", operators=("rms_norm",))
class PlainRmsNorm(RmsNorm):
    """x over the root of the mean of its squares, on the array as it stands."""

    def call(self, x: Array, gamma: Array | None, *, eps: float, axes: tuple[int, ...]) -> Array:
        self.begun((x, gamma), {"eps": eps, "axes": axes})
        wide = x.astype(self.work)
        squares = np.square(wide, dtype=np.float64)
        y = wide / np.sqrt(squares.mean(axis=axes, keepdims=True) + eps).astype(self.work)
        return (y if gamma is None else y * gamma.astype(self.work)).astype(x.dtype)


@sound("plain", operators=("group_norm",))
class PlainGroupNorm(GroupNorm):
    """The channels moved to axis 1 and divided into groups there, the squares summed in float64."""

    def call(
        self, x: Array, gamma: Array | None, beta: Array | None, *, eps: float, groups: int, channel_axis: int
    ) -> Array:
        self.begun((x, gamma, beta), {"eps": eps, "groups": groups, "channel_axis": channel_axis})
        moved = np.moveaxis(x, channel_axis, 1).astype(self.work)
        samples, channels, *positions = moved.shape
        apart = moved.reshape(samples, groups, channels // groups, *positions)
        axes = tuple(range(2, apart.ndim))
        deviation = apart - apart.mean(axis=axes, keepdims=True)
        variance = np.square(deviation, dtype=np.float64).mean(axis=axes, keepdims=True)
        y = (deviation / np.sqrt(variance + eps).astype(self.work)).reshape(moved.shape)
        along = [channels, *(1 for _ in positions)]
        if gamma is not None:
            y = y * gamma.astype(self.work).reshape(along)
        if beta is not None:
            y = y + beta.astype(self.work).reshape(along)
        return np.moveaxis(y, 1, channel_axis).astype(x.dtype)
