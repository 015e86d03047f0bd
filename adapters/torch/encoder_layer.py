"""torch.nn.TransformerEncoderLayer: two pre_norm or two post_norm blocks around attention and a feed-forward part."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

from torch import nn

from ..binding import Binding
from .layers import LAYER_NORM
from .seams import Block, Tensors, accepts, heads, lend, recorded, takes_no_part, weights

_BLOCKS = (Block("norm1", "self_attn", "dropout1"), Block("norm2", "linear1", "dropout2"))


@lru_cache(maxsize=64)
def _layer(features: int, eps: float, norm_first: bool) -> nn.Module:
    # In training mode, because a fast path in inference bypasses the layer's own normalisations.
    return nn.TransformerEncoderLayer(
        features,
        heads(features),
        dim_feedforward=2 * features + 1,
        dropout=0.0,
        layer_norm_eps=eps,
        batch_first=True,
        norm_first=norm_first,
        device="meta",
    ).train()


def _seams(x: Any, gamma: Any, beta: Any, g: Any, *, eps: float, seed: int, norm_first: bool) -> list[Tensors]:
    layer = _layer(x.shape[-1], eps, norm_first)
    tensors = lend(weights(layer, _BLOCKS, x, seed), _BLOCKS[0], gamma, beta)
    return recorded(layer, _BLOCKS, tensors, x, g, pre=norm_first)


def _binding(operator: str, norm_first: bool) -> Binding:
    return LAYER_NORM.binding(
        operator,
        f"torch.nn.TransformerEncoderLayer(norm_first={norm_first})",
        takes_no_part,
        known_violations=(),
        accepts=accepts,
        seams=partial(_seams, norm_first=norm_first),
    )


BINDINGS: tuple[Binding, ...] = (_binding("pre_norm", norm_first=True), _binding("post_norm", norm_first=False))
