"""A LayerNorm class that flattens its input with `view`, which a tensor with other strides cannot take.

Check:        normspec check examples/layer_norm_view.py:layer_norm --op layer_norm
Verdict:      does not conform (exit status 1)
Violates:     CM-V1
Conventions:  none

The values and the gradients are right. `layer(x.transpose(1, 2))` raises all the same; `reshape` would do.

A class holds its parameters, and a check hands them in: `torch.func.functional_call` lends them to the layer for one
call, and the gradients reach the tensors that were handed in.
"""

import math

import torch
from torch import nn


class FlatLayerNorm(nn.Module):
    """LayerNorm over the trailing axes, which are made one."""

    def __init__(self, shape, eps=1e-5, weight=True, bias=True):
        super().__init__()
        self.shape, self.eps = tuple(shape), eps
        self.weight = nn.Parameter(torch.ones(shape)) if weight else None
        self.bias = nn.Parameter(torch.zeros(shape)) if bias else None

    def forward(self, x):
        rows = x.view(-1, math.prod(self.shape))
        wide = rows.float() if x.dtype in (torch.float16, torch.bfloat16) else rows
        variance, mean = torch.var_mean(wide, -1, correction=0, keepdim=True)
        y = ((wide - mean) * torch.rsqrt(variance + self.eps)).view(x.shape)
        if self.weight is not None:
            y = y * self.weight
        if self.bias is not None:
            y = y + self.bias
        return y.to(x.dtype)


def layer_norm(x, gamma, beta, *, eps, axes):
    """The class, as the function that is checked."""
    layer = FlatLayerNorm(x.shape[axes[0] :], eps, weight=gamma is not None, bias=beta is not None)
    parameters = {"weight": gamma, "bias": beta}
    given = {name: tensor for name, tensor in parameters.items() if tensor is not None}
    return torch.func.functional_call(layer, given, (x,))
