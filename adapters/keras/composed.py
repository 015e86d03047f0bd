"""
The composed operators, written with Keras's layers and operations as users write them; Keras itself ships only ``Add``.

Everything but the caller's parts is one function of tensors, so that JAX compiles it as one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import keras
from keras import ops

from ..binding import Binding
from .compiled import KEPT, compiled
from .conventions import HIGHWAY, MHC, POST_NORM, PRE_NORM, RESIDUAL
from .layers import layer_norm, policy


def _added(x: Any, y: Any) -> Any:
    return _add_of(tuple(x.shape), tuple(y.shape), policy(x))(x, y)


@lru_cache(maxsize=KEPT)
def _add_of(first: tuple[int, ...], second: tuple[int, ...], dtype: str) -> Callable[..., Any]:
    # The layer checks the shapes it is built for, but not the shapes of later calls.
    layer = keras.layers.Add(dtype=dtype)
    layer.build([first, second])
    return compiled(lambda x, y: layer([x, y]))


def _residual(x, branch, *, shortcut=None, activation=None):
    y = _added(x if shortcut is None else shortcut(x), branch(x))
    return y if activation is None else activation(y)


def _pre_norm(x, sublayer, gamma, beta, *, eps, mode):
    return _added(x, sublayer(layer_norm(x, gamma, beta, eps=eps, axes=(-1,), mode=mode)))


def _post_norm(x, sublayer, gamma, beta, *, eps, mode):
    return layer_norm(_added(x, sublayer(x)), gamma, beta, eps=eps, axes=(-1,), mode=mode)


def _highway(x, transform, gate, *, carry=None):
    return _gated(x, transform(x), gate(x), None if carry is None else carry(x))


@compiled
def _gated(x, h, gate, carry):
    t = ops.sigmoid(gate)
    c = 1 - t if carry is None else ops.sigmoid(carry)
    return h * t + x * c


def _mhc(x, branches, logits, *, fuse=None):
    outputs = [branch(x) for branch in branches]
    return _added(x, fuse(outputs)) if fuse is not None else _weighted(x, logits, *outputs)


@compiled
def _weighted(x, logits, *outputs):
    weights = ops.unstack(ops.cast(ops.softmax(logits), x.dtype), num=len(outputs))
    return x + sum(weight * output for weight, output in zip(weights, outputs))


BINDINGS: tuple[Binding, ...] = (
    RESIDUAL.binding("residual", "keras.layers.Add([x, branch(x)])", _residual),
    PRE_NORM.binding("pre_norm", "keras Add([x, sublayer(LayerNormalization(x))])", _pre_norm, has_modes=True),
    POST_NORM.binding("post_norm", "keras LayerNormalization(Add([x, sublayer(x)]))", _post_norm, has_modes=True),
    HIGHWAY.binding("highway", "keras H * t + x * (1 - t), t = keras.ops.sigmoid", _highway),
    MHC.binding("mhc", "keras x + sum(keras.ops.softmax(logits)[k] * H[k])", _mhc),
)
