"""Layers as users write them: fused, with channels first, with an activation, frozen, and one that is wrong."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class FusedLayerNorm(nn.Module):
    """LayerNorm over the last axis, in float32 at least."""

    def __init__(self, hidden_size, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.bias = nn.Parameter(torch.zeros(hidden_size))
        self.eps = eps

    def forward(self, x):
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        centred = wide - wide.mean(-1, keepdim=True)
        y = centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + self.eps)
        return (y * self.weight + self.bias).to(x.dtype)


#: One that is made already: its size and its eps are its own.
fused = FusedLayerNorm(96, eps=1e-6)


class LayerNorm2d(nn.LayerNorm):
    """LayerNorm over the channels of x, shape (N, C, H, W), after the one of timm."""

    def __init__(self, num_channels, eps=1e-6):
        super().__init__(num_channels, eps=eps)

    def forward(self, input):
        x = input.permute(0, 2, 3, 1)
        x = functional.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class GroupNorm1(nn.GroupNorm):
    """GroupNorm with one group, after the one of timm."""

    def __init__(self, num_channels, eps=1e-5, affine=True):
        super().__init__(1, num_channels, eps=eps, affine=affine)


class BatchNormAct2d(nn.BatchNorm2d):
    """BatchNorm and an activation, after the one of timm."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, act_layer: type[nn.Module] = nn.ReLU):
        super().__init__(num_features, eps, momentum)
        self.act = act_layer()

    def forward(self, input):
        return self.act(super().forward(input))


def without_activation(num_features, eps, momentum):
    """Make a BatchNormAct2d whose activation does nothing: what is left is BatchNorm."""
    return BatchNormAct2d(num_features, eps, momentum, act_layer=nn.Identity)


class FrozenBatchNorm2d(nn.Module):
    """BatchNorm with statistics and parameters that no step changes, after the one of torchvision."""

    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.eps = eps
        for name in ("weight", "bias", "running_mean", "running_var"):
            self.register_buffer(name, torch.ones(num_features))

    def forward(self, x):
        weight, bias, mean, variance = (one.reshape(1, -1, 1, 1) for one in self.buffers())
        scale = weight * (variance + self.eps).rsqrt()
        return x * scale + (bias - mean * scale)


class AnnotatedLayerNorm(nn.Module):
    """LayerNorm as the Annotated Transformer writes it: the unbiased deviation, and eps beside it."""

    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.a_2 = nn.Parameter(torch.ones(features))
        self.b_2 = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True)
        return self.a_2 * (x - mean) / (std + self.eps) + self.b_2


class Renamed(nn.Module):
    """RMSNorm whose gain has a name that tells nothing."""

    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.amplitude = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        y = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return (y * self.amplitude).to(x.dtype)
