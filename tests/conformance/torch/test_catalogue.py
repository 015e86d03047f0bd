"""Real bugs about PyTorch's own ways: requests to autograd, work in place, detached tensors."""

from __future__ import annotations

import pytest
import torch

from normspec.adapters.target import Target
from normspec.adapters.targets import resolve

from ..runs import run


class _Frozen(torch.autograd.Function):
    """A layer_norm that returns the dgamma of a cotangent without reading it, unless x needs a gradient."""

    @staticmethod
    def forward(ctx, x, gamma, beta, eps):
        d = x - x.mean(-1, keepdim=True)
        r = torch.rsqrt((d * d).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(d * r, r, gamma)
        return d * r * gamma + beta

    @staticmethod
    def backward(ctx, *grads):
        g, (xhat, r, gamma) = grads[0], ctx.saved_tensors
        h = g * gamma
        dx = r * (h - h.mean(-1, keepdim=True) - xhat * (h * xhat).mean(-1, keepdim=True))
        over = tuple(range(g.ndim - 1))
        dgamma = (g * xhat).sum(over) if ctx.needs_input_grad[0] else xhat.sum(over)
        return dx, dgamma, g.sum(over), None


def frozen_input(x, gamma, beta, *, eps, axes):
    """https://github.com/pytorch/pytorch/issues/183825."""
    if len(axes) > 1 or x.ndim < 2:
        raise NotImplementedError("one axis of several")
    gamma = torch.ones_like(x[0]) if gamma is None else gamma
    beta = torch.zeros_like(x[0]) if beta is None else beta
    return _Frozen.apply(x, gamma, beta, eps)


def rectified_in_place(x, branch, *, shortcut=None, activation=None):
    """nn.ReLU(inplace=True) in front of the branch: https://github.com/rosinality/vq-vae-2-pytorch/issues/60."""
    with torch.no_grad():
        torch.relu_(x)
    y = (x if shortcut is None else shortcut(x)) + branch(x)
    return y if activation is None else activation(y)


def statistics_detached(x, gamma, beta, *, eps, axes):
    """https://github.com/facebookresearch/CrypTen/pull/143."""
    centre = x.mean(axes, keepdim=True).detach()
    y = (x - centre) * torch.rsqrt((x - centre).square().mean(axes, keepdim=True).detach() + eps)
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def target(function, operator: str) -> Target:
    """The function as a target."""
    return resolve(function, op=operator, framework="torch")


@pytest.mark.parametrize(
    ("function", "operator", "requirements", "violated", "told"),
    [
        (frozen_input, "layer_norm", ("LN-F1", "LN-G2", "LN-G11"), "LN-G11", ""),
        (rectified_in_place, "residual", ("RS-F1", "CM-P1"), "CM-P1", "rs-x-rectified-in-place"),
        (statistics_detached, "layer_norm", ("LN-F1", "LN-G1"), "LN-G1", "ln-statistics-detached"),
    ],
)
def test_a_bug_of_pytorch_is_seen(function, operator, requirements, violated, told):
    """Each violates the requirement about it, and gets no name but its own."""
    report = run(target(function, operator), requirements=requirements, explain=True)
    assert violated in {one.requirement for one in report.failures()}
    assert {fault for cause in report.causes for fault in cause.faults} <= {told}
