"""The normalisation layers of models of `transformers`, each as it stands in a model of a small configuration."""

from __future__ import annotations

from typing import Any

import transformers
from transformers.models.deberta.modeling_deberta import DebertaLayerNorm
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm

__all__ = ["DebertaLayerNorm", "GemmaRMSNorm", "LlamaRMSNorm"]

_SMALL: dict[str, Any] = {"hidden_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}


def bert():
    """Return the LayerNorm behind BERT's embeddings."""
    return transformers.BertModel(transformers.BertConfig(vocab_size=50, **_SMALL)).embeddings.LayerNorm


def convnext():
    """Return ConvNeXt's LayerNorm of its stem, which takes channels first."""
    config = transformers.ConvNextConfig(num_stages=2, hidden_sizes=[24, 48], depths=[1, 1])
    return transformers.ConvNextModel(config).embeddings.layernorm


def vit():
    """Return the LayerNorm behind ViT's last block."""
    return transformers.ViTModel(transformers.ViTConfig(image_size=32, patch_size=8, **_SMALL)).layernorm


def deberta():
    """Return DeBERTa's own LayerNorm, behind its embeddings."""
    return transformers.DebertaModel(transformers.DebertaConfig(vocab_size=50, **_SMALL)).embeddings.LayerNorm


def llama():
    """Return the RMSNorm behind Llama's last block."""
    return transformers.LlamaModel(transformers.LlamaConfig(vocab_size=50, **_SMALL)).norm


def gemma():
    """Return the RMSNorm behind Gemma's last block, whose weight is stored less 1."""
    return transformers.GemmaModel(transformers.GemmaConfig(vocab_size=50, head_dim=12, **_SMALL)).norm
