"""PyTorch functions whose graph is pulled back twice."""

from __future__ import annotations

import pytest
import torch

from normspec.adapters.targets import resolve

from ..runs import result, run


def _layer_norm(backward):
    """A layer_norm over the last axis whose gradients ``backward(ctx, g, xhat, rstd, gamma)`` returns."""

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, gamma, beta, eps):
            mean = x.mean(-1, keepdim=True)
            rstd = torch.rsqrt((x - mean).square().mean(-1, keepdim=True) + eps)
            xhat = (x - mean) * rstd
            ctx.xhat, ctx.rstd, ctx.gamma, ctx.pulls = xhat, rstd, gamma, 0
            return xhat * gamma + beta

        @staticmethod
        def backward(ctx, g):
            return (*backward(ctx, g, ctx.xhat, ctx.rstd, ctx.gamma), None)

    def layer_norm(x, gamma, beta, *, eps, axes):
        if axes != (-1,):
            raise NotImplementedError("the last axis alone")
        shape = x.shape[-1:]
        gamma = x.new_ones(shape) if gamma is None else gamma
        return Function.apply(x, gamma, x.new_zeros(shape) if beta is None else beta, eps)

    return layer_norm


def _gradients(g, xhat, rstd, gamma):
    h, rows = g * gamma, tuple(range(g.ndim - 1))
    dx = rstd * (h - h.mean(-1, keepdim=True) - xhat * (h * xhat).mean(-1, keepdim=True))
    return dx, (g * xhat).sum(rows), g.sum(rows)


def reads(ctx, g, xhat, rstd, gamma):
    """The gradients, and nothing else."""
    return _gradients(g, xhat, rstd, gamma)


def overwrites(ctx, g, xhat, rstd, gamma):
    """The gradients, with dgamma's terms formed in the memory of xhat."""
    found = _gradients(g, xhat, rstd, gamma)
    xhat.mul_(g)
    return found


def takes_once(ctx, g, xhat, rstd, gamma):
    """The gradients, once."""
    ctx.pulls += 1
    if ctx.pulls > 1:
        raise RuntimeError("the buffers were given away")
    return _gradients(g, xhat, rstd, gamma)


@pytest.mark.parametrize(("backward", "verdict"), [(reads, "pass"), (overwrites, "fail"), (takes_once, "pass")])
def test_a_second_gradient_of_a_call_is_its_first(backward, verdict):
    """A backward pass that writes to saved tensors violates CM-P5; one that can only run once does not."""
    target = resolve(_layer_norm(backward), op="layer_norm", framework="torch")
    assert result(run(target, requirements=("CM-P5",)), "CM-P5").verdict.value == verdict
