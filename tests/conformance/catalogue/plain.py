"""The right formulas in plain NumPy, in steps: a function takes from here everything that it does not get wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

Array = np.ndarray


def wide(x: Array) -> Array:
    """x in the dtype in which 16-bit data is computed."""
    return x.astype(np.result_type(x, np.float32))


@attrs.frozen
class Lines:
    """One call's x as lines, one group per line, and how its parameters lie beside them."""

    #: (groups, values in a group), in the dtype of the computation.
    rows: Array
    #: Lines in x's shape.
    back: Callable[[Array], Array]
    #: A parameter beside the lines.
    spread: Callable[[Array], Array]
    #: Lines summed to a parameter's shape.
    total: Callable[[Array], Array]


def lines(operator: str, x: Array, settings: dict[str, Any]) -> Lines:
    """The lines of a call of layer_norm, rms_norm, group_norm, instance_norm or batch_norm."""
    if "axes" in settings:
        shape = tuple(x.shape[axis] for axis in settings["axes"])
        n = int(np.prod(shape))
        return Lines(
            wide(x).reshape(-1, n),
            lambda rows: rows.reshape(x.shape),
            lambda parameter: wide(parameter).reshape(1, n),
            lambda rows: rows.sum(0).reshape(shape),
        )
    axis = settings["channel_axis"]
    first = 0 if operator == "batch_norm" else 1
    moved = np.moveaxis(wide(x), axis, first)
    channels = x.shape[axis]
    if operator == "batch_norm":
        return Lines(
            moved.reshape(channels, -1),
            lambda rows: np.moveaxis(rows.reshape(moved.shape), 0, axis),
            lambda parameter: wide(parameter).reshape(-1, 1),
            lambda rows: rows.sum(1),
        )
    samples, places = x.shape[0], int(np.prod(moved.shape[2:]))
    groups = settings.get("groups", channels)

    def spread(parameter: Array) -> Array:
        each = np.broadcast_to(wide(parameter).reshape(1, channels, 1), (samples, channels, places))
        return each.reshape(samples * groups, channels // groups * places)

    return Lines(
        moved.reshape(samples * groups, channels // groups * places),
        lambda rows: np.moveaxis(rows.reshape(moved.shape), 1, axis),
        spread,
        lambda rows: rows.reshape(samples, channels, places).sum((0, 2)),
    )


def mean(rows: Array) -> Array:
    """The mean of each line, a column."""
    return rows.mean(1, keepdims=True)


def var(rows: Array) -> Array:
    """The variance of each line, a column."""
    return np.square(rows - mean(rows)).mean(1, keepdims=True)


def square(rows: Array) -> Array:
    """The mean square of each line, a column."""
    return np.square(rows).mean(1, keepdims=True)


def normalised(rows: Array, eps: Any) -> Array:
    """(x - mean) / sqrt(var + eps)."""
    return (rows - mean(rows)) / np.sqrt(var(rows) + eps)


def scaled(rows: Array, eps: Any) -> Array:
    """x / sqrt(mean(x^2) + eps)."""
    return rows / np.sqrt(square(rows) + eps)


def affine(xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
    """gamma xhat + beta, of parameters that lie beside xhat."""
    y = xhat if gamma is None else xhat * gamma
    return y if beta is None else y + beta


def finished(operator: str, x: Array, xhat: Array, gamma: Array | None, beta: Array | None, settings: Any) -> Array:
    """y in x's shape and dtype, of a normalised value in lines."""
    at = lines(operator, x, settings)
    beside = [None if one is None else at.spread(one) for one in (gamma, beta)]
    return np.ascontiguousarray(at.back(affine(xhat, *beside)).astype(x.dtype))


def forward(operator: str, x: Array, gamma: Any, beta: Any, eps: float, settings: Any) -> Array:
    """y of layer_norm, rms_norm, group_norm or instance_norm."""
    rows = lines(operator, x, settings).rows
    formula = scaled if operator == "rms_norm" else normalised
    return finished(operator, x, formula(rows, rows.dtype.type(eps)), gamma, beta, settings)


@attrs.frozen
class Pull:
    """What a backward pass can use: the call, and its steps in lines."""

    operator: str
    x: Array
    cotangent: Array
    gamma: Array | None
    beta: Array | None
    lines: Lines
    #: The mean of each line, 1 / sqrt(var + eps) as a column, the normalised value and the cotangent.
    mean: Array
    r: Array
    xhat: Array
    g: Array
    eps: Any
    #: gamma beside the lines; 1 where it is None.
    gain: Array
    settings: dict[str, Any]

    @property
    def h(self) -> Array:
        """gamma g."""
        return self.gain * self.g

    def dx(self, h: Array | None = None, r: Array | None = None, xhat: Array | None = None) -> Array:
        """r (h - mean(h) - xhat mean(h xhat)), in lines; without mean(h) in rms_norm."""
        h = self.h if h is None else h
        xhat = self.xhat if xhat is None else xhat
        centre = 0 if self.operator == "rms_norm" else mean(h)
        return (self.r if r is None else r) * (h - centre - xhat * mean(h * xhat))

    def total(self, rows: Array) -> Array:
        """Lines summed to a parameter's shape."""
        return self.lines.total(rows)

    def gradients(self, dx: Any = None, dgamma: Any = None, dbeta: Any = None) -> tuple[Any, ...]:
        """The gradients as the contract returns them; those that are not given are right."""
        dx = self.lines.back(self.dx() if dx is None else dx).astype(self.x.dtype)
        dgamma = self.total(self.g * self.xhat) if dgamma is None else dgamma
        dbeta = self.total(self.g) if dbeta is None else dbeta
        made = [
            None if parameter is None else np.asarray(value).astype(parameter.dtype)
            for parameter, value in ((self.gamma, dgamma), (self.beta, dbeta))
        ]
        return (np.ascontiguousarray(dx), *(made[:1] if self.operator == "rms_norm" else made))


def pull(operator: str, x: Array, gamma: Any, beta: Any, g: Array, eps: float, settings: dict[str, Any]) -> Pull:
    """The steps of a backward pass."""
    at = lines(operator, x, settings)
    rows = at.rows
    small = rows.dtype.type(eps)
    if operator == "rms_norm":
        centre, r = np.zeros((len(rows), 1), rows.dtype), 1 / np.sqrt(square(rows) + small)
    else:
        centre, r = mean(rows), 1 / np.sqrt(var(rows) + small)
    gain = np.ones((1, 1), rows.dtype) if gamma is None else at.spread(gamma)
    xhat = (rows - centre) * r
    pulled = lines(operator, g.astype(rows.dtype), settings).rows
    return Pull(operator, x, g, gamma, beta, at, centre, r, xhat, pulled, small, gain, settings)


# batch_norm -----------------------------------------------------------------------------------------------------


@attrs.frozen
class Batch:
    """One call of batch_norm, x as (values of a channel, channels)."""

    x: Array
    gamma: Any
    beta: Any
    running_mean: Array
    running_var: Array
    eps: Any
    momentum: float
    training: bool
    #: x as passed.
    given: Array
    channel_axis: int

    @property
    def mean(self) -> Array:
        """The mean of each channel."""
        return self.x.mean(0)

    @property
    def var(self) -> Array:
        """The variance of each channel."""
        return np.square(self.x - self.mean).mean(0)

    def moved(self, old: Array, new: Array, weight: Any = None) -> Array:
        """(1 - momentum) old + momentum new."""
        weight = self.momentum if weight is None else weight
        return (1 - weight) * wide(old) + weight * new

    def y(self, centre: Any = None, spread: Any = None, eps: Any = None, gamma: Any = None) -> Array:
        """The normalised and scaled value, of the statistics that its mode takes unless others are given."""
        own = (self.mean, self.var) if self.training else (wide(self.running_mean), wide(self.running_var))
        centre, spread = (
            given if given is not None else right for given, right in zip((centre, spread), own, strict=True)
        )
        root = np.sqrt(spread + (self.eps if eps is None else eps))
        return affine((self.x - centre) / root, self.gamma if gamma is None else gamma, self.beta)

    def results(self, y: Any = None, running_mean: Any = None, running_var: Any = None) -> tuple[Array, ...]:
        """y and the new running statistics; those that are not given are right."""
        if not self.training:
            right = self.running_mean, self.running_var
        else:
            right = self.moved(self.running_mean, self.mean), self.moved(self.running_var, self.var)
        return (
            self.y() if y is None else y,
            right[0] if running_mean is None else running_mean,
            right[1] if running_var is None else running_var,
        )


def batch(x: Array, gamma: Any, beta: Any, running_mean: Array, running_var: Array, settings: Any) -> Batch:
    """The steps of a call."""
    rows = lines("batch_norm", x, settings).rows.T
    eps = rows.dtype.type(settings["eps"])
    moments = settings["momentum"], settings["training"]
    return Batch(rows, gamma, beta, running_mean, running_var, eps, *moments, x, settings["channel_axis"])


def returned(one: Batch, results: tuple[Array, ...]) -> tuple[Array, ...]:
    """A call's results, in the shapes and dtypes of its arguments."""
    y, running_mean, running_var = (np.asarray(value) for value in results)
    at = lines("batch_norm", one.given, {"channel_axis": one.channel_axis})
    return (
        np.ascontiguousarray(at.back(np.ascontiguousarray(y.T)).astype(one.given.dtype)),
        running_mean.astype(one.running_mean.dtype),
        running_var.astype(one.running_var.dtype),
    )
