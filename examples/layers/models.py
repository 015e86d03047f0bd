"""Models of `transformers` of small configurations, whose normalisation layers --layers finds."""

from __future__ import annotations

from typing import Any

import transformers

_SMALL: dict[str, Any] = {
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}


def resnet():
    """Return a ResNet of two stages."""
    config = transformers.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic")
    return transformers.ResNetModel(config)


def convnext():
    """Return a ConvNeXt of two stages."""
    return transformers.ConvNextModel(transformers.ConvNextConfig(num_stages=2, hidden_sizes=[24, 48], depths=[1, 1]))


def bert():
    """Return a BERT of two blocks."""
    return transformers.BertModel(transformers.BertConfig(vocab_size=50, **_SMALL))


def llama():
    """Return a Llama of two blocks."""
    return transformers.LlamaModel(transformers.LlamaConfig(vocab_size=50, **_SMALL))
