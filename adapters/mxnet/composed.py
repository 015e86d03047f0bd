"""The composed operators, written with MXNet's functions as users write them: it ships no layers of these names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import mxnet as mx
import numpy as np

from ..binding import Binding
from ..composed import highway, mhc, post_norm, pre_norm, residual
from ..departures import Departures
from ..known import KnownViolation, broadcasts_results
from .layers import LAYER_NORM, SOURCE, gluon_layer_norm

#: Why the other operators round every operation.
_EACH_ROUNDED = (
    "each operation on 16-bit arrays rounds its result to 16 bits: the gate or the weights, every product and every"
    f" sum; {SOURCE}tensor/elemwise_binary_op_basic.cc"
)

#: Why a result of another shape is accepted if it can be broadcast.
_BROADCAST = (
    broadcasts_results(
        "the operators of arrays broadcast without a word", f"{SOURCE}tensor/elemwise_binary_broadcast_op_basic.cc"
    ),
)


def _subnormal_weight(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether softmax(logits) has a subnormal weight."""
    logits = np.asarray(inputs["logits"], np.float64)
    weights = np.exp(logits - logits.max())
    weights /= weights.sum()
    return bool(((weights > 0) & (weights < 2.0**-126)).any())


#: The known violations of mhc that come from the functions it is built of.
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


def _weighted(x, logits, outputs):
    weights = mx.nd.softmax(logits, axis=0)
    weighted = [
        mx.nd.broadcast_mul(output, weights[k].reshape((1,) * len(output.shape))) for k, output in enumerate(outputs)
    ]
    return x + reduce(add, weighted)


_BLOCK = replace(LAYER_NORM, known_violations=(*LAYER_NORM.known_violations, *_BROADCAST))
_ARITHMETIC = Departures({"storage=native": _EACH_ROUNDED}, _BROADCAST)

BINDINGS: tuple[Binding, ...] = (
    Binding("residual", "mxnet x + branch(x)", residual, known_violations=_BROADCAST),
    _BLOCK.binding("pre_norm", "mxnet x + sublayer(gluon.nn.LayerNorm(x))", pre_norm(gluon_layer_norm)),
    _BLOCK.binding("post_norm", "mxnet gluon.nn.LayerNorm(x + sublayer(x))", post_norm(gluon_layer_norm)),
    _ARITHMETIC.binding("highway", "mxnet H * t + x * (1 - t)", highway(mx.nd.sigmoid)),
    _ARITHMETIC.binding(
        "mhc",
        "mxnet x + sum(softmax(logits)[k] * H[k])",
        mhc(_weighted),
        known_violations=(*_BROADCAST, *_MHC_KNOWN_VIOLATIONS),
    ),
)
