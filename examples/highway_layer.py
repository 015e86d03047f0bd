"""A highway layer: transform(x) * t + x * (1 - t), with t = sigmoid(gate(x)), or with a carry gate of its own.

Check:        normspec check examples/highway_layer.py:highway --op highway
Verdict:      conforms (exit status 0)
Conventions:  none

The class takes its parts from outside: a check hands it transforms and gates that are known exactly, and
`dense_highway` hands it the linear maps of the layer as it was published.
"""

import torch
from torch import nn


class HighwayLayer(nn.Module):
    """The two paths, weighed by t and by 1 - t or sigmoid(carry(x)); 16-bit data is weighed in float32."""

    def __init__(self, transform, gate, carry=None):
        super().__init__()
        self.transform, self.gate, self.carry = transform, gate, carry

    def forward(self, x):
        dtype = torch.promote_types(x.dtype, torch.float32)
        h = self.transform(x).to(dtype)
        t = torch.sigmoid(self.gate(x).to(dtype))
        c = 1 - t if self.carry is None else torch.sigmoid(self.carry(x).to(dtype))
        return (h * t + x.to(dtype) * c).to(x.dtype)


def highway(x, transform, gate, *, carry=None):
    """The class, as the function that is checked."""
    return HighwayLayer(transform, gate, carry)(x)


def dense_highway(width, bias=-2.0):
    """A dense layer whose gate is nearly closed at first: it begins as the identity, and can be stacked deep."""
    gate = nn.Linear(width, width)
    nn.init.constant_(gate.bias, bias)
    return HighwayLayer(nn.Sequential(nn.Linear(width, width), nn.ReLU()), gate)


if __name__ == "__main__":
    deep = nn.Sequential(*[dense_highway(50) for _ in range(20)])
    print(deep(torch.randn(8, 50)).shape)
