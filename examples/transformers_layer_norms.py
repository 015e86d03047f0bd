"""The LayerNorms that DeBERTa and Cohere have of their own in `transformers`, which compute float64 in float32.

Check:        normspec check examples/transformers_layer_norms.py:deberta --op layer_norm --convention storage=H1 --convention float64=float32 --convention mixed_dtypes=promoted
Verdict:      conforms (exit status 0)
Conventions:  storage=H1, float64=float32, mixed_dtypes=promoted

Check:        normspec check examples/transformers_layer_norms.py:cohere --op layer_norm --convention float64=float32
Verdict:      conforms (exit status 0)
Conventions:  float64=float32

Both normalise over the last axis alone, and Cohere's has no beta: they decline the rest. DeBERTa rounds the normalised
value to the dtype of x before the affine map, and float32 parameters make a result of float32 of 16-bit data.
"""  # noqa: E501 - a command is one line

import torch
from torch.func import functional_call
from transformers.models.cohere.modeling_cohere import CohereLayerNorm
from transformers.models.deberta.modeling_deberta import DebertaLayerNorm

import normspec


def deberta(x, gamma, beta, *, eps, axes):
    """DebertaLayerNorm on the parameters that are handed in."""
    if axes != (-1,):
        raise normspec.Unsupported("it normalises only over the last axis")
    one, zero = x.new_ones(x.shape[-1]), x.new_zeros(x.shape[-1])
    given = {"weight": one if gamma is None else gamma, "bias": zero if beta is None else beta}
    return functional_call(DebertaLayerNorm(x.shape[-1], eps), given, (x,))


def cohere(x, gamma, beta, *, eps, axes):
    """CohereLayerNorm on the gain that is handed in."""
    if axes != (-1,) or beta is not None:
        raise normspec.Unsupported("it normalises only over the last axis, and has no beta")
    weight = torch.ones(x.shape[-1], dtype=x.dtype) if gamma is None else gamma
    return functional_call(CohereLayerNorm(x.shape[-1], eps), {"weight": weight}, (x,))
