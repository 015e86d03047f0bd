"""A file in the manner of KernelBench: BatchNorm, and a kernel for it that leaves the running statistics alone."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    """What the kernel has to compute."""

    def __init__(self, num_features: int):
        super().__init__()
        self.bn = nn.BatchNorm2d(num_features=num_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.bn(x)


class ModelNew(nn.Module):
    """The same in a few operations; its running statistics stay what they are."""

    running_mean: torch.Tensor
    running_var: torch.Tensor

    def __init__(self, num_features: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.eps = 1e-5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0)
        if not self.training:
            mean, variance = self.running_mean, self.running_var
        scale = self.weight * torch.rsqrt(variance + self.eps)
        return (x - mean[:, None, None]) * scale[:, None, None] + self.bias[:, None, None]


batch_size, features, dim1, dim2 = 64, 64, 512, 512


def get_inputs():
    """Return what the model is called with."""
    return [torch.rand(batch_size, features, dim1, dim2)]


def get_init_inputs():
    """Return what the model is made with."""
    return [features]
