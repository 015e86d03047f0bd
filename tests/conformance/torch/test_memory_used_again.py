"""Functions on PyTorch's tensors that take an object, or an address, for the values that it holds."""

from __future__ import annotations

import pytest
import torch

from normspec.adapters.targets import resolve

from ..runs import result, run


def _layer_norm(kept):
    """A layer_norm whose statistics come from ``kept``."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        mean, rstd = kept(x, eps, axes)
        y = (x - mean) * rstd
        y = y if gamma is None else y * gamma
        return y if beta is None else y + beta

    return layer_norm


def _statistics(x, eps, axes):
    mean = x.mean(axes, keepdim=True)
    return mean, torch.rsqrt((x - mean).square().mean(axes, keepdim=True) + eps)


def on_the_tensor():
    """Keeps the statistics on the tensor object."""

    def kept(x, eps, axes):
        if not hasattr(x, "_stats"):
            x._stats = _statistics(x, eps, axes)
        return x._stats

    return kept


def under_the_address():
    """Keeps the statistics under the address and the shape, as long as the tensor is there."""
    last = []

    def kept(x, eps, axes):
        key = x.data_ptr(), x.shape, eps, axes
        if not last or last[0] != key:
            last[:] = key, x, _statistics(x, eps, axes)
        return last[2]

    return kept


def of_the_same_version():
    """Keeps the statistics of a tensor until it is written to."""
    last = []

    def kept(x, eps, axes):
        key = x._version, eps, axes
        if not last or last[0] is not x or last[1] != key:
            last[:] = x, key, _statistics(x, eps, axes)
        return last[2]

    return kept


def verdict(kept, **options) -> str:
    """CM-P2's verdict on a function whose statistics come from ``kept``."""
    target = resolve(_layer_norm(kept), op="layer_norm", framework="torch")
    return result(run(target, requirements={"CM-P2"}, **options), "CM-P2").verdict.value


@pytest.mark.parametrize("forward_only", [False, True], ids=["with gradients", "forward"])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("make", [on_the_tensor, under_the_address])
def test_what_is_kept_for_a_tensor_is_found_out(make, seed, forward_only):
    """Statistics kept by object or by address fail CM-P2."""
    assert verdict(make(), profile="standard", seed=seed, forward_only=forward_only) == "fail"


@pytest.mark.parametrize("forward_only", [False, True], ids=["with gradients", "forward"])
def test_what_a_write_to_the_tensor_ends_may_be_kept(forward_only):
    """Statistics kept until the tensor is written to pass: `quick` repeats calls in every way that `standard` does."""
    assert verdict(of_the_same_version(), forward_only=forward_only) == "pass"
