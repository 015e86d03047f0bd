"""A frozen BatchNorm, as detection models have it: four buffers, and no training.

Check:        normspec check examples/frozen_batch_norm.py:batch_norm --op batch_norm --convention storage=native --convention mixed_dtypes=promoted
Verdict:      conforms (exit status 0)
Conventions:  storage=native, mixed_dtypes=promoted

It declines every training call, and so it is judged in inference alone, which the verdict says. It folds gamma, beta
and the statistics into one factor and one term, in the dtype of x: the class `native`. Buffers of float32 make a result
of float32 of 16-bit data.
"""  # noqa: E501 - a command is one line

import torch
from torch import nn
from torch.func import functional_call


class FrozenBatchNorm2d(nn.Module):
    """The layer that detection models replace BatchNorm by, after the one of torchvision."""

    def __init__(self, channels, eps=1e-5):
        super().__init__()
        self.eps = eps
        for name in ("weight", "bias", "running_mean", "running_var"):
            self.register_buffer(name, torch.ones(channels))

    def forward(self, x):
        """Scale and shift each channel of x, shape (N, C, H, W)."""
        weight, bias, mean, variance = (b.reshape(1, -1, 1, 1) for b in self.buffers())
        scale = weight * (variance + self.eps).rsqrt()
        return x * scale + (bias - mean * scale)


def batch_norm(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
    """The layer on the buffers that are handed in."""
    weight = torch.ones_like(running_var) if gamma is None else gamma
    bias = torch.zeros_like(running_var) if beta is None else beta
    names = ("weight", "bias", "running_mean", "running_var")
    buffers = dict(zip(names, (weight, bias, running_mean, running_var), strict=True))
    y = functional_call(FrozenBatchNorm2d(len(weight), eps), buffers, (x.movedim(channel_axis, 1),))
    return y.movedim(1, channel_axis), running_mean.clone(), running_var.clone()


def batch_norm_accepts(shape, settings):
    """Why a call is declined; None where it is not."""
    return "it is frozen" if settings["training"] else None if len(shape) == 4 else "it takes four axes"
