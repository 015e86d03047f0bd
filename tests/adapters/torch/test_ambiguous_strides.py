"""PyTorch's batch_norm misreads a contiguous cotangent where an axis of one element makes x's strides ambiguous."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
import torch

from normspec.adapters.known import Failure
from normspec.adapters.layouts import place
from normspec.adapters.torch.ambiguous_strides import AMBIGUOUS_ON_CPU, _is_ambiguous

NAMES = ("dx", "dgamma", "dbeta")


def gradients(x: torch.Tensor, g: torch.Tensor, *, training: bool) -> tuple[torch.Tensor, ...]:
    """Those of x, weight and bias."""
    channels = x.shape[1]
    x = x.detach().requires_grad_()
    weight = torch.arange(1.0, channels + 1, dtype=x.dtype).requires_grad_()
    bias = torch.zeros(channels, dtype=x.dtype, requires_grad=True)
    mean, variance = torch.full((channels,), 0.25, dtype=x.dtype), torch.full((channels,), 2.0, dtype=x.dtype)
    y = torch.nn.functional.batch_norm(x, mean, variance, weight, bias, training, 0.25, 1e-3)
    return torch.autograd.grad(y, (x, weight, bias), g)


@pytest.mark.parametrize("training", [True, False])
def test_dx_is_wrong_where_the_strides_are_ambiguous_and_nowhere_else(training: bool) -> None:
    """In each order of memory, of each number of samples, rows and columns; a change upstream is noticed here."""
    generator = torch.Generator().manual_seed(0)
    wrong = 0
    for shape in product((1, 2), (2, 3), (1, 2, 4), (1, 3)):
        x, g = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2))
        if training and x.numel() == shape[1]:
            continue
        for order in permutations(range(4)):
            back = [order.index(axis) for axis in range(4)]
            laid_out = x.permute(order).contiguous().permute(back)
            found, right = (gradients(one, g, training=training)[0] for one in (laid_out, x))
            ambiguous = _is_ambiguous(laid_out.numpy())
            assert torch.allclose(found, right) is not ambiguous, (shape, order)
            wrong += ambiguous
    assert wrong > 50


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(2, 3, 4, 1), (3, 2, 5, 1), (2, 3, 4, 1, 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_prediction_is_what_pytorch_returns_and_not_what_is_right(shape, training, dtype) -> None:
    """Each of the three gradients is covered as it is, and the right one is not."""
    generator = torch.Generator().manual_seed(1)
    x, g = (torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for _ in range(2))
    layout = "middle_transposed"
    laid_out = torch.from_numpy(place(x.numpy(), layout).view())
    inputs = {
        "x": x.numpy(), "gamma": np.arange(1.0, shape[1] + 1), "beta": np.zeros(shape[1]),
        "running_mean": np.full(shape[1], 0.25), "running_var": np.full(shape[1], 2.0),
    }  # fmt: skip
    settings = {"eps": 1e-3, "channel_axis": 1, "training": training, "momentum": 0.25}
    results = zip(NAMES, gradients(laid_out, g, training=training), gradients(x, g, training=training), strict=True)
    for name, returned, exact in results:
        known = AMBIGUOUS_ON_CPU
        assert known.shows_in(inputs, settings) and known.within(shape, settings, name, f"x {layout}")
        for values, covered in ((returned, True), (exact, False)):
            failure = Failure(
                name, f"x {layout}", inputs, settings, g=g.double().numpy(),
                got=values.double().numpy(), expected=exact.double().numpy(),
            )  # fmt: skip
            assert np.all(known.covers(failure)) == covered, name
