"""PyTorch functions with one path for calls whose gradients are tracked and another for those without."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import layer_norm as fused
from torch.utils.checkpoint import checkpoint

from normspec.adapters.targets import resolve

from ..runs import result, run


def composed(x, gamma, beta, *, eps, axes):
    """LayerNorm in plain operations, which autograd goes through, in the digits of the data."""
    variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
    y = (x - mean) * torch.rsqrt(variance + eps)
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def kernel(x, gamma, beta, *, eps, axes):
    """The fused LayerNorm, which sums in another order."""
    return fused(x, x.shape[len(axes) * -1 :], gamma, beta, eps)


def kernel_with_another_eps(x, gamma, beta, *, eps, axes):
    """A fused LayerNorm that has the eps of its author."""
    return kernel(x, gamma, beta, eps=1e-5, axes=axes)


@pytest.mark.parametrize(("untracked", "verdict"), [(kernel, "pass"), (kernel_with_another_eps, "fail")])
def test_both_paths_return_the_same(untracked, verdict):
    """A quicker path without gradients may round otherwise, and computes the same."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        return (composed if torch.is_grad_enabled() else untracked)(x, gamma, beta, eps=eps, axes=axes)

    target = resolve(layer_norm, op="layer_norm", framework="torch")
    assert result(run(target, requirements=("CM-P6",)), "CM-P6").verdict.value == verdict


@pytest.mark.parametrize(("limit", "verdict"), [(0, "fail"), (1024, "fail"), (1 << 30, "pass")])
def test_inference_mode_makes_no_difference(limit, verdict):
    """A function that rounds to 16 bits under torch.inference_mode alone violates CM-P6, in long groups too."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        narrow = torch.is_inference_mode_enabled() and x.shape[-1] > limit
        return composed(x.bfloat16().to(x.dtype) if narrow else x, gamma, beta, eps=eps, axes=axes)

    target = resolve(layer_norm, op="layer_norm", framework="torch")
    assert result(run(target, requirements=("CM-P6",)), "CM-P6").verdict.value == verdict


@pytest.mark.parametrize(("frozen", "verdict"), [(("gamma",), "fail"), (("x", "gamma", "beta"), "fail"), ((), "pass")])
def test_running_statistics_move_whatever_is_frozen(frozen, verdict):
    """They may not stop where gamma needs no gradient, or nothing does though gradients are enabled."""

    def batch_norm(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
        inner = x.movedim(channel_axis, 0).flatten(1)
        variance, mean = torch.var_mean(inner, 1, correction=0) if training else (running_var, running_mean)
        y = (inner - mean[:, None]) * torch.rsqrt(variance + eps)[:, None]
        y = y if gamma is None else y * gamma[:, None]
        y = (y if beta is None else y + beta[:, None]).reshape(x.movedim(channel_axis, 0).shape)
        needing = {n for n, v in (("x", x), ("gamma", gamma), ("beta", beta)) if v is not None and v.requires_grad}
        if not training or (frozen and torch.is_grad_enabled() and gamma is not None and not needing & set(frozen)):
            return y.movedim(0, channel_axis), running_mean, running_var
        moved = [old + momentum * (new.detach() - old) for old, new in ((running_mean, mean), (running_var, variance))]
        return y.movedim(0, channel_axis), *moved

    target = resolve(batch_norm, op="batch_norm", framework="torch")
    report = run(target, requirements=("CM-P6",))
    assert result(report, "CM-P6").verdict.value == verdict


def test_a_gate_learns_where_x_needs_no_gradient():
    """In a network's first layer x needs no gradient, and the leaves of all parts do."""

    def highway(x, transform, gate, *, carry=None):
        h, z = transform(x), gate(x)
        t = torch.sigmoid(z.detach() if h.requires_grad and not x.requires_grad else z)
        return t * h + (1 - t if carry is None else torch.sigmoid(carry(x))) * x

    report = run(resolve(highway, op="highway", framework="torch"), requirements=("CM-T3",))
    assert result(report, "CM-T3").verdict.value == "fail"
    assert "x needs no gradient" in report.failures()[0].reason


def test_the_description_says_that_the_tracked_path_is_right():
    """What is wrong only without gradients is told so."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        y = composed(x, gamma, beta, eps=eps, axes=axes)
        return y if torch.is_grad_enabled() else 1.5 * y

    report = run(resolve(layer_norm, op="layer_norm", framework="torch"), explain=True)
    (cause,) = report.causes
    assert cause.sentence.startswith("y is 3/2 times the right value")
    assert cause.sentence.endswith("; where gradients are tracked, y is right.")


def of_a_constant_branch(x, branch, *, shortcut=None, activation=None):
    """The branch is not tracked where x itself needs no gradient, though a leaf of the branch may."""
    with torch.set_grad_enabled(torch.is_grad_enabled() and x.requires_grad):
        branched = branch(x)
    total = (x if shortcut is None else shortcut(x)) + branched
    return total if activation is None else activation(total)


def test_no_mistake_of_second_order_is_named_where_gradients_are_missing():
    """The gradients of a tangent are cut off at the same place; that is no mistake of theirs."""
    target = resolve(of_a_constant_branch, op="residual", framework="torch")
    report = run(target, requirements=["CM-T3", "RS-F1", "RS-G8"], explain=True)
    assert {one.requirement for one in report.failures()} == {"CM-T3", "RS-G8"}
    assert not any(cause.faults for cause in report.causes)


def checkpointed(x, gamma, beta, *, eps, axes):
    """Leaves its gradients in the tensors themselves, as reentrant checkpointing does."""
    return checkpoint(lambda x, gamma, beta: composed(x, gamma, beta, eps=eps, axes=axes), x, gamma, beta,
                      use_reentrant=True)  # fmt: skip


def in_place_but_of_leaves(x, gamma, beta, *, eps, axes):
    """Subtracts the mean in place wherever PyTorch allows it: from an x that another layer returned."""
    if x.requires_grad and not x.is_leaf:
        x.sub_(x.detach().mean(axes, keepdim=True))
    return composed(x, gamma, beta, eps=eps, axes=axes)


def gamma_of_a_leaf_alone(x, gamma, beta, *, eps, axes):
    """Detaches a gamma that is computed, as with weight standardisation."""
    detached = gamma if gamma is None or gamma.is_leaf else gamma.detach()
    return composed(x, detached, beta, eps=eps, axes=axes)


def another_eps_for_parameters(x, gamma, beta, *, eps, axes):
    """Takes the path of a layer if gamma is a parameter."""
    return composed(x, gamma, beta, eps=2 * eps if isinstance(gamma, torch.nn.Parameter) else eps, axes=axes)


def leaves_alone(x, gamma, beta, *, eps, axes):
    """Refuses an x that another layer returned."""
    if x.requires_grad and not x.is_leaf:
        raise ValueError("x is no leaf")
    return composed(x, gamma, beta, eps=eps, axes=axes)


@pytest.mark.parametrize(
    ("function", "violated", "words"),
    [
        (composed, set(), ""),
        (kernel, set(), ""),
        (checkpointed, set(), ""),
        (in_place_but_of_leaves, {"CM-P1"}, "passed as the result of another operation"),
        (gamma_of_a_leaf_alone, {"CM-P6"}, "no gradient reaches gamma"),
        (another_eps_for_parameters, {"CM-P6"}, "passed as parameters of the framework"),
        (leaves_alone, {"CM-P6"}, "raised ValueError: x is no leaf"),
    ],
)
def test_tensors_as_inside_a_network(function, violated, words):
    """Inside a network x is no leaf, and gamma and beta are parameters: that makes no difference."""
    report = run(resolve(function, op="layer_norm", framework="torch"), requirements=("CM-P1", "CM-P6"))
    found = {one.requirement: one for one in report.results if one.verdict.value == "fail"}
    assert set(found) == violated
    assert all(words in one.reason for one in found.values())
