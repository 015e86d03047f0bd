"""Results of calls without tracking: code may keep one buffer for them, under no_grad as in inference mode."""

from __future__ import annotations

import pytest
import torch

import normspec

_BUFFERS: dict[object, torch.Tensor] = {}


def rms_norm(x, gamma, *, eps, axes):
    """In the dtype of x."""
    y = x * torch.rsqrt(x.square().mean(axes, keepdim=True) + eps)
    return y if gamma is None else y * gamma


def in_one_buffer_under_no_grad(x, gamma, *, eps, axes):
    """The next call under no_grad overwrites what this one returned."""
    y = rms_norm(x, gamma, eps=eps, axes=axes)
    if torch.is_grad_enabled() or torch.is_inference_mode_enabled():
        return y
    return _BUFFERS.setdefault((x.shape, x.dtype), torch.empty_like(y)).copy_(y)


@pytest.mark.parametrize(("call", "violated"), [(rms_norm, False), (in_one_buffer_under_no_grad, True)])
def test_a_buffer_that_is_used_under_no_grad_alone(call, violated):
    """CM-P4 keeps a result of each kind of call."""
    report = normspec.check(call, op="rms_norm", dtypes="float32", profile="quick", only="CM-P4")
    assert [one.requirement for one in report.failures()] == (["CM-P4"] if violated else [])
