"""PyTorch's instance_norm misreads the cotangent of a single sample whose channels lie last."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from normspec.adapters.known import Failure
from normspec.adapters.torch.instance_norm_cpu import ON_CPU

#: Two channels of three values: (0, 4, 16) and (1, 9, 25).
X = torch.tensor([[0.0, 4.0, 16.0], [1.0, 9.0, 25.0]], dtype=torch.float64)


def _dx(samples: int, one: int, *, channels_last: bool) -> np.ndarray:
    """The gradient of the first sample for a cotangent that is 1 at one of its values, and 0 elsewhere."""
    x = X.reshape(1, 2, 3, 1).repeat(samples, 1, 1, 1).requires_grad_()
    g = torch.zeros_like(x)
    g[0].view(-1)[one] = 1
    if channels_last:
        g = g.contiguous(memory_format=torch.channels_last)
    y = torch.nn.functional.instance_norm(x, eps=1e-3)
    return torch.autograd.grad(y, x, g)[0][0].reshape(-1).numpy()


@pytest.mark.parametrize(("one", "read"), [(0, 0), (1, 2), (2, 4), (3, 1), (4, 3), (5, 5)])
def test_value_i_in_memory_is_read_as_value_i_of_a_contiguous_cotangent(one, read):
    """A change upstream is noticed here: then the known violation goes."""
    assert np.allclose(_dx(1, one, channels_last=True), _dx(1, read, channels_last=False))


@pytest.mark.parametrize("one", range(6))
def test_of_two_samples_nothing_is_misread(one):
    """The layout of the cotangent makes no difference there."""
    assert np.allclose(_dx(2, one, channels_last=True), _dx(2, one, channels_last=False))


def test_the_prediction_is_what_pytorch_returns_and_not_what_is_right():
    """Each of the three gradients is covered as it is, and the right one is not."""
    generator = torch.Generator().manual_seed(0)
    x, g = (torch.randn(1, 4, 5, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    gamma, beta = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    leaves = [one.clone().requires_grad_() for one in (x, gamma, beta)]
    y = torch.nn.functional.instance_norm(leaves[0].movedim(-1, 1), weight=leaves[1], bias=leaves[2], eps=1e-3)
    got = torch.autograd.grad(y.movedim(1, -1), leaves, g)
    right = _right(x, gamma, beta, g)
    inputs = {"x": x.numpy(), "gamma": gamma.numpy(), "beta": beta.numpy()}
    settings = {"eps": 1e-3, "channel_axis": -1}
    for name, returned, exact in zip(("dx", "dgamma", "dbeta"), got, right, strict=True):
        known = next(one for one in ON_CPU if one.outputs == (name,))
        assert known.shows_in(inputs, settings)
        for values, covered in ((returned, True), (exact, False)):
            failure = Failure(name, "", inputs, settings, g=g.numpy(), got=values.numpy(), expected=exact.numpy())
            assert np.all(known.covers(failure)) == covered, name


def test_of_channels_first_a_cotangent_in_another_layout_is_covered():
    """An x of one sample and contiguous, and the same cotangent with its channels last in memory."""
    generator = torch.Generator().manual_seed(0)
    x, g = (torch.randn(1, 3, 4, 5, generator=generator, dtype=torch.float64) for _ in range(2))
    gamma, beta = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64), torch.zeros(3, dtype=torch.float64)

    def gradients(g: torch.Tensor) -> tuple[torch.Tensor, ...]:
        leaves = [one.clone().requires_grad_() for one in (x, gamma, beta)]
        y = torch.nn.functional.instance_norm(leaves[0], weight=leaves[1], bias=leaves[2], eps=1e-3)
        return torch.autograd.grad(y, leaves, g)

    inputs = {"x": x.numpy(), "gamma": gamma.numpy(), "beta": beta.numpy()}
    settings, note = {"eps": 1e-3, "channel_axis": 1}, "cotangent channels_last"
    wrong, right = gradients(g.contiguous(memory_format=torch.channels_last)), gradients(g)
    for name, returned, exact in zip(("dx", "dgamma", "dbeta"), wrong, right, strict=True):
        known = next(one for one in ON_CPU if one.requirement == "CM-V2" and one.outputs == (name,))
        assert known.shows_in(inputs, settings) and known.within(x.shape, settings, name, note)
        assert not known.within(x.shape, settings, name, "cotangent strided")
        for values, covered in ((returned, True), (exact, False)):
            failure = Failure(name, note, inputs, settings, g=g.numpy(), got=values.numpy(), expected=exact.numpy())
            assert np.all(known.covers(failure)) == covered, name
    assert not known.shows_in({**inputs, "x": np.concatenate([inputs["x"]] * 2)}, settings)


def _right(x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The gradients by plain arithmetic."""
    leaves = [one.clone().requires_grad_() for one in (x, gamma, beta)]
    variance, mean = torch.var_mean(leaves[0], (1, 2), correction=0, keepdim=True)
    y = (leaves[0] - mean) / torch.sqrt(variance + 1e-3) * leaves[1] + leaves[2]
    return torch.autograd.grad(y, leaves, g)
