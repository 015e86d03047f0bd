"""Transformer blocks around Flax's LayerNorm, as users write them."""

from __future__ import annotations

from ..binding import Binding
from ..jax.composed import ADDED
from .conventions import PARTS_ROUNDED, declared
from .nnx_layers import layer_norm

_layer_norm = layer_norm(True)

_CONVENTIONS, _REASONS = declared(PARTS_ROUNDED, fast=True, statistics=False)


def _pre_norm(x, sublayer, gamma, beta, *, eps):
    return x + sublayer(_layer_norm(x, gamma, beta, axes=(-1,), eps=eps))


def _post_norm(x, sublayer, gamma, beta, *, eps):
    return _layer_norm(x + sublayer(x), gamma, beta, axes=(-1,), eps=eps)


BINDINGS: tuple[Binding, ...] = tuple(
    Binding(
        operator,
        name,
        call,
        conventions=_CONVENTIONS,
        reasons=_REASONS,
        known_violations=ADDED,
    )
    for operator, name, call in (
        ("pre_norm", "flax x + sublayer(nnx.LayerNorm(x))", _pre_norm),
        ("post_norm", "flax nnx.LayerNorm(x + sublayer(x))", _post_norm),
    )
)
