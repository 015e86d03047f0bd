"""Mistakes in gradients that autograd differentiates on are named like those that are written out in NumPy."""

from __future__ import annotations

import pytest
import torch

import normspec


def detached(x, gamma, beta, *, eps, axes):
    """Statistics for which no gradient is recorded: dx has its first term alone."""
    with torch.no_grad():
        variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
    y = (x - mean) * torch.rsqrt(variance + eps)
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


class _WithoutMean(torch.autograd.Function):
    """A backward pass that leaves a term out, in operations that can be differentiated again."""

    @staticmethod
    def forward(ctx, x, gamma, beta, eps, axes):
        variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
        r = torch.rsqrt(variance + eps)
        xhat = (x - mean) * r
        ctx.save_for_backward(xhat, r, gamma)
        ctx.axes, ctx.shifted = axes, beta is not None
        y = xhat if gamma is None else xhat * gamma
        return y if beta is None else y + beta

    @staticmethod
    def backward(ctx, g):
        xhat, r, gamma = ctx.saved_tensors
        lead = list(range(g.dim() - len(ctx.axes)))

        def summed(value):
            return value.sum(lead) if lead else value

        weighted = g if gamma is None else g * gamma
        dx = r * (weighted - xhat * (weighted * xhat).mean(ctx.axes, keepdim=True))
        dgamma = None if gamma is None else summed(g * xhat)
        return dx, dgamma, summed(g) if ctx.shifted else None, None, None


def without_mean(x, gamma, beta, *, eps, axes):
    """The autograd function as a plain one."""
    return _WithoutMean.apply(x, gamma, beta, eps, axes)


@pytest.mark.parametrize(
    ("mistaken", "fault", "follows"),
    [
        (detached, "ln-statistics-detached", {"LN-G9", "LN-G12", "LN-G13"}),
        pytest.param(without_mean, "ln-dx-no-mean", {"LN-G9"}, marks=pytest.mark.nightly),
    ],
)
def test_a_wrong_gradient_has_its_name_whatever_its_derivatives_are(mistaken, fault, follows):
    """A framework derives the second order of the wrong dx; who writes it out may have it right."""
    report = normspec.check(mistaken, op="layer_norm", dtypes=["float32"], profile="quick")
    (cause,) = report.causes
    assert cause.faults == (fault,)
    assert {result.requirement for result in report.failures()} == {*cause.explains} >= follows
