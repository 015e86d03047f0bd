"""
The composed operators, written with TensorFlow's functions as users write them: it ships no layers of these names.

There are no checks beyond TensorFlow's own: a branch's result that can be broadcast to x's shape is broadcast.
"""

from __future__ import annotations

import tensorflow as tf

from ..binding import Binding
from ..composed import highway, mhc, post_norm, pre_norm, residual
from ..departures import Departures
from ..known import broadcasts_results
from .moments import NORMALISED, SOURCE, layer_norm, second_order_violations

#: Why highway and mhc round every operation.
_EACH_ROUNDED = (
    "each operation on 16-bit tensors rounds its result to 16 bits: the gate or the weights, every product and every"
    f" sum; {SOURCE}core/kernels/cwise_ops.h"
)

#: Why a result of another shape is accepted if it can be broadcast.
BROADCAST = (
    broadcasts_results(
        "addition and multiplication broadcast without a word", "https://www.tensorflow.org/api_docs/python/tf/math/add"
    ),
)


def _weighted(x, logits, outputs):
    weights = tf.unstack(tf.cast(tf.nn.softmax(logits), x.dtype), num=len(outputs))
    return x + tf.add_n([weight * output for weight, output in zip(weights, outputs)])


_ARITHMETIC = Departures({"storage=native": _EACH_ROUNDED}, BROADCAST)

BINDINGS: tuple[Binding, ...] = (
    Binding("residual", "tf x + branch(x)", residual, known_violations=BROADCAST),
    NORMALISED.binding(
        "pre_norm",
        "tf x + sublayer(batch_normalization(x, *moments(x)))",
        pre_norm(layer_norm),
        known_violations=(*BROADCAST, *second_order_violations("PR-G6", "PR-G8", "PR-G9", "PR-G10")),
    ),
    NORMALISED.binding(
        "post_norm",
        "tf batch_normalization(y, *moments(y)), y = x + sublayer(x)",
        post_norm(layer_norm),
        known_violations=(*BROADCAST, *second_order_violations("PO-G6", "PO-G8", "PO-G9", "PO-G10")),
    ),
    _ARITHMETIC.binding("highway", "tf H * t + x * (1 - t), t = tf.sigmoid", highway(tf.sigmoid)),
    _ARITHMETIC.binding("mhc", "tf x + add_n(softmax(logits)[k] * H[k])", mhc(_weighted), known_violations=()),
)
