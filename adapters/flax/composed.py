"""Transformer blocks around Flax's LayerNorm, as users write them."""

from __future__ import annotations

from ..binding import Binding
from ..composed import post_norm, pre_norm
from ..jax.composed import ADDED
from .conventions import PARTS_ROUNDED, declared
from .nnx_layers import layer_norm

_layer_norm = layer_norm(True)
_BLOCK = declared(PARTS_ROUNDED, fast=True, statistics=False, known_violations=ADDED)

BINDINGS: tuple[Binding, ...] = (
    _BLOCK.binding("pre_norm", "flax x + sublayer(nnx.LayerNorm(x))", pre_norm(_layer_norm)),
    _BLOCK.binding("post_norm", "flax nnx.LayerNorm(x + sublayer(x))", post_norm(_layer_norm)),
)
