"""A LayerNorm as a kernel author writes it, in PyTorch: computed in float32 at least, rounded once."""

import torch


def layer_norm(x, gamma, beta, *, eps, axes):
    """LayerNorm over the trailing axes."""
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    deviation = wide - wide.mean(axes, keepdim=True)
    y = deviation / torch.sqrt(deviation.square().mean(axes, keepdim=True) + eps)
    y = y if gamma is None else y * gamma
    y = y if beta is None else y + beta
    return y.to(x.dtype)
