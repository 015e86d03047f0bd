"""A wrong formula whose gradients autograd derives is named like one whose gradients are written out in NumPy."""

from __future__ import annotations

import pytest
import torch

import normspec

from ..runs import others_at_night


def exchanged(x, transform, gate, *, carry=None):
    """The gates weigh what the other should."""
    t = torch.sigmoid(gate(x))
    c = 1 - t if carry is None else torch.sigmoid(carry(x))
    return transform(x) * c + x * t


def without_x(x, branches, logits, *, fuse=None):
    """Nothing but the branches: where they are constants, no gradient reaches x."""
    ys = [branch(x) for branch in branches]
    if fuse is not None:
        return x + fuse(ys)
    return sum(weight * y for weight, y in zip(torch.softmax(logits, 0), ys, strict=True))


def layer_norm(x, gamma, beta, eps):
    """LayerNorm over the last axis."""
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    y = (x - mean) / torch.sqrt(variance + eps)
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def pre_norm_instead(x, sublayer, gamma, beta, *, eps):
    """x plus F(LN(x)): where F(x) = -x, the terms cancel, and their roundings stay."""
    return x + sublayer(layer_norm(x, gamma, beta, eps))


def centred(x, gamma, *, eps, axes):
    """LayerNorm without beta: where the mean is large, the roundings of x less its mean are too."""
    x = x - x.mean(axes, keepdim=True)
    y = x * torch.rsqrt((x * x).mean(axes, keepdim=True) + eps)
    return y if gamma is None else y * gamma


@pytest.mark.parametrize(
    ("operator", "mistaken", "fault"),
    [
        ("mhc", without_x, "mh-x-missing"),
        ("rms_norm", centred, "rm-layer-norm-instead"),
        *others_at_night(
            [
                ("highway", exchanged, "hw-gates-exchanged"),
                ("post_norm", pre_norm_instead, "po-pre-norm-instead"),
            ],
            (),
        ),
    ],
)
def test_a_wrong_formula_has_its_name(operator, mistaken, fault):
    """Its gradients are its own derivatives, and not those that the library has written out."""
    report = normspec.check(mistaken, op=operator, dtypes=["float32"], profile="quick")
    (cause,) = report.causes
    assert cause.faults == (fault,)


class _SavedStatistics(torch.autograd.Function):
    """A backward pass in operations that can be differentiated again, with saved values that cannot."""

    @staticmethod
    def forward(ctx, x, gamma, beta, eps, axes, keeps_xhat):
        variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
        r = torch.rsqrt(variance + eps)
        xhat = (x - mean) * r
        ctx.save_for_backward(xhat if keeps_xhat else x, mean, r, gamma)
        ctx.axes, ctx.shifted, ctx.keeps_xhat = axes, beta is not None, keeps_xhat
        y = xhat if gamma is None else xhat * gamma
        return y if beta is None else y + beta

    @staticmethod
    def backward(ctx, g):
        kept, mean, r, gamma = ctx.saved_tensors
        xhat = kept if ctx.keeps_xhat else (kept - mean) * r
        lead = list(range(g.dim() - len(ctx.axes)))

        def summed(value):
            return value.sum(lead) if lead else value

        h = g if gamma is None else g * gamma
        projected = h - h.mean(ctx.axes, keepdim=True) - xhat * (h * xhat).mean(ctx.axes, keepdim=True)
        dgamma = None if gamma is None else summed(g * xhat)
        return r * projected, dgamma, summed(g) if ctx.shifted else None, None, None, None


@pytest.mark.parametrize(
    ("keeps_xhat", "fault"),
    [(False, "ln-double-backward-saved-statistics"), (True, "ln-double-backward-saved-xhat")],
)
def test_a_double_backward_that_takes_saved_values_for_constants_has_its_name(keeps_xhat, fault):
    """PyTorch makes calls that a derivative written out in NumPy has not; these are left out of the comparison."""

    def mistaken(x, gamma, beta, *, eps, axes):
        return _SavedStatistics.apply(x, gamma, beta, eps, axes, keeps_xhat)

    report = normspec.check(mistaken, op="layer_norm", dtypes=["float32"], profile="quick")
    (cause,) = report.causes
    assert (cause.faults, cause.explains) == ((fault,), ("LN-G9",))
