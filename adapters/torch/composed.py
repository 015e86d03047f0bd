"""
The composed operators, written with PyTorch's functions as users write them: PyTorch ships no layers of these names.

There are no checks beyond PyTorch's own: a branch's result that can be broadcast to x's shape is broadcast.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from ..binding import Binding
from ..composed import highway, mhc, post_norm, pre_norm, residual
from ..departures import Departures
from ..known import broadcasts_results
from .bridge import SOURCE
from .layers import (
    LAYER_NORM,
    constants_in_forward_mode,
    functional_layer_norm,
    module_layer_norm,
    second_order_of_beta_alone,
)

#: Why the other operators round every operation.
_EACH_ROUNDED = (
    "each operation on 16-bit tensors rounds its result to 16 bits: the gate or the weights, every product and every"
    f" sum; {SOURCE}aten/src/ATen/native/cpu/BinaryOpsKernel.cpp"
)

#: Why a result of another shape is accepted if it can be broadcast.
BROADCAST = (
    broadcasts_results(
        "addition and multiplication broadcast without a word",
        "https://docs.pytorch.org/docs/stable/notes/broadcasting.html",
    ),
)


def _lerp(x, transform, gate):
    return torch.lerp(x, transform(x), torch.sigmoid(gate(x)))


def _sum(x, logits, outputs):
    weights = torch.softmax(logits, dim=0)
    return x + sum(weight * output for weight, output in zip(weights, outputs))


def _einsum(x, logits, outputs):
    return x + torch.einsum("k,k...->...", torch.softmax(logits, dim=0), torch.stack(outputs))


#: What a block around LayerNorm declares: LayerNorm's known violations, as they show in the block.
IN_PRE_NORM, IN_POST_NORM = (
    replace(
        LAYER_NORM,
        known_violations=(
            *BROADCAST,
            second_order_of_beta_alone(second),
            *constants_in_forward_mode(*nested, issue="196700"),
        ),
    )
    for second, *nested in (("PR-G6", "PR-G9", "PR-G10"), ("PO-G6", "PO-G9", "PO-G10"))
)

_ARITHMETIC = Departures({"storage=native": _EACH_ROUNDED}, BROADCAST)

BINDINGS: tuple[Binding, ...] = (
    Binding("residual", "torch x + branch(x)", residual, known_violations=BROADCAST),
    IN_PRE_NORM.binding("pre_norm", "torch x + sublayer(nn.LayerNorm(x))", pre_norm(module_layer_norm), has_modes=True),
    IN_PRE_NORM.binding("pre_norm", "torch x + sublayer(functional.layer_norm(x))", pre_norm(functional_layer_norm)),
    IN_POST_NORM.binding(
        "post_norm", "torch nn.LayerNorm(x + sublayer(x))", post_norm(module_layer_norm), has_modes=True
    ),
    IN_POST_NORM.binding("post_norm", "torch functional.layer_norm(x + sublayer(x))", post_norm(functional_layer_norm)),
    _ARITHMETIC.binding("highway", "torch H * t + x * (1 - t)", highway(torch.sigmoid)),
    _ARITHMETIC.binding("highway", "torch.lerp(x, H, t)", _lerp, unsupported_keywords=frozenset({"carry"})),
    _ARITHMETIC.binding("mhc", "torch x + sum(softmax(logits)[k] * H[k])", mhc(_sum)),
    _ARITHMETIC.binding("mhc", "torch x + einsum(softmax(logits), stack(H))", mhc(_einsum)),
)
