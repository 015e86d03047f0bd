"""A multi-scale highway connection over dilated convolutions: x + sum_k softmax(logits)_k * branches[k](x).

Check:        normspec check examples/mhc_dilated_convolutions.py:mhc --op mhc
Verdict:      conforms (exit status 0)
Conventions:  none

Each branch sees the sequence at another scale: a kernel of 3 with dilation d reaches d steps to either side. The
class takes branches, logits and fusion from outside; `dilated` hands it the convolutions.
"""

import torch
from torch import nn


class MultiScaleHighway(nn.Module):
    """Branches of different receptive fields, weighed by a softmax or joined by `fuse`, in addition to the identity."""

    def __init__(self, branches, logits, fuse=None):
        super().__init__()
        self.branches, self.logits, self.fuse = branches, logits, fuse

    def forward(self, x):
        outputs = [branch(x) for branch in self.branches]
        if self.fuse is not None:
            return x + self.fuse(outputs)
        dtype = torch.promote_types(x.dtype, torch.float32)
        weights = torch.softmax(self.logits.to(dtype), dim=0)
        mixed = sum(weight * output.to(dtype) for weight, output in zip(weights, outputs, strict=True))
        return (x.to(dtype) + mixed).to(x.dtype)


class DilatedConvolution(nn.Module):
    """A depthwise convolution along a sequence (N, L, C), of the same length."""

    def __init__(self, channels, dilation):
        super().__init__()
        self.convolution = nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation, groups=channels)

    def forward(self, x):
        return torch.tanh(self.convolution(x.transpose(1, 2))).transpose(1, 2)


def mhc(x, branches, logits, *, fuse=None):
    """The class, as the function that is checked."""
    return MultiScaleHighway(branches, logits, fuse)(x)


def dilated(channels, dilations=(1, 2, 4, 8)):
    """The real layer: one convolution for each scale, all of equal weight at first."""
    branches = nn.ModuleList(DilatedConvolution(channels, dilation) for dilation in dilations)
    return MultiScaleHighway(branches, nn.Parameter(torch.zeros(len(dilations))))


if __name__ == "__main__":
    print(dilated(16)(torch.randn(2, 100, 16)).shape)
