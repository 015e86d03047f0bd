"""
LayerNorm and BatchNorm of tf.nn.moments and tf.nn.batch_normalization, and the conventions that they follow.

TensorFlow has no operation of either name for any rank: its users normalise by these two, the channels last, and keep
the running averages themselves.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..binding import Binding
from ..known import ONE_OF, KnownViolation, wrong_second_derivative

SOURCE = "https://github.com/tensorflow/tensorflow/blob/master/tensorflow/"

_NN = f"{SOURCE}python/ops/nn_impl.py"

#: What batch_normalization does, and so all that is normalised by it; and why.
CONVENTIONS = {"storage": "native"}
REASONS = {
    "storage": (
        "tf.nn.moments returns the mean and the variance in x's dtype, and tf.nn.batch_normalization computes in it:"
        f" each operation on 16-bit tensors rounds its result to 16 bits; {_NN}"
    ),
}


def layer_norm(x: Any, gamma: Any, beta: Any, *, eps: float, axes: tuple[int, ...]) -> Any:
    """LayerNorm; with float32 parameters 16-bit data is cast to float32 and back."""
    wide = widened(x, gamma, beta)
    mean, variance = tf.nn.moments(wide, axes, keepdims=True)
    return tf.cast(tf.nn.batch_normalization(wide, mean, variance, beta, gamma, eps), x.dtype)


def _batch_norm(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
    wide = moved(widened(x, gamma, beta, running_mean), channel_axis, -1)
    if training:
        mean, variance = tf.nn.moments(wide, list(range(len(x.shape) - 1)))
        new_mean = running_mean * (1 - momentum) + mean * momentum
        new_var = running_var * (1 - momentum) + variance * momentum
    else:
        mean, variance, new_mean, new_var = running_mean, running_var, running_mean, running_var
    y = tf.nn.batch_normalization(wide, mean, variance, beta, gamma, eps)
    return tf.cast(moved(y, -1, channel_axis), x.dtype), new_mean, new_var


def widened(x: Any, *parameters: Any) -> Any:
    """x in the dtype of the parameters, which may be wider than its own: no operation takes two dtypes."""
    return next((tf.cast(x, one.dtype) for one in parameters if one is not None), x)


def moved(x: Any, start: int, stop: int) -> Any:
    """x with one axis moved from one place to another."""
    order = list(range(len(x.shape)))
    axis = order.pop(start)
    order.insert(stop % len(x.shape), axis)
    return x if order == sorted(order) else tf.transpose(x, order)


#: Where a parameter of one element, or one that is missing an axis, goes through.
_BROADCAST = KnownViolation(
    "CM-A1",
    "tf.nn.batch_normalization takes parameters that can be broadcast against x",
    links=("https://www.tensorflow.org/api_docs/python/tf/nn/batch_normalization",),
    failures=("accepts",),
    notes=(ONE_OF["gamma"], ONE_OF["beta"]),
)

#: What normalising by the moments of x is known to violate; the project's tests pin each with its numbers.
SECOND_ORDER = (
    "tf.nn.moments subtracts tf.stop_gradient(mean) in the variance, which leaves its gradient as it is and not its"
    " second derivative: that is 2/n times the identity in place of 2/n (I - 1/n)"
)
SECOND_ORDER_LINKS = (f"{_NN} (moments)", "https://github.com/tensorflow/tensorflow/pull/19609")


def second_order_violations(second_order: str, *nested: str) -> tuple[KnownViolation, ...]:
    """What a binding is expected to violate, by the requirements about second order and nested derivatives."""
    wrong = wrong_second_derivative(
        second_order, *nested, reason=SECOND_ORDER, links=SECOND_ORDER_LINKS, dtypes=("float32", "float64")
    )
    return (*wrong, _BROADCAST)


BINDINGS: tuple[Binding, ...] = (
    Binding(
        "layer_norm",
        "tf.nn.moments + tf.nn.batch_normalization",
        layer_norm,
        conventions=CONVENTIONS,
        reasons=REASONS,
        known_violations=second_order_violations("LN-G9", "LN-G12", "LN-G13", "LN-G14"),
    ),
    Binding(
        "batch_norm",
        "tf.nn.moments + tf.nn.batch_normalization",
        _batch_norm,
        conventions=CONVENTIONS,
        reasons=REASONS,
        known_violations=second_order_violations("BN-G10", "BN-G13", "BN-G14", "BN-G15"),
    ),
)
