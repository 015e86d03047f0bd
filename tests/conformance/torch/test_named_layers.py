"""Layers with fixed settings: their mistakes are named like those of functions."""

from __future__ import annotations

import pytest
import torch

import normspec


class EpsOnStd(torch.nn.Module):
    """A LayerNorm of eight features that divides by sqrt(var) + eps, and takes an eps or has its own."""

    def __init__(self, features: int = 8, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight, self.bias = torch.nn.Parameter(torch.ones(features)), torch.nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        d = x - x.mean(-1, keepdim=True)
        return d / (d.square().mean(-1, keepdim=True).sqrt() + self.eps) * self.weight + self.bias


@pytest.mark.parametrize("layer", [EpsOnStd, EpsOnStd()], ids=["class", "instance"])
def test_what_a_layer_cannot_vary_keeps_no_name_from_it(layer):
    """A case that a layer cannot run, with another eps or without gamma, does not rule out a mistake."""
    report = normspec.check(layer, op="layer_norm", dtypes=["float32"], profile="quick")
    assert [cause.faults for cause in report.causes] == [("ln-eps-on-std",)]
