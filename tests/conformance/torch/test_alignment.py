"""PyTorch functions that load more bytes at once than they have made sure are aligned."""

from __future__ import annotations

import pytest
import torch

from normspec.adapters.targets import resolve

from ..runs import result, run


def _layer_norm(tracked, in_place_of, limit):
    """A layer_norm that reads an input or the cotangent from an address rounded down, where it is loaded in vectors."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        given = {"x": x, "gamma": gamma, "beta": beta}
        if in_place_of in given and given[in_place_of] is not None and torch.is_grad_enabled() is tracked:
            given[in_place_of] = _rounded_down(given[in_place_of], limit)
        variance, mean = torch.var_mean(given["x"], axes, correction=0, keepdim=True)
        y = (given["x"] - mean) * torch.rsqrt(variance + eps)
        y = y if gamma is None else y * given["gamma"]
        y = y if beta is None else y + given["beta"]
        if in_place_of == "g" and y.requires_grad:
            y.register_hook(lambda g: _rounded_down(g, limit))
        return y

    return layer_norm


def _rounded_down(tensor, limit):
    """The values from an address that ``limit`` bytes divide, where 16 bytes divide the tensor's own."""
    if not tensor.is_contiguous() or tensor.data_ptr() % 16 or tensor.numel() % 8:
        return tensor  # value by value
    before = tensor.data_ptr() % limit // tensor.element_size()
    if not before:
        return tensor
    return tensor.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset() - before)


@pytest.mark.parametrize(
    ("tracked", "in_place_of", "requirement"),
    [
        (True, "x", "CM-V1"),
        (False, "x", "CM-V1"),
        (True, "g", "CM-V2"),
        (True, "gamma", "CM-V3"),
        (False, "beta", "CM-V3"),
    ],
)
@pytest.mark.parametrize(("limit", "verdict"), [(16, "pass"), (32, "fail"), (64, "fail")])
def test_what_is_loaded_in_wider_vectors(tracked, in_place_of, requirement, limit, verdict):
    """Code that checks for 16 bytes and loads 32 or 64 is wrong 16 bytes behind an aligned address."""
    target = resolve(_layer_norm(tracked, in_place_of, limit), op="layer_norm", framework="torch")
    assert result(run(target, requirements=(requirement,)), requirement).verdict.value == verdict
