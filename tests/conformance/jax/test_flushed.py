"""Sums of subnormal numbers: the platform's measured trait is needed, and sufficient."""

from __future__ import annotations

import dataclasses

import pytest

import normspec
from normspec.adapters.targets import resolve
from normspec.conformance.engine.engine import Run
from normspec.conformance.requests.plan import Plan
from normspec.conformance.requests.profiles import profile_of


@pytest.mark.parametrize("conventions", [{}, {"subnormals": "kept"}])
def test_the_sum_of_x_and_x_is_flushed(conventions):
    """x + x of subnormal numbers is zero, as XLA computes it; declaring them kept nevertheless fails RS-F1."""
    target = dataclasses.replace(resolve("jax", op="residual"), slow=False)  # every case, because few hold such numbers
    plan = Plan(
        (target,), ("float32",), "cpu", conventions, profile_of("standard"), 0, requirements=frozenset({"RS-F1"})
    )
    (result,) = Run(plan).report().results
    assert result.verdict is (normspec.Verdict.FAIL if conventions else normspec.Verdict.DEVIATES)
