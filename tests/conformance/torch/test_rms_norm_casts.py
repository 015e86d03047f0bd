"""RMSNorm that rounds before the gain: it fails until it says so, and the report says what to declare."""

from __future__ import annotations

import pytest
import torch

from normspec.adapters.binding import Binding
from normspec.adapters.target import Target
from normspec.adapters.torch import BRIDGE

from ..runs import result, run


def before_gain(x, gamma, *, eps, axes):
    """Llama's order: the normalised value is rounded, and then multiplied."""
    h = x.to(torch.promote_types(x.dtype, torch.float32))
    h = (h * torch.rsqrt(h.pow(2).mean(axes, keepdim=True) + eps)).to(x.dtype)
    return h if gamma is None else (gamma * h).to(x.dtype)


def last(x, gamma, *, eps, axes):
    """One rounding, at the end."""
    h = x.to(torch.promote_types(x.dtype, torch.float32))
    h = h * torch.rsqrt(h.pow(2).mean(axes, keepdim=True) + eps)
    return (h if gamma is None else gamma * h).to(x.dtype)


def early(x, gamma, *, eps, axes):
    """One rounding, at the end; gamma is widened where it is used: in the call, and again in its gradient."""
    h = x.to(torch.promote_types(x.dtype, torch.float32))
    r = torch.rsqrt(h.pow(2).mean(axes, keepdim=True) + eps)
    return (h * (r if gamma is None else r * gamma)).to(x.dtype)


def _target(function) -> Target:
    return Target("own", "torch", BRIDGE.version, BRIDGE, (Binding("rms_norm", "own", function),))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_rounding_before_the_gain_has_to_be_declared(dtype):
    """Undeclared it fails RM-F1 and the gradients, declared it conforms, and it deviates only where it needs that."""
    failing = {r.requirement for r in run(_target(before_gain), dtypes=(dtype,)).failures()}
    assert {"RM-F1", "RM-G2"} <= failing
    declared = run(_target(before_gain), dtypes=(dtype,), conventions={"cast": "before-gain"})
    assert declared.failures() == declared.errors() == ()
    assert declared.conforms
    assert result(declared, "RM-F1", dtype).verdict.value == "deviates"


def test_one_rounding_needs_no_declaration():
    """Rounding once conforms as it is."""
    assert run(_target(last), dtypes=("bfloat16",)).conforms


def test_the_report_names_the_declaration():
    """Of all declarations that would pass, it names the rounding before the gain, and no class of storage."""
    report = run(_target(before_gain), dtypes=("bfloat16",), requirements={"RM-F1", "RM-G2"}, explain=True)
    (subject,) = report.subjects
    assert subject["passes_under"] == ("cast=before-gain",)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_two_shares_of_a_second_gradient_are_rounded_one_by_one(dtype):
    """Autograd adds gamma's second-order gradient from two uses, in gamma's format (A17): that is sound."""
    for seed in range(3):
        report = run(_target(early), dtypes=(dtype,), requirements={"RM-G9", "RM-G13"}, seed=seed)
        assert report.conforms and all(one.cases for one in report.results)
