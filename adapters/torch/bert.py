"""
BERT's blocks from Hugging Face's ``transformers``, if that is installed: post_norm, with random weights.

The package takes seconds to import, so it is imported only when one of its blocks is needed, not with the adapter.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import nn
from torch.func import functional_call

from ..binding import Binding
from .composed import IN_POST_NORM
from .layers import LAYER_NORM, having, lent
from .seams import Block, Tensors, accepts, heads, lend, recorded, takes_no_part, weights

_BLOCKS = (
    Block("attention.output.LayerNorm", "attention.self", "attention.output.dropout"),
    Block("output.LayerNorm", "intermediate", "output.dropout"),
)


class _Sublayer(nn.Module):
    """Wraps a callable as a module."""

    def __init__(self, sublayer: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.sublayer = sublayer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.sublayer(x)


def _config(features: int, eps: float) -> Any:
    from transformers import BertConfig

    # A plain dict, because a type checker does not find the last of these parameters.
    options: dict[str, Any] = {
        "hidden_size": features,
        "num_attention_heads": heads(features),
        "intermediate_size": 2 * features + 1,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "layer_norm_eps": eps,
        "attn_implementation": "eager",
    }
    return BertConfig(**options)


@lru_cache(maxsize=64)
def _self_output(features: int, eps: float, weight: bool, bias: bool) -> nn.Module:
    from transformers.models.bert.modeling_bert import BertSelfOutput

    with torch.device("meta"):
        module = BertSelfOutput(_config(features, eps))
    having(module.LayerNorm, weight, bias)
    return module


def _post_norm(x, sublayer, gamma, beta, *, eps, mode):
    """LN(dense(x) + x), with the dense layer replaced by the sublayer."""
    module = _self_output(x.shape[-1], eps, gamma is not None, beta is not None)
    module.dense = _Sublayer(sublayer)
    module.train(mode == "training")
    tensors = {f"LayerNorm.{name}": tensor for name, tensor in lent(gamma, beta).items()}
    return functional_call(module, tensors, (), {"hidden_states": x, "input_tensor": x})


@lru_cache(maxsize=64)
def _layer(features: int, eps: float) -> nn.Module:
    from transformers.models.bert.modeling_bert import BertLayer

    with torch.device("meta"):
        return BertLayer(_config(features, eps)).train()


def _seams(x: Any, gamma: Any, beta: Any, g: Any, *, eps: float, seed: int) -> list[Tensors]:
    layer = _layer(x.shape[-1], eps)
    tensors = lend(weights(layer, _BLOCKS, x, seed), _BLOCKS[0], gamma, beta)
    return recorded(layer, _BLOCKS, tensors, x, g, pre=False)


def _load() -> None:
    importlib.import_module("transformers.models.bert.modeling_bert")


def bindings() -> tuple[Binding, ...]:
    """The bindings of the layers; none if ``transformers`` is not installed."""
    if importlib.util.find_spec("transformers") is None:
        return ()
    return (
        IN_POST_NORM.binding("post_norm", "transformers BertSelfOutput", _post_norm, has_modes=True, load=_load),
        LAYER_NORM.binding(
            "post_norm",
            "transformers BertLayer",
            takes_no_part,
            known_violations=(),
            accepts=accepts,
            seams=_seams,
            load=_load,
        ),
    )
