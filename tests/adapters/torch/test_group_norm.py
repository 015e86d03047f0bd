"""PyTorch's GroupNorm and InstanceNorm: what their bindings pass; an experiment shows each declared convention."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from normspec.adapters.targets import resolve
from normspec.reference.group_norm import group_norm, group_norm_vjp
from normspec.reference.instance_norm import instance_norm, instance_norm_vjp
from normspec.spec.errors import TargetRaised

BINDINGS = {one.name: one for one in resolve("torch", op=("group_norm", "instance_norm")).bindings}
TARGET = resolve("torch")
RANKS = {"torch.nn.InstanceNorm1d": 3, "torch.nn.InstanceNorm3d": 5}
EXACT = {"group_norm": (group_norm, group_norm_vjp), "instance_norm": (instance_norm, instance_norm_vjp)}
INSTANCE_NORMS = [name for name, one in BINDINGS.items() if one.operator == "instance_norm"]
GROUP_NORMS = [name for name, one in BINDINGS.items() if one.operator == "group_norm"]


def problem(name: str, axis: int = 1):
    """Inputs and settings of a binding: two samples of six channels along an axis."""
    rng = np.random.Generator(np.random.Philox(11))
    rank = RANKS.get(name, 4)
    x = np.moveaxis(rng.normal(1, 2, (2, 6, 3, 2, 2)[:rank]), 1, axis)
    inputs = {"x": x, "gamma": rng.normal(1, 0.5, 6), "beta": rng.normal(0, 1, 6)}
    settings = {"eps": 0.01, "channel_axis": axis}
    return inputs, {**settings, "groups": 3} if name in GROUP_NORMS else settings


@pytest.mark.parametrize("axis", [1, 2, -1])
@pytest.mark.parametrize("name", BINDINGS)
def test_the_channel_axis_is_moved(name, axis):
    """Any channel axis works, in the forward and the backward pass."""
    inputs, settings = problem(name, axis)
    g = np.random.Generator(np.random.Philox(12)).normal(size=inputs["x"].shape)
    evaluation = TARGET.session(BINDINGS[name]).start(inputs, settings)
    plain, vjp = EXACT[BINDINGS[name].operator]
    exact = plain(*inputs.values(), **settings)
    np.testing.assert_allclose(evaluation.outputs()["y"], exact, rtol=1e-12, atol=1e-12)
    gradients = evaluation.pull(g).gradients()
    expected = vjp(*inputs.values(), g, **settings)
    for got, wanted in zip(gradients.values(), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", BINDINGS)
def test_eps_is_the_layers_own_where_none_is_given(name):
    """Without eps each layer uses 1e-5."""
    inputs, settings = problem(name)
    del settings["eps"]
    plain = EXACT[BINDINGS[name].operator][0](*inputs.values(), eps=1e-5, **settings)
    got = TARGET.session(BINDINGS[name]).start(inputs, settings, defaults=True).outputs()["y"]
    np.testing.assert_allclose(got, plain, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", INSTANCE_NORMS)
def test_one_position_is_an_error(name):
    """A single position raises ValueError, for several samples too."""
    assert BINDINGS[name].conventions["single_value"] == "error"
    inputs = {"x": np.ones((2, 3, *[1] * (RANKS.get(name, 4) - 2))), "gamma": np.ones(3), "beta": np.zeros(3)}
    with pytest.raises(TargetRaised, match="ValueError: Expected more than 1 spatial element"):
        TARGET.session(BINDINGS[name]).start(inputs, {"eps": 0.01, "channel_axis": 1})


def test_group_norm_squares_what_has_its_channels_last():
    """For float32 data of mean 4096 and deviation 1, contiguous y keeps two digits, and with channels last none."""
    assert all(BINDINGS[name].conventions["variance_algorithm"] == "one-pass" for name in GROUP_NORMS)
    rng = np.random.Generator(np.random.Philox(13))
    x = (rng.normal(size=(2, 4, 3, 3)) + 4096).astype(np.float32)
    exact = group_norm(x, None, None, eps=1e-5, groups=2, channel_axis=1)
    laid = {
        order: torch.from_numpy(x).contiguous(memory_format=order)
        for order in (torch.contiguous_format, torch.channels_last)
    }
    errors = [np.abs(functional.group_norm(one, 2, eps=1e-5).numpy() - exact).max() for one in laid.values()]
    assert errors[0] < 0.01
    assert errors[1] > 0.5


def test_group_norm_has_no_gradient_of_a_bias_alone():
    """The gradient of a bias without a weight raises; the gradient of x in the same call does not."""
    x, bias = torch.ones(2, 4, 3, requires_grad=True), torch.ones(4, requires_grad=True)
    y = functional.group_norm(x, 2, None, bias)
    assert torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)[0] is not None
    with pytest.raises(RuntimeError, match="does not have a device"):
        torch.autograd.grad(y, bias, torch.ones_like(y))


def test_group_norm_refuses_one_value_a_group_of_one_sample():
    """One sample of one value per group raises, two samples do not."""
    with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
        functional.group_norm(torch.ones(1, 2), 2)
    assert not functional.group_norm(torch.ones(2, 2), 2).any()


def test_instance_norm_refuses_an_empty_batch_with_parameters():
    """Without parameters y is empty, with a weight the call raises."""
    empty = torch.ones(0, 2, 3)
    assert functional.instance_norm(empty).shape == (0, 2, 3)
    with pytest.raises(IndexError):
        functional.instance_norm(empty, weight=torch.ones(2))
