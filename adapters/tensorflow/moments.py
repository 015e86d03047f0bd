"""
LayerNorm and BatchNorm by tf.nn.moments and tf.nn.batch_normalization, and the conventions that they follow.

TensorFlow has no LayerNorm or BatchNorm operation for all ranks: users normalise with these two functions, with the
channels last, and keep the running averages themselves.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..binding import Binding
from ..departures import Departures
from ..known import KnownViolation, broadcasts_parameters, wrong_second_derivative

SOURCE = "https://github.com/tensorflow/tensorflow/blob/master/tensorflow/"

_NN = f"{SOURCE}python/ops/nn_impl.py"

#: What batch_normalization declares, and so everything normalised with it.
NORMALISED = Departures(
    {
        "storage=native": (
            "tf.nn.moments returns the mean and the variance in x's dtype, and tf.nn.batch_normalization computes in"
            f" it: each operation on 16-bit tensors rounds its result to 16 bits; {_NN}"
        ),
    }
)


def layer_norm(x: Any, gamma: Any, beta: Any, *, eps: float, axes: tuple[int, ...]) -> Any:
    """LayerNorm; with float32 parameters, 16-bit data is cast to float32 and back."""
    wide = widened(x, gamma, beta)
    mean, variance = tf.nn.moments(wide, axes, keepdims=True)
    return tf.cast(tf.nn.batch_normalization(wide, mean, variance, beta, gamma, eps), x.dtype)


def _batch_norm(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
    wide = move_axis(widened(x, gamma, beta, running_mean), channel_axis, -1)
    if training:
        mean, variance = tf.nn.moments(wide, list(range(len(x.shape) - 1)))
        new_mean = running_mean * (1 - momentum) + mean * momentum
        new_var = running_var * (1 - momentum) + variance * momentum
    else:
        mean, variance, new_mean, new_var = running_mean, running_var, running_mean, running_var
    y = tf.nn.batch_normalization(wide, mean, variance, beta, gamma, eps)
    return tf.cast(move_axis(y, -1, channel_axis), x.dtype), new_mean, new_var


def widened(x: Any, *parameters: Any) -> Any:
    """x cast to the parameters' dtype, which may be wider, because no operation takes two dtypes."""
    return next((tf.cast(x, one.dtype) for one in parameters if one is not None), x)


def move_axis(x: Any, start: int, stop: int) -> Any:
    """x with one axis moved."""
    order = list(range(len(x.shape)))
    axis = order.pop(start)
    order.insert(stop % len(x.shape), axis)
    return x if order == sorted(order) else tf.transpose(x, order)


#: The known violation that a parameter with one element, or with an axis missing, is accepted.
_BROADCAST = broadcasts_parameters(
    "tf.nn.batch_normalization takes parameters that can be broadcast against x",
    "https://www.tensorflow.org/api_docs/python/tf/nn/batch_normalization",
)

#: Why normalising by tf.nn.moments violates requirements; the project's tests pin each violation with its numbers.
SECOND_ORDER = (
    "tf.nn.moments subtracts tf.stop_gradient(mean) in the variance, which leaves its gradient as it is and not its"
    " second derivative: that is 2/n times the identity in place of 2/n (I - 1/n)"
)
SECOND_ORDER_LINKS = (f"{_NN} (moments)", "https://github.com/tensorflow/tensorflow/pull/19609")


def second_order_violations(second_order: str, *nested: str) -> tuple[KnownViolation, ...]:
    """A binding's known violations of these requirements about second order and nested derivatives."""
    wrong = wrong_second_derivative(
        second_order, *nested, reason=SECOND_ORDER, links=SECOND_ORDER_LINKS, dtypes=("float32", "float64")
    )
    return (*wrong, _BROADCAST)


BINDINGS: tuple[Binding, ...] = (
    NORMALISED.binding(
        "layer_norm",
        "tf.nn.moments + tf.nn.batch_normalization",
        layer_norm,
        known_violations=second_order_violations("LN-G9", "LN-G12", "LN-G13", "LN-G14"),
    ),
    NORMALISED.binding(
        "batch_norm",
        "tf.nn.moments + tf.nn.batch_normalization",
        _batch_norm,
        known_violations=second_order_violations("BN-G10", "BN-G13", "BN-G14", "BN-G15"),
    ),
)
