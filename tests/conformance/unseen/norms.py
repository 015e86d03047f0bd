"""Mistakes in the normalisations, in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from .mistake import Mistake

Array = np.ndarray

NORMS: list[Mistake] = []


def wide(x: Array) -> Array:
    """x in the dtype in which 16-bit data is computed."""
    return x.astype(np.result_type(x, np.float32))


def affine(xhat: Array, gamma: Any, beta: Any) -> Array:
    """gamma xhat + beta."""
    y = xhat if gamma is None else xhat * gamma
    return y if beta is None else y + beta


def mean(x: Array, axes: tuple[int, ...]) -> Array:
    """The mean of each group."""
    return x.mean(axis=axes, keepdims=True)


def var(x: Array, axes: tuple[int, ...]) -> Array:
    """The variance of each group."""
    return np.square(x - mean(x, axes)).mean(axis=axes, keepdims=True)


def count(x: Array, axes: tuple[int, ...]) -> int:
    """The number of values in a group."""
    return int(np.prod([x.shape[axis] for axis in axes]))


def layer_norm(name: str, what: str) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """Enter a layer_norm; the function gets x in the working dtype, and eps of that dtype."""

    def entered(change: Callable[..., Array]) -> Callable[..., Array]:
        def call(x: Array, gamma: Any, beta: Any, *, eps: float, axes: tuple[int, ...]) -> Array:
            w = wide(x)
            return np.asarray(change(w, gamma, beta, w.dtype.type(eps), axes)).astype(x.dtype)

        NORMS.append(Mistake(name, "layer_norm", what, lambda: call))
        return change

    return entered


def standard(x: Array, gamma: Any, beta: Any, eps: Any, axes: tuple[int, ...]) -> Array:
    """The right one."""
    return affine((x - mean(x, axes)) / np.sqrt(var(x, axes) + eps), gamma, beta)


# -- formulas -------------------------------------------------------------------------------------------------------


@layer_norm("half-eps", "divides by sqrt(var + eps / 2)")
def _(x, gamma, beta, eps, axes):
    return affine((x - mean(x, axes)) / np.sqrt(var(x, axes) + eps / 2), gamma, beta)


@layer_norm("thousandth-on-std", "divides by sqrt(var) + 0.001, whatever eps is")
def _(x, gamma, beta, eps, axes):
    return affine((x - mean(x, axes)) / (np.sqrt(var(x, axes)) + x.dtype.type(1e-3)), gamma, beta)


@layer_norm("no-root", "divides by var + eps without a root")
def _(x, gamma, beta, eps, axes):
    return affine((x - mean(x, axes)) / (var(x, axes) + eps), gamma, beta)


@layer_norm("cube-root", "divides by the cube root of var + eps")
def _(x, gamma, beta, eps, axes):
    return affine((x - mean(x, axes)) / np.cbrt(var(x, axes) + eps), gamma, beta)


@layer_norm("gamma-squared", "multiplies by gamma twice")
def _(x, gamma, beta, eps, axes):
    return standard(x, None if gamma is None else gamma * gamma, beta, eps, axes)


@layer_norm("gamma-through-tanh", "multiplies by tanh(gamma)")
def _(x, gamma, beta, eps, axes):
    return standard(x, None if gamma is None else np.tanh(wide(gamma)), beta, eps, axes)


@layer_norm("mid-range", "centres on the middle between the largest and the smallest value")
def _(x, gamma, beta, eps, axes):
    centre = (x.max(axes, keepdims=True) + x.min(axes, keepdims=True)) / 2
    return affine((x - centre) / np.sqrt(var(x, axes) + eps), gamma, beta)


@layer_norm("clipped", "keeps the normalised values within [-2, 2]")
def _(x, gamma, beta, eps, axes):
    return affine(np.clip((x - mean(x, axes)) / np.sqrt(var(x, axes) + eps), -2, 2), gamma, beta)


@layer_norm("n-plus-two", "divides the squared deviations by n + 2")
def _(x, gamma, beta, eps, axes):
    n = count(x, axes)
    return affine((x - mean(x, axes)) / np.sqrt(var(x, axes) * x.dtype.type(n / (n + 2)) + eps), gamma, beta)


@layer_norm("one-per-cent", "multiplies the result by 1.01")
def _(x, gamma, beta, eps, axes):
    return standard(x, gamma, beta, eps, axes) * x.dtype.type(1.01)


@layer_norm(
    "unbiased-and-eps-outside", "divides by n - 1, and adds eps to the root: two mistakes of the library at once"
)
def _(x, gamma, beta, eps, axes):
    n = np.float32(count(x, axes))
    return affine((x - mean(x, axes)) / (np.sqrt(var(x, axes) * n / (n - 1)) + eps), gamma, beta)


@layer_norm("variance-of-all", "divides by the mean of all variances")
def _(x, gamma, beta, eps, axes):
    return affine((x - mean(x, axes)) / np.sqrt(var(x, axes).mean() + eps), gamma, beta)


@layer_norm("cosine", "divides by the largest deviation in place of the root")
def _(x, gamma, beta, eps, axes):
    d = x - mean(x, axes)
    return affine(d / np.sqrt(np.square(d).max(axes, keepdims=True) + eps), gamma, beta)


@layer_norm("quantised", "rounds the result to multiples of 1/256")
def _(x, gamma, beta, eps, axes):
    return np.rint(standard(x, gamma, beta, eps, axes) * 256) / 256


# -- places ---------------------------------------------------------------------------------------------------------


@layer_norm("first-value-passes", "passes the first value of each group as it is")
def _(x, gamma, beta, eps, axes):
    y, flat = standard(x, gamma, beta, eps, axes), count(x, axes)
    y.reshape(-1, flat)[:, 0] = x.reshape(-1, flat)[:, 0]
    return y


@layer_norm("last-value-repeated", "writes the last value but one in the place of the last")
def _(x, gamma, beta, eps, axes):
    y, flat = standard(x, gamma, beta, eps, axes), count(x, axes)
    if flat > 1:
        y.reshape(-1, flat)[:, -1] = y.reshape(-1, flat)[:, -2]
    return y


@layer_norm("negative-means-lost", "returns zero for groups whose mean is negative")
def _(x, gamma, beta, eps, axes):
    return np.where(mean(x, axes) < 0, 0, standard(x, gamma, beta, eps, axes))


@layer_norm("second-group-doubled", "doubles every second group")
def _(x, gamma, beta, eps, axes):
    y, flat = standard(x, gamma, beta, eps, axes), count(x, axes)
    y.reshape(-1, flat)[1::2] *= 2
    return y


@layer_norm("last-group-of-the-first", "gives the last group the result of the first")
def _(x, gamma, beta, eps, axes):
    y, flat = standard(x, gamma, beta, eps, axes), count(x, axes)
    y.reshape(-1, flat)[-1] = y.reshape(-1, flat)[0]
    return y


@layer_norm("negative-gamma-lost", "takes a negative gamma for zero")
def _(x, gamma, beta, eps, axes):
    return standard(x, None if gamma is None else np.maximum(gamma, 0), beta, eps, axes)


@layer_norm("two-without-gamma", "takes an absent gamma for 2")
def _(x, gamma, beta, eps, axes):
    return standard(x, np.float32(2) if gamma is None else gamma, beta, eps, axes)


@layer_norm("several-axes-shifted", "adds 1 where several axes are normalised")
def _(x, gamma, beta, eps, axes):
    return standard(x, gamma, beta, eps, axes) + (len(axes) > 1)


# -- sizes ----------------------------------------------------------------------------------------------------------


@layer_norm("zeros-after-300", "returns zeros after the first 300 values of a group")
def _(x, gamma, beta, eps, axes):
    y, flat = standard(x, gamma, beta, eps, axes), count(x, axes)
    y.reshape(-1, flat)[:, 300:] = 0
    return y


@layer_norm("groups-beyond-50", "writes no more than 50 groups")
def _(x, gamma, beta, eps, axes):
    y, flat = standard(x, gamma, beta, eps, axes), count(x, axes)
    y.reshape(-1, flat)[50:] = 0
    return y


@layer_norm("statistics-of-first-700", "takes mean and variance from the first 700 values")
def _(x, gamma, beta, eps, axes):
    flat = count(x, axes)
    rows = x.reshape(-1, flat)
    few = rows[:, :700]
    m, v = few.mean(1, keepdims=True), few.var(1, keepdims=True)
    return affine(((rows - m) / np.sqrt(v + eps)).reshape(x.shape), gamma, beta)


@layer_norm("tail-of-blocks-lost", "leaves what does not fill a block of 128 values out of mean and variance")
def _(x, gamma, beta, eps, axes):
    n = count(x, axes)
    rows = x.reshape(-1, n)
    some = rows[:, : max(n // 128, 1) * 128]
    m = some.sum(1, keepdims=True) / x.dtype.type(n)
    v = np.square(some - m).sum(1, keepdims=True) / x.dtype.type(n)
    return affine(((rows - m) / np.sqrt(v + eps)).reshape(x.shape), gamma, beta)


@layer_norm("doubled-at-multiples-of-64", "doubles groups whose number of values is a multiple of 64")
def _(x, gamma, beta, eps, axes):
    return standard(x, gamma, beta, eps, axes) * (1 + (count(x, axes) % 64 == 0))


@layer_norm("halved-in-a-band", "halves groups of 257 to 512 values")
def _(x, gamma, beta, eps, axes):
    return standard(x, gamma, beta, eps, axes) / (1 + (256 < count(x, axes) <= 512))


# -- mistakes that no value shows -------------------------------------------------------------------------------------


@layer_norm("refuses-multiples-of-three", "raises where a group has a multiple of three values")
def _(x, gamma, beta, eps, axes):
    if count(x, axes) % 3 == 0:
        raise ValueError("the number of features must not be a multiple of 3")
    return standard(x, gamma, beta, eps, axes)


@layer_norm("gamma-refused", "raises where gamma is given and beta is not")
def _(x, gamma, beta, eps, axes):
    if gamma is not None and beta is None:
        raise TypeError("beta is None")
    return standard(x, gamma, beta, eps, axes)


def _third_call() -> Callable[..., Array]:
    calls = [0]

    def call(x, gamma, beta, *, eps, axes):
        calls[0] += 1
        w = wide(x)
        y = standard(w, gamma, beta, w.dtype.type(eps), axes)
        return (y * (calls[0] % 3 != 0)).astype(x.dtype)

    return call


def _looked_up() -> Callable[..., Array]:
    kept: dict[tuple[object, ...], Array] = {}

    def call(x, gamma, beta, *, eps, axes):
        key = (x.shape, x.dtype, axes, eps, x.reshape(-1)[:3].tobytes())
        if key not in kept:
            w = wide(x)
            kept[key] = standard(w, gamma, beta, w.dtype.type(eps), axes).astype(x.dtype)
        return kept[key].copy()

    return call


def _largest_variance() -> Callable[..., Array]:
    largest = [0.0]

    def call(x, gamma, beta, *, eps, axes):
        w = wide(x)
        v = var(w, axes)
        largest[0] = max(largest[0], float(v.max(initial=0.0)) if np.isfinite(v).all() else 0.0)
        return affine((w - mean(w, axes)) / np.sqrt(w.dtype.type(largest[0]) + w.dtype.type(eps)), gamma, beta).astype(
            x.dtype
        )

    return call


def _last_beta() -> Callable[..., Array]:
    last: list[Any] = [None]

    def call(x, gamma, beta, *, eps, axes):
        w = wide(x)
        use = last[0] if last[0] is not None and beta is not None and last[0].shape == beta.shape else beta
        last[0] = None if beta is None else beta.copy()
        return standard(w, gamma, use, w.dtype.type(eps), axes).astype(x.dtype)

    return call


def _beta_added_in_place() -> Callable[..., Array]:
    def call(x, gamma, beta, *, eps, axes):
        w = wide(x)
        y = standard(w, gamma, beta, w.dtype.type(eps), axes).astype(x.dtype)
        if beta is not None:
            beta *= 2
        return y

    return call


def _centred_in_place() -> Callable[..., Array]:
    def call(x, gamma, beta, *, eps, axes):
        w = wide(x)
        y = standard(w, gamma, beta, w.dtype.type(eps), axes).astype(x.dtype)
        x[...] = (w - mean(w, axes)).astype(x.dtype)
        return y

    return call


def _nan_as_one() -> Callable[..., Array]:
    def call(x, gamma, beta, *, eps, axes):
        w = np.where(np.isnan(wide(x)), 1, wide(x)).astype(wide(x).dtype)
        return standard(w, gamma, beta, w.dtype.type(eps), axes).astype(x.dtype)

    return call


def _reversed_strides() -> Callable[..., Array]:
    def call(x, gamma, beta, *, eps, axes):
        w = wide(x if all(stride >= 0 for stride in x.strides) else x[tuple(slice(None, None, -1) for _ in x.shape)])
        return standard(w, gamma, beta, w.dtype.type(eps), axes).astype(x.dtype)

    return call


def _flat() -> Callable[..., Array]:
    def call(x, gamma, beta, *, eps, axes):
        w = wide(x)
        y = standard(w, gamma, beta, w.dtype.type(eps), axes).astype(x.dtype)
        return y.reshape(-1) if x.ndim == 3 else y

    return call


NORMS += [
    Mistake("every-third-call", "layer_norm", "returns zeros in every third call", _third_call),
    Mistake("looked-up-by-three-values", "layer_norm", "keeps results by shape and three values of x", _looked_up),
    Mistake(
        "largest-variance-kept", "layer_norm", "divides by the largest variance that it ever met", _largest_variance
    ),
    Mistake("beta-of-last-call", "layer_norm", "adds the beta of the call before, where the shape fits", _last_beta),
    Mistake(
        "beta-doubled-in-place", "layer_norm", "doubles the array that it was handed for beta", _beta_added_in_place
    ),
    Mistake("x-centred-in-place", "layer_norm", "takes the mean out of the caller's x", _centred_in_place),
    Mistake("nan-as-one", "layer_norm", "takes a NaN in x for 1", _nan_as_one),
    Mistake(
        "reversed-views", "layer_norm", "reads views with a negative stride in the wrong direction", _reversed_strides
    ),
    Mistake("three-axes-flat", "layer_norm", "returns a vector where x has three axes", _flat),
]


# -- gradients --------------------------------------------------------------------------------------------------------


def _gradients(name: str, what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a layer_norm whose values are right; the function gets the right gradients and their steps."""

    def entered(change: Callable[..., Any]) -> Callable[..., Any]:
        def call(x, gamma, beta, *, eps, axes):
            w = wide(x)
            return standard(w, gamma, beta, w.dtype.type(eps), axes).astype(x.dtype)

        def vjp(x, gamma, beta, g, *, eps, axes):
            w, wg = wide(x), wide(g)
            r = 1 / np.sqrt(var(w, axes) + w.dtype.type(eps))
            xhat = (w - mean(w, axes)) * r
            h = wg if gamma is None else wg * gamma
            samples = tuple(range(x.ndim - len(axes)))
            dx = r * (h - mean(h, axes) - xhat * mean(h * xhat, axes))
            dgamma, dbeta = (wg * xhat).sum(samples), wg.sum(samples)
            dx, dgamma, dbeta = change(dx, dgamma, dbeta, xhat, r, h, wg, axes)
            return (
                dx.astype(x.dtype),
                None if gamma is None else dgamma.astype(gamma.dtype),
                None if beta is None else dbeta.astype(beta.dtype),
            )

        NORMS.append(Mistake(name, "layer_norm", what, lambda: call, {"vjp": vjp}))
        return change

    return entered


@_gradients("dgamma-doubled", "returns dgamma twice as large")
def _(dx, dgamma, dbeta, xhat, r, h, g, axes):
    return dx, 2 * dgamma, dbeta


@_gradients("dx-half-the-mean", "subtracts half of mean(gamma g) in dx")
def _(dx, dgamma, dbeta, xhat, r, h, g, axes):
    return dx + r * mean(h, axes) / 2, dgamma, dbeta


@_gradients("dbeta-of-first-group", "returns the cotangent of the first group for dbeta")
def _(dx, dgamma, dbeta, xhat, r, h, g, axes):
    return dx, dgamma, g.reshape(-1, *dbeta.shape)[0]


#: Memory that is never cleared, by name, shape and dtype.
_MEMORY: dict[tuple[object, ...], Array] = {}


def _added(name: str, gradient: Array) -> Array:
    kept = _MEMORY.setdefault((name, gradient.shape, gradient.dtype), np.zeros_like(gradient))
    kept += gradient
    return kept.copy()


@_gradients("memory-not-cleared", "adds dgamma and dbeta to memory that it does not clear")
def _(dx, dgamma, dbeta, xhat, r, h, g, axes):
    return dx, _added("dgamma", dgamma), _added("dbeta", dbeta)


@_gradients("additions-to-dbeta-lost", "loses the additions of some groups to dbeta, as a race does")
def _(dx, dgamma, dbeta, xhat, r, h, g, axes):
    rows = g.reshape(-1, *dbeta.shape)
    kept = np.random.default_rng(rows.shape[0] + 1000 * dbeta.size).random(len(rows)) < 0.6
    return dx, dgamma, rows[kept].sum(0)


@_gradients("dx-clipped", "clips dx to [-1, 1]")
def _(dx, dgamma, dbeta, xhat, r, h, g, axes):
    return np.clip(dx, -1, 1), dgamma, dbeta


@_gradients("dx-negated", "returns -dx")
def _(dx, dgamma, dbeta, xhat, r, h, g, axes):
    return -dx, dgamma, dbeta


# -- other normalisations -----------------------------------------------------------------------------------------


def batch_norm(name: str, what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a batch_norm; the function gets x with the channels last, as (N, C)."""

    def entered(change: Callable[..., Any]) -> Callable[..., Any]:
        def call(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
            moved = np.moveaxis(x, channel_axis, -1)
            rows = wide(moved.reshape(-1, moved.shape[-1]))
            y, m, v = change(rows, gamma, beta, running_mean, running_var, rows.dtype.type(eps), momentum, training)
            y = np.moveaxis(np.asarray(y).reshape(moved.shape), -1, channel_axis).astype(x.dtype)
            return (
                np.ascontiguousarray(y),
                np.asarray(m).astype(running_mean.dtype),
                np.asarray(v).astype(running_var.dtype),
            )

        NORMS.append(Mistake(name, "batch_norm", what, lambda: call))
        return change

    return entered


def batch(rows, gamma, beta, rm, rv, eps, momentum, training):
    """The right one."""
    if not training:
        return affine((rows - wide(rm)) / np.sqrt(wide(rv) + eps), gamma, beta), rm, rv
    m, v = rows.mean(0), rows.var(0)
    moved = ((1 - momentum) * wide(old) + momentum * new for old, new in ((rm, m), (rv, v)))
    return (affine((rows - m) / np.sqrt(v + eps), gamma, beta), *moved)


@batch_norm("momentum-squared", "weighs the new mean by the square of momentum")
def _(rows, gamma, beta, rm, rv, eps, momentum, training):
    y, m, v = batch(rows, gamma, beta, rm, rv, eps, momentum, training)
    return y, ((1 - momentum**2) * wide(rm) + momentum**2 * rows.mean(0) if training else m), v


@batch_norm("eps-doubled-in-inference", "adds eps twice in inference")
def _(rows, gamma, beta, rm, rv, eps, momentum, training):
    return batch(rows, gamma, beta, rm, rv, eps if training else 2 * eps, momentum, training)


@batch_norm("centred-on-running-mean", "subtracts the running mean in training")
def _(rows, gamma, beta, rm, rv, eps, momentum, training):
    y, m, v = batch(rows, gamma, beta, rm, rv, eps, momentum, training)
    if training:
        y = affine((rows - wide(rm)) / np.sqrt(rows.var(0) + eps), gamma, beta)
    return y, m, v


@batch_norm("channels-beyond-12", "leaves channels after the twelfth as they are")
def _(rows, gamma, beta, rm, rv, eps, momentum, training):
    y, m, v = batch(rows, gamma, beta, rm, rv, eps, momentum, training)
    y[:, 12:] = rows[:, 12:]
    return y, m, v


@batch_norm("fixed-momentum", "moves the running mean by a tenth, whatever momentum is")
def _(rows, gamma, beta, rm, rv, eps, momentum, training):
    y, m, v = batch(rows, gamma, beta, rm, rv, eps, momentum, training)
    return y, (0.9 * wide(rm) + 0.1 * rows.mean(0) if training else m), v


def rms_norm(name: str, what: str) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """Enter an rms_norm."""

    def entered(change: Callable[..., Array]) -> Callable[..., Array]:
        def call(x, gamma, *, eps, axes):
            w = wide(x)
            return np.asarray(change(w, gamma, w.dtype.type(eps), axes)).astype(x.dtype)

        NORMS.append(Mistake(name, "rms_norm", what, lambda: call))
        return change

    return entered


def _square(x, axes):
    return np.square(x).mean(axis=axes, keepdims=True)


@rms_norm("rms-gain-half", "multiplies by gamma + 1/2")
def _(x, gamma, eps, axes):
    return affine(x / np.sqrt(_square(x, axes) + eps), None if gamma is None else gamma + np.float32(0.5), None)


@rms_norm("rms-without-last", "leaves the last value of a group out of the mean square")
def _(x, gamma, eps, axes):
    flat = count(x, axes)
    rows = x.reshape(-1, flat)
    some = rows[:, :-1] if flat > 1 else rows
    return affine((rows / np.sqrt(np.square(some).mean(1, keepdims=True) + eps)).reshape(x.shape), gamma, None)


@rms_norm("rms-x-in-bfloat16", "rounds x to bfloat16")
def _(x, gamma, eps, axes):
    return affine((w := x.astype(ml_dtypes.bfloat16).astype(x.dtype)) / np.sqrt(_square(w, axes) + eps), gamma, None)


@rms_norm("rms-large-eps", "raises eps to at least 0.01")
def _(x, gamma, eps, axes):
    return affine(x / np.sqrt(_square(x, axes) + np.maximum(eps, x.dtype.type(0.01))), gamma, None)


def grouped(name: str, operator: str, what: str) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """Enter a group_norm or instance_norm; the function gets x as (N, C, positions)."""

    def entered(change: Callable[..., Array]) -> Callable[..., Array]:
        def call(x, gamma, beta, *, eps, channel_axis, groups=0):
            moved = np.moveaxis(x, channel_axis, 1)
            w = wide(moved.reshape(*moved.shape[:2], -1))
            y = change(w, gamma, beta, w.dtype.type(eps), groups or w.shape[1])
            return np.ascontiguousarray(
                np.moveaxis(np.asarray(y).reshape(moved.shape), 1, channel_axis).astype(x.dtype)
            )

        NORMS.append(Mistake(name, operator, what, lambda: call))
        return change

    return entered


def columns(value):
    """A parameter, shaped to go beside (N, C, positions)."""
    return None if value is None else value.reshape(1, -1, 1)


def in_groups(x, gamma, beta, eps, groups, root=lambda v, eps: np.sqrt(v + eps)):
    """The right one."""
    rows = x.reshape(x.shape[0], groups, -1)
    xhat = (rows - rows.mean(-1, keepdims=True)) / root(rows.var(-1, keepdims=True), eps)
    return affine(xhat.reshape(x.shape), columns(gamma), columns(beta))


@grouped("group-neighbours-variance", "group_norm", "divides by the deviation of the group before")
def _(x, gamma, beta, eps, groups):
    def root(v, eps):
        return np.sqrt(np.roll(v.reshape(-1), 1).reshape(v.shape) + eps)

    return in_groups(x, gamma, beta, eps, groups, root)


@grouped("group-gamma-reversed", "group_norm", "reads gamma from its end")
def _(x, gamma, beta, eps, groups):
    return in_groups(x, None if gamma is None else gamma[::-1], beta, eps, groups)


@grouped("group-one-where-many", "group_norm", "takes one group where there are more than two")
def _(x, gamma, beta, eps, groups):
    return in_groups(x, gamma, beta, eps, groups if groups <= 2 else 1)


@grouped("group-eps-per-channel", "group_norm", "adds eps / 4")
def _(x, gamma, beta, eps, groups):
    return in_groups(x, gamma, beta, eps / 4, groups)


@grouped("instance-first-sample", "instance_norm", "returns the first sample's result for the last sample")
def _(x, gamma, beta, eps, groups):
    y = in_groups(x, gamma, beta, eps, groups)
    y[-1:] = y[:1]
    return y


@grouped("instance-beta-halved", "instance_norm", "adds half of beta")
def _(x, gamma, beta, eps, groups):
    return in_groups(x, gamma, None if beta is None else beta / 2, eps, groups)


@grouped("instance-square-of-range", "instance_norm", "divides by the range")
def _(x, gamma, beta, eps, groups):
    rows = x.reshape(x.shape[0], groups, -1)
    xhat = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(np.ptp(rows, -1, keepdims=True) ** 2 + eps)
    return affine(xhat.reshape(x.shape), columns(gamma), columns(beta))


@grouped("instance-minus-beta", "instance_norm", "subtracts beta")
def _(x, gamma, beta, eps, groups):
    return in_groups(x, gamma, None if beta is None else -beta, eps, groups)


@grouped("group-variance-within-channels", "group_norm", "divides by the mean of the variances of a group's channels")
def _(x, gamma, beta, eps, groups):
    each = x.reshape(x.shape[0], groups, x.shape[1] // groups, -1)
    m, v = each.mean((2, 3), keepdims=True), each.var(3, keepdims=True).mean(2, keepdims=True)
    return affine(((each - m) / np.sqrt(v + eps)).reshape(x.shape), columns(gamma), columns(beta))


@grouped("group-variances-over-batch", "group_norm", "divides by the mean of a group's variances over the batch")
def _(x, gamma, beta, eps, groups):
    def root(v, eps):
        return np.sqrt(v.mean(0, keepdims=True) + eps)

    return in_groups(x, gamma, beta, eps, groups, root)


@grouped("group-last-channel-raw", "group_norm", "leaves the last channel as it is")
def _(x, gamma, beta, eps, groups):
    y = in_groups(x, gamma, beta, eps, groups)
    y[:, -1:] = x[:, -1:]
    return y


@grouped("group-samples-doubled", "group_norm", "doubles every sample after the third")
def _(x, gamma, beta, eps, groups):
    y = in_groups(x, gamma, beta, eps, groups)
    y[3:] *= 2
    return y


@grouped("instance-centred-on-batch", "instance_norm", "subtracts the mean of a channel over the batch")
def _(x, gamma, beta, eps, groups):
    xhat = (x - x.mean((0, 2), keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + eps)
    return affine(xhat, columns(gamma), columns(beta))


@grouped("instance-next-channel-statistics", "instance_norm", "divides by the deviation of the channel after it")
def _(x, gamma, beta, eps, groups):
    def root(v, eps):
        return np.sqrt(np.roll(v.reshape(-1), -1).reshape(v.shape) + eps)

    return in_groups(x, gamma, beta, eps, groups, root)


@grouped("instance-first-position-zero", "instance_norm", "writes zero in the first position of each channel")
def _(x, gamma, beta, eps, groups):
    y = in_groups(x, gamma, beta, eps, groups)
    y[:, :, :1] = 0
    return y


@grouped("instance-gamma-without-sign", "instance_norm", "takes a negative beta for zero")
def _(x, gamma, beta, eps, groups):
    return in_groups(x, gamma, None if beta is None else np.maximum(beta, 0), eps, groups)


@batch_norm("inference-half-way", "takes the mean of running and batch variance in inference")
def _(rows, gamma, beta, rm, rv, eps, momentum, training):
    y, m, v = batch(rows, gamma, beta, rm, rv, eps, momentum, training)
    if not training:
        y = affine((rows - wide(rm)) / np.sqrt((wide(rv) + rows.var(0)) / 2 + eps), gamma, beta)
    return y, m, v


@batch_norm("running-variance-clamped", "keeps the running variance from falling below 0.1")
def _(rows, gamma, beta, rm, rv, eps, momentum, training):
    y, m, v = batch(rows, gamma, beta, rm, rv, eps, momentum, training)
    return y, m, (np.maximum(v, rows.dtype.type(0.1)) if training else v)


@rms_norm("rms-of-first-half", "takes the mean square of the first half of the values")
def _(x, gamma, eps, axes):
    flat = count(x, axes)
    rows = x.reshape(-1, flat)
    some = rows[:, : max(1, flat // 2)]
    return affine((rows / np.sqrt(np.square(some).mean(1, keepdims=True) + eps)).reshape(x.shape), gamma, None)


@rms_norm("rms-negative-halved", "halves what is negative, as a leaky rectifier does")
def _(x, gamma, eps, axes):
    y = affine(x / np.sqrt(_square(x, axes) + eps), gamma, None)
    return np.where(y < 0, y / 2, y)


def _in_a_tuple(x: Array, gamma: Any, beta: Any, *, eps: float, axes: tuple[int, ...]) -> Any:
    w = wide(x)
    return (standard(w, gamma, beta, w.dtype.type(eps), axes).astype(x.dtype),)


NORMS.append(Mistake("in-a-tuple", "layer_norm", "returns y in a tuple of one value", lambda: _in_a_tuple))


@layer_norm("mean-too-large-from-1030", "subtracts a mean that is 1 % too large in groups of 1,030 values or more")
def _(x, gamma, beta, eps, axes):
    if count(x, axes) < 1030:
        return standard(x, gamma, beta, eps, axes)
    return affine((x - mean(x, axes) * x.dtype.type(1.01)) / np.sqrt(var(x, axes) + eps), gamma, beta)
