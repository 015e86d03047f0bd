"""The composed operators, written with MXNet's functions as users write them: it ships no layers of these names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import add
from typing import Any

import mxnet as mx
import numpy as np

from ..binding import Binding
from ..known import KnownViolation
from .layers import LAYER_NORM_CONVENTIONS, LAYER_NORM_KNOWN_VIOLATIONS, LAYER_NORM_REASONS, SOURCE, gluon_layer_norm

#: Why the other operators round every operation.
_EACH_ROUNDED = (
    "each operation on 16-bit arrays rounds its result to 16 bits: the gate or the weights, every product and every"
    f" sum; {SOURCE}tensor/elemwise_binary_op_basic.cc"
)

#: Why a result of another shape is accepted if it can be broadcast.
_BROADCAST = (
    KnownViolation(
        "CM-C6",
        "the operators of arrays broadcast without a word",
        links=(f"{SOURCE}tensor/elemwise_binary_broadcast_op_basic.cc",),
        failures=("accepts",),
    ),
)


#: The known violations of mhc that come from the functions it is built of.
def _subnormal_weight(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether softmax(logits) has a subnormal weight."""
    logits = np.asarray(inputs["logits"], np.float64)
    weights = np.exp(logits - logits.max())
    weights /= weights.sum()
    return bool(((weights > 0) & (weights < 2.0**-126)).any())


_MHC_KNOWN_VIOLATIONS = (
    KnownViolation(
        "CM-S2",
        "the gradient of broadcast_mul is not written where x has no elements, so that dlogits is whatever lay in"
        " memory",
        links=(f"{SOURCE}tensor/elemwise_binary_broadcast_op.h (BinaryBroadcastBackwardUseInImplWithWorkspace)",),
        outputs=("dlogits",),
        always=False,
    ),
    *(
        KnownViolation(
            requirement,
            "on the CPU softmax of float32 data returns zero where a weight is a subnormal number: oneDNN's exp does",
            links=(f"{SOURCE}nn/mkldnn/mkldnn_softmax.cc",),
            failures=("value",),
            dtypes=("float32",),
            devices=("cpu",),
            where="a weight that is a subnormal number",
            cases=_subnormal_weight,
        )
        for requirement in ("MH-G2", "MH-G3", "MH-G6")
    ),
)


def _residual(x, branch, *, shortcut=None, activation=None):
    y = branch(x) + (x if shortcut is None else shortcut(x))
    return y if activation is None else activation(y)


def _pre_norm(x, sublayer, gamma, beta, *, eps):
    return x + sublayer(gluon_layer_norm(x, gamma, beta, eps=eps, axes=(-1,)))


def _post_norm(x, sublayer, gamma, beta, *, eps):
    return gluon_layer_norm(x + sublayer(x), gamma, beta, eps=eps, axes=(-1,))


def _highway(x, transform, gate, *, carry=None):
    t = mx.nd.sigmoid(gate(x))
    c = 1 - t if carry is None else mx.nd.sigmoid(carry(x))
    return transform(x) * t + x * c


def _mhc(x, branches, logits, *, fuse=None):
    outputs = [branch(x) for branch in branches]
    if fuse is not None:
        return x + fuse(outputs)
    weights = mx.nd.softmax(logits, axis=0)
    weighted = [
        mx.nd.broadcast_mul(output, weights[k].reshape((1,) * len(output.shape))) for k, output in enumerate(outputs)
    ]
    return x + reduce(add, weighted)


def _block(operator: str, name: str, call: Callable[..., Any]) -> Binding:
    return Binding(
        operator,
        name,
        call,
        conventions=LAYER_NORM_CONVENTIONS,
        reasons=LAYER_NORM_REASONS,
        known_violations=(*LAYER_NORM_KNOWN_VIOLATIONS, *_BROADCAST),
    )


def _native(
    operator: str, name: str, call: Callable[..., Any], known_violations: tuple[KnownViolation, ...] = ()
) -> Binding:
    return Binding(
        operator,
        name,
        call,
        conventions={"storage": "native"},
        reasons={"storage": _EACH_ROUNDED},
        known_violations=(*_BROADCAST, *known_violations),
    )


BINDINGS: tuple[Binding, ...] = (
    Binding("residual", "mxnet x + branch(x)", _residual, known_violations=_BROADCAST),
    _block("pre_norm", "mxnet x + sublayer(gluon.nn.LayerNorm(x))", _pre_norm),
    _block("post_norm", "mxnet gluon.nn.LayerNorm(x + sublayer(x))", _post_norm),
    _native("highway", "mxnet H * t + x * (1 - t)", _highway),
    _native("mhc", "mxnet x + sum(softmax(logits)[k] * H[k])", _mhc, _MHC_KNOWN_VIOLATIONS),
)
