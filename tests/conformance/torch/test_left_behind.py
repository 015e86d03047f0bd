"""What a PyTorch function leaves behind: in its arguments, beside them, and in the framework's own state."""

from __future__ import annotations

import pytest
import torch

from normspec.adapters.targets import resolve

from ..runs import run, verdicts
from .test_tracking import composed


def _verdict(call, requirement: str) -> str:
    return verdicts(run(resolve(call, op="layer_norm", framework="torch"), requirements=(requirement,)))[requirement]


@pytest.mark.parametrize(("in_place", "verdict"), [(True, "fail"), (False, "pass")])
def test_inputs_stay_in_inference_mode(in_place, verdict):
    """An x that is centred in place under torch.inference_mode alone violates CM-P1."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        if in_place and torch.is_inference_mode_enabled() and x.numel():
            x.sub_(x.mean(axes, keepdim=True))
        return composed(x, gamma, beta, eps=eps, axes=axes)

    assert _verdict(layer_norm, "CM-P1") == verdict


@pytest.mark.parametrize(("written", "verdict"), [(True, "fail"), (False, "pass")])
def test_no_gradient_is_written_beside_the_one_that_is_returned(written, verdict):
    """A backward pass that adds dgamma to gamma.grad, as autograd does as well, violates CM-T3."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        y = composed(x, gamma, beta, eps=eps, axes=axes)
        if written and gamma is not None and y.requires_grad:
            y.register_hook(lambda g: setattr(gamma, "grad", torch.ones_like(gamma)))
        return y

    assert _verdict(layer_norm, "CM-T3") == verdict


@pytest.mark.parametrize(("left_out", "verdict"), [(True, "fail"), (False, "pass")])
def test_parameters_of_a_new_layer_get_gradients(left_out, verdict):
    """An affine map that is left out where gamma is 1 and beta is 0 violates CM-T3."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        if left_out and gamma is not None and beta is not None and bool((gamma == 1).all()) and not bool(beta.any()):
            gamma = beta = None
        return composed(x, gamma, beta, eps=eps, axes=axes)

    assert _verdict(layer_norm, "CM-T3") == verdict


def test_a_file_may_turn_gradients_off(tmp_path):
    """What was turned off when the target was imported is on where gradients are taken, of results inside too."""
    file = tmp_path / "mine.py"
    file.write_text(
        "import torch\n"
        "torch.set_grad_enabled(False)\n"
        "def layer_norm(x, gamma, beta, *, eps, axes):\n"
        "    return torch.nn.functional.layer_norm(x, x.shape[-len(axes):], gamma, beta, eps)\n"
    )
    before = torch.is_grad_enabled()
    try:
        found = verdicts(run(resolve(f"{file}:layer_norm"), requirements=("CM-P1", "LN-G1")))
    finally:
        torch.set_grad_enabled(before)
    assert found == {"CM-P1": "pass", "LN-G1": "pass"}


@pytest.mark.parametrize("present", [(), ("gamma",), ("gamma", "beta")])
@pytest.mark.parametrize("spoilt", [False, True])
def test_gradients_of_an_empty_x_may_be_absent(present, spoilt):
    """CM-S2: an empty y depends on nothing, so a path of its own need not use gamma and beta; NaN is no zero."""

    def used(parameter):
        parameter = parameter * 1
        if spoilt and parameter.requires_grad:
            parameter.register_hook(lambda g: g + torch.nan)
        return parameter

    def layer_norm(x, gamma, beta, *, eps, axes):
        if x.numel():
            return composed(x, gamma, beta, eps=eps, axes=axes)
        y = x * (used(gamma) if "gamma" in present and gamma is not None else 1)
        return y + (used(beta) if "beta" in present and beta is not None else 0)

    assert _verdict(layer_norm, "CM-S2") == ("fail" if spoilt and present else "pass")


class _Scaled(torch.autograd.Function):
    """Twice x; the derivative of its derivative may be taken in place."""

    @staticmethod
    def forward(ctx, x, in_place):
        ctx.in_place = in_place
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return _ScaledGradient.apply(g, ctx.in_place), None


class _ScaledGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, g, in_place):
        ctx.in_place = in_place
        return 2 * g

    @staticmethod
    def backward(ctx, second):
        return (second.mul_(2) if ctx.in_place else 2 * second), None


@pytest.mark.parametrize(("in_place", "verdict"), [(True, "fail"), (False, "pass")])
def test_cotangents_of_gradients_stay(in_place, verdict):
    """A second derivative that is taken in its own cotangent violates LN-G9."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        return composed(_Scaled.apply(x, in_place) / 2, gamma, beta, eps=eps, axes=axes)

    assert _verdict(layer_norm, "LN-G9") == verdict
