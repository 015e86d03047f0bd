"""Layers in the manner of x-transformers: a gain of its own around PyTorch's LayerNorm, and x over its length."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class LayerNorm(nn.Module):
    """LayerNorm without a beta, whose gain may be stored less 1."""

    def __init__(self, dim, unit_offset=False):
        super().__init__()
        self.unit_offset = unit_offset
        self.ln = nn.LayerNorm(dim, elementwise_affine=False)
        self.gamma = nn.Parameter(torch.ones(dim) - float(unit_offset))

    def forward(self, x):
        return self.ln(x) * (self.gamma + float(self.unit_offset))


class RMSNorm(nn.Module):
    """x over its length, which is not let below 1e-12: no eps is added to the mean square."""

    def __init__(self, dim, unit_offset=False):
        super().__init__()
        self.unit_offset = unit_offset
        self.scale = dim**0.5
        self.g = nn.Parameter(torch.ones(dim) - float(unit_offset))

    def forward(self, x):
        return functional.normalize(x, dim=-1) * self.scale * (self.g + float(self.unit_offset))
