"""A function around PyTorch's layer_norm is told what is PyTorch's own; a function of its own is not."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

import normspec


def layer_norm(x, gamma, beta, *, eps, axes):
    """PyTorch's own function."""
    return functional.layer_norm(x, x.shape[x.ndim - len(axes) :], gamma, beta, eps)


def detached(x, gamma, beta, *, eps, axes):
    """The same formula; 1/sqrt(var + eps) is a constant of the derivative."""
    d = x - x.mean(axes, keepdim=True)
    xhat = d * torch.rsqrt(d.square().mean(axes, keepdim=True) + eps).detach()
    y = xhat if gamma is None else xhat * gamma
    return y if beta is None else y + beta


@pytest.mark.parametrize(("function", "expected"), [(layer_norm, "torch.nn.LayerNorm"), (detached, None)])
def test_a_violation_of_a_layer_of_the_framework_is_told_as_that(function, expected):
    """LN-G13 fails in both; only the first returns PyTorch's wrong number."""
    report = normspec.check(function, op="layer_norm", dtypes=["float64"], profile="quick", only="LN-G13")
    (found,) = report.failures()
    assert (found.upstream and found.upstream.binding) == expected
