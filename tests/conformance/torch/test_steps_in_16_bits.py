"""Functions in plain operations of PyTorch: they round after each step, and float32 parameters widen their results."""

from __future__ import annotations

import pytest
import torch

import normspec

from ..runs import others_at_night


def layer_norm(x, gamma, beta, *, eps, axes):
    """Sound in float32 and float64."""
    centred = x - x.mean(axes, keepdim=True)
    y = centred / torch.sqrt((centred**2).mean(axes, keepdim=True) + eps)
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def batch_norm(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
    """The running variance is that of torch.var, as its author meant: unbiased, and NaN for one value."""
    axes = [axis for axis in range(x.ndim) if axis != channel_axis % x.ndim]
    shape = [1] * x.ndim
    shape[channel_axis] = -1
    mean, var = (x.mean(axes), x.var(axes, correction=0)) if training else (running_mean, running_var)
    if training:
        running_mean = (1 - momentum) * running_mean + momentum * mean
        running_var = (1 - momentum) * running_var + momentum * x.var(axes)
    y = (x - mean.view(shape)) / torch.sqrt(var.view(shape) + eps)
    y = y if gamma is None else y * gamma.view(shape)
    return y if beta is None else y + beta.view(shape), running_mean, running_var


CONVENTIONS = ["storage=native", "mixed_dtypes=promoted"]


def named(function, dtypes):
    """The causes, by fault or convention, with their dtypes; and what none of them explains."""
    report = normspec.check(function, dtypes=dtypes, profile="quick")
    explained = {(name, dtype) for cause in report.causes for name in cause.explains for dtype in cause.dtypes}
    left = {one.requirement for one in report.failures() if (one.requirement, one.dtype) not in explained}
    return [(cause.name or cause.convention, cause.dtypes) for cause in report.causes], left


def test_steps_in_16_bits_and_promoted_results_are_two_causes():
    """Each is a convention: mixed calls fail in the requirements on layouts and NaN too, as their results are wide."""
    causes, left = named(layer_norm, ["float16", "bfloat16"])
    assert causes == [(convention, ("float16", "bfloat16")) for convention in CONVENTIONS]
    assert not left


@pytest.mark.parametrize("dtypes", [["float16"], *others_at_night([["float32", "float16"]], ())])
def test_a_mistake_beside_them_has_its_name(dtypes):
    """It is found under the conventions in float16, and without them in float32."""
    causes, left = named(batch_norm, dtypes)
    assert causes[0] == ("bn-running-var-bessel-nan", tuple(sorted(dtypes)))
    assert [name for name, _ in causes[1:]] == CONVENTIONS
    assert left <= {"CM-D1"}  # where parameters are float32, mistake and convention show in one case
