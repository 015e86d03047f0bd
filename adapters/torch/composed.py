"""
The composed operators, written with PyTorch's functions as users write them: PyTorch ships no layers of these names.

There are no checks beyond PyTorch's own: a branch's result that can be broadcast to x's shape is broadcast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from ..binding import Binding
from ..known import KnownViolation
from .bridge import SOURCE
from .layers import (
    LAYER_NORM_CONVENTIONS,
    LAYER_NORM_REASONS,
    constants_in_forward_mode,
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
    KnownViolation(
        "CM-C6",
        "addition and multiplication broadcast without a word",
        links=("https://docs.pytorch.org/docs/stable/notes/broadcasting.html",),
        failures=("accepts",),
    ),
)


def _residual(x, branch, *, shortcut=None, activation=None):
    y = branch(x) + (x if shortcut is None else shortcut(x))
    return y if activation is None else activation(y)


# Blocks ---------------------------------------------------------------------------------------------------


def _pre_norm(x, sublayer, gamma, beta, *, eps):
    return x + sublayer(functional.layer_norm(x, x.shape[-1:], gamma, beta, eps))


def _pre_norm_module(x, sublayer, gamma, beta, *, eps, mode):
    return x + sublayer(module_layer_norm(x, gamma, beta, eps=eps, axes=(-1,), mode=mode))


def _post_norm(x, sublayer, gamma, beta, *, eps):
    return functional.layer_norm(x + sublayer(x), x.shape[-1:], gamma, beta, eps)


def _post_norm_module(x, sublayer, gamma, beta, *, eps, mode):
    return module_layer_norm(x + sublayer(x), gamma, beta, eps=eps, axes=(-1,), mode=mode)


# Highway --------------------------------------------------------------------------------------------------


def _highway(x, transform, gate, *, carry=None):
    t = torch.sigmoid(gate(x))
    c = 1 - t if carry is None else torch.sigmoid(carry(x))
    return transform(x) * t + x * c


def _highway_lerp(x, transform, gate):
    return torch.lerp(x, transform(x), torch.sigmoid(gate(x)))


# Multi-scale highway --------------------------------------------------------------------------------------


def _mhc(x, branches, logits, *, fuse=None):
    outputs = [branch(x) for branch in branches]
    if fuse is not None:
        return x + fuse(outputs)
    weights = torch.softmax(logits, dim=0)
    return x + sum(weight * output for weight, output in zip(weights, outputs))


def _mhc_stacked(x, branches, logits, *, fuse=None):
    outputs = [branch(x) for branch in branches]
    if fuse is not None:
        return x + fuse(outputs)
    return x + torch.einsum("k,k...->...", torch.softmax(logits, dim=0), torch.stack(outputs))


#: The known violations of layer_norm, as they show in a block.
IN_PRE_NORM, IN_POST_NORM = (
    (second_order_of_beta_alone(second), *constants_in_forward_mode(*nested, issue="196700"))
    for second, *nested in (("PR-G6", "PR-G9", "PR-G10"), ("PO-G6", "PO-G9", "PO-G10"))
)


def _block(operator: str, name: str, call: Callable[..., Any], *known: KnownViolation, has_modes: bool) -> Binding:
    return Binding(
        operator,
        name,
        call,
        conventions=LAYER_NORM_CONVENTIONS,
        reasons=LAYER_NORM_REASONS,
        known_violations=(*BROADCAST, *known),
        has_modes=has_modes,
    )


def _native(
    operator: str, name: str, call: Callable[..., Any], unsupported_keywords: frozenset[str] = frozenset()
) -> Binding:
    return Binding(
        operator,
        name,
        call,
        conventions={"storage": "native"},
        reasons={"storage": _EACH_ROUNDED},
        known_violations=BROADCAST,
        unsupported_keywords=unsupported_keywords,
    )


BINDINGS: tuple[Binding, ...] = (
    Binding("residual", "torch x + branch(x)", _residual, known_violations=BROADCAST),
    _block("pre_norm", "torch x + sublayer(nn.LayerNorm(x))", _pre_norm_module, *IN_PRE_NORM, has_modes=True),
    _block("pre_norm", "torch x + sublayer(functional.layer_norm(x))", _pre_norm, *IN_PRE_NORM, has_modes=False),
    _block("post_norm", "torch nn.LayerNorm(x + sublayer(x))", _post_norm_module, *IN_POST_NORM, has_modes=True),
    _block("post_norm", "torch functional.layer_norm(x + sublayer(x))", _post_norm, *IN_POST_NORM, has_modes=False),
    _native("highway", "torch H * t + x * (1 - t)", _highway),
    _native("highway", "torch.lerp(x, H, t)", _highway_lerp, unsupported_keywords=frozenset({"carry"})),
    _native("mhc", "torch x + sum(softmax(logits)[k] * H[k])", _mhc),
    _native("mhc", "torch x + einsum(softmax(logits), stack(H))", _mhc_stacked),
)
