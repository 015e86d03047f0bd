"""Second-order gradients of PyTorch functions, as penalties on gradients take them."""

from __future__ import annotations

import pytest
import torch

from normspec.adapters.targets import resolve

from ..runs import result, run


class Scaled(torch.autograd.Function):
    """xhat times gamma; the second order is lost in one way."""

    @staticmethod
    def forward(ctx, xhat, gamma, lost):
        ctx.save_for_backward(xhat, gamma)
        ctx.lost = lost
        return xhat * gamma

    @staticmethod
    def backward(ctx, g):
        xhat, gamma = ctx.saved_tensors
        detached = ctx.lost == "with gamma frozen" and not ctx.needs_input_grad[1]
        h = Handed.apply(g, lost_if_transposed) if ctx.lost == "with a transposed cotangent" else g
        dgamma = (g * xhat).sum_to_size(gamma.shape) if ctx.needs_input_grad[1] else None
        return (h.detach() if detached else h) * gamma, dgamma, None


class Handed(torch.autograd.Function):
    """Its argument; ``change`` of the cotangent takes the place of the gradient."""

    @staticmethod
    def forward(ctx, value, change):
        ctx.change = change
        return value.view_as(value)

    @staticmethod
    def backward(ctx, a):
        return ctx.change(a), None


def lost_if_transposed(a):
    """Zeros where the cotangent does not lie row after row."""
    return a if a.is_contiguous() else torch.zeros_like(a)


@pytest.mark.parametrize(
    ("lost", "verdict", "words"),
    [
        ("", "pass", ""),
        ("with gamma frozen", "fail", "x alone needs a gradient"),
        ("with a transposed cotangent", "fail", "transposed in memory"),
    ],
)
def test_a_penalty_on_dx(lost, verdict, words):
    """It may be taken of a network whose gain is frozen, and its cotangent may be transposed in memory."""

    def rms_norm(x, gamma, *, eps, axes):
        xhat = x * torch.rsqrt((x * x).mean(axes, keepdim=True) + eps)
        return xhat if gamma is None else Scaled.apply(xhat, gamma, lost)

    found = result(run(resolve(rms_norm, op="rms_norm", framework="torch"), requirements=("RM-G9",)), "RM-G9")
    assert found.verdict.value == verdict
    assert words in found.reason


def test_an_operator_of_its_own_has_no_forward_mode():
    """PyTorch drops the tangent at a torch.library.custom_op in silence: each derivative of tangents is unsupported."""

    @torch.library.custom_op("normspec_tests::rms", mutates_args=())
    def rms(x: torch.Tensor, eps: float) -> torch.Tensor:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        r = torch.rsqrt((x * x).mean(-1, keepdim=True) + ctx.eps)
        return r * (g - x * r * (g * x * r).mean(-1, keepdim=True)), None

    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.eps = inputs[1]

    rms.register_autograd(backward, setup_context=setup)

    def rms_norm(x, gamma, *, eps, axes):
        y = rms(x.flatten(-len(axes)), eps).reshape(x.shape)
        return y if gamma is None else y * gamma

    report = run(resolve(rms_norm, op="rms_norm", framework="torch"))
    assert report.failures() == ()
    verdicts = {one.requirement: one.verdict.value for one in report.results}
    assert {verdicts[one] for one in ("RM-G10", "RM-G13", "RM-G14")} == {"unsupported"}


class Doubled(torch.autograd.Function):
    """Its argument; the second derivative of what is computed from it is twice as large."""

    @staticmethod
    def forward(ctx, value):
        return value.view_as(value)

    @staticmethod
    def backward(ctx, g):
        return Handed.apply(g, lambda a: 2 * a)

    @staticmethod
    def jvp(ctx, t):
        return t.view_as(t)


def gates_exchanged(x, transform, gate, carry=None):
    """A highway whose gates are in each other's place."""
    t = torch.sigmoid(gate(x))
    c = 1 - t if carry is None else torch.sigmoid(carry(x))
    return transform(x) * c + x * t


def gates_exchanged_and_doubled(x, transform, gate, carry=None):
    """The same, with a second derivative that is wrong by itself."""
    return gates_exchanged(Doubled.apply(x), transform, gate, carry)


@pytest.mark.parametrize(("highway", "by_itself"), [(gates_exchanged, set()), (gates_exchanged_and_doubled, {"HW-G7"})])
def test_wrong_derivatives_of_wrong_gradients_follow(highway, by_itself):
    """Higher derivatives that belong to the wrong formula follow from it; one with a mistake of its own does not."""
    report = run(resolve(highway, op="highway", framework="torch"), explain=True)
    of_a_formula = {cause.requirement for cause in report.causes}
    assert of_a_formula == {"HW-F1"}
    failed = {one.requirement: one for one in report.results if one.verdict.value == "fail"}
    higher = {"HW-G7", "HW-G8", "HW-G9", "HW-G10", "HW-G11"} & failed.keys()
    assert {one for one in higher if "HW-F1" not in failed[one].follows_from} == by_itself
