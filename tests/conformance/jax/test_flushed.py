"""Sums of subnormal numbers: what the composed operators declare of them is needed, and suffices."""

from __future__ import annotations

import dataclasses

import pytest

import normspec
from normspec.adapters.targets import resolve
from normspec.conformance.engine import Plan, Run
from normspec.conformance.profiles import profile_of


@pytest.mark.parametrize("declared", [True, False])
def test_the_sum_of_x_and_x_is_flushed(declared):
    """x + x of subnormal numbers is zero: a residual connection conforms if it says so, and fails RS-F1 otherwise."""
    target = dataclasses.replace(resolve("jax", op="residual"), slow=False)  # every case: few hold such numbers
    if not declared:
        (binding,) = target.bindings
        target = dataclasses.replace(target, bindings=(dataclasses.replace(binding, conventions={}),))
    plan = Plan((target,), ("float32",), "cpu", {}, profile_of("standard"), 0, requirements=frozenset({"RS-F1"}))
    (result,) = Run(plan).report().results
    assert result.verdict is (normspec.Verdict.DEVIATES if declared else normspec.Verdict.FAIL)
