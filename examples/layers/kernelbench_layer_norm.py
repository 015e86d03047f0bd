"""A file in the manner of KernelBench: LayerNorm, and a kernel for it that computes the variance in one pass."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    """What the kernel has to compute."""

    def __init__(self, normalized_shape: tuple):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape=list(normalized_shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.ln(x)


class ModelNew(nn.Module):
    """The same, in one pass: mean(x^2) - mean(x)^2."""

    def __init__(self, normalized_shape: tuple):
        super().__init__()
        self.shape = tuple(normalized_shape)
        self.weight = nn.Parameter(torch.ones(self.shape))
        self.bias = nn.Parameter(torch.zeros(self.shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        axes = tuple(range(-len(self.shape), 0))
        mean = x.mean(axes, keepdim=True)
        variance = x.square().mean(axes, keepdim=True) - mean.square()
        return (x - mean) * torch.rsqrt(variance + 1e-5) * self.weight + self.bias


batch_size, features, dim1, dim2 = 16, 64, 256, 256


def get_inputs():
    """Return what the model is called with."""
    return [torch.rand(batch_size, features, dim1, dim2)]


def get_init_inputs():
    """Return what the model is made with."""
    return [(features, dim1, dim2)]
