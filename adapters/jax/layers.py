"""
LayerNorm and BatchNorm, written with jax.nn.standardize and jax.numpy as users write them: JAX ships no layers.

Each is compiled as a whole, as JAX's documentation advises for functions that are called repeatedly.
"""

from __future__ import annotations

import inspect
from typing import Any

import jax
import jax.numpy as jnp

from ..binding import Binding
from ..departures import Departures
from ..known import KnownViolation, broadcasts_parameters
from .lost_variance import LOST_VARIANCE

#: As Any, because type checkers do not know its newest parameter, algorithm.
_standardize: Any = jax.nn.standardize

SOURCE = "https://github.com/jax-ml/jax/blob/main/"

#: Why 16-bit data has class native.
_NATIVE = (
    "each operation on 16-bit arrays rounds its result to 16 bits, the mean, the squares and the variance among them;"
    f" {SOURCE}jax/_src/nn/functions.py (standardize)"
)

_ONE_PASS = (
    'algorithm="fast", the default, forms the variance as mean(x^2) - mean(x)^2, clipped at 0;'
    " https://docs.jax.dev/en/latest/_autosummary/jax.nn.standardize.html"
)

#: The broadcasting that every function composed of array operations accepts.
BROADCAST = (
    broadcasts_parameters(
        "multiplication and addition broadcast as NumPy's do, a gamma of one element too",
        "https://numpy.org/doc/stable/user/basics.broadcasting.html",
    ),
)

#: The effect of training with jnp.mean and jnp.var on the running statistics, in every framework on JAX.
EMPTY = (
    KnownViolation(
        "BN-E2",
        "the mean and the variance of no values are NaN, and enter the running statistics",
        links=("https://docs.jax.dev/en/latest/_autosummary/jax.numpy.mean.html",),
        failures=("nan",),
        outputs=("new_running_mean", "new_running_var"),
        modes=("training",),
    ),
)


def affine(y: Any, gamma: Any, beta: Any, dtype: Any) -> Any:
    """y * gamma + beta over y's trailing axes, in this dtype whatever gamma's is; gamma and beta may be None."""
    y = y if gamma is None else y * gamma
    y = y if beta is None else y + beta
    return y.astype(dtype)


def given(**values: Any) -> dict[str, Any]:
    """The values that are not None; for the others the framework's defaults apply."""
    return {name: value for name, value in values.items() if value is not None}


def jitted(layer: Any) -> Any:
    """The layer, compiled as a whole for each combination of its settings, which are its keyword arguments."""
    return jax.jit(layer, static_argnames=inspect.getfullargspec(layer).kwonlyargs)


def _layer_norm(algorithm: str):
    """LayerNorm by jax.nn.standardize with this algorithm."""

    @jitted
    def layer_norm(x, gamma, beta, *, axes, eps=1e-5):
        return affine(_standardize(x, axis=axes, epsilon=eps, algorithm=algorithm), gamma, beta, x.dtype)

    return layer_norm


@jitted
def _batch_norm(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
    x = jnp.moveaxis(x, channel_axis, -1)
    mean, variance = running_mean, running_var
    if training:
        rest = tuple(range(x.ndim - 1))
        mean, variance = jnp.mean(x, rest), jnp.var(x, rest)
        running_mean = (1 - momentum) * running_mean + momentum * mean
        running_var = (1 - momentum) * running_var + momentum * variance
    y = affine(_standardize(x, mean=mean, variance=variance, epsilon=eps), gamma, beta, x.dtype)
    return jnp.moveaxis(y, -1, channel_axis), running_mean, running_var


fast_layer_norm, _stable_layer_norm = _layer_norm("fast"), _layer_norm("stable")

#: What everything that is normalised with jax.nn.standardize declares, and what its default algorithm adds.
_STANDARDIZED = Departures({"storage=native": _NATIVE}, BROADCAST)
FAST = Departures({**_STANDARDIZED.follows, "variance_algorithm=one-pass": _ONE_PASS}, (*BROADCAST, *LOST_VARIANCE))

BINDINGS: tuple[Binding, ...] = (
    FAST.binding("layer_norm", "jax.nn.standardize(x)", fast_layer_norm, defaults=fast_layer_norm),
    _STANDARDIZED.binding(
        "layer_norm", 'jax.nn.standardize(x, algorithm="stable")', _stable_layer_norm, defaults=_stable_layer_norm
    ),
    _STANDARDIZED.binding(
        "batch_norm",
        "jax.nn.standardize(x, mean=jnp.mean(x), variance=jnp.var(x))",
        _batch_norm,
        known_violations=(*BROADCAST, *EMPTY),
    ),
)
