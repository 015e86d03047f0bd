"""The pages' claims about faults and sound ways to compute hold for those in the library."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from .runs import FAULT, NORMALISATIONS, VARIANT, run, specimen, verdicts

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

PREFIX = {"layer_norm": ("ln", "LN"), "batch_norm": ("bn", "BN")}


@pytest.mark.parametrize("operator", NORMALISATIONS)
@pytest.mark.parametrize("name", ["eps-max", "eps-missing", "unbiased-variance-guarded"])
def test_the_scale_law_holds_of_what_scales_as_var_plus_eps(operator: str, name: str) -> None:
    """max(var, eps), no eps at all and another divisor of the variance satisfy LN-L1 and BN-L1."""
    prefix, page = PREFIX[operator]
    assert verdicts(run(specimen(FAULT[f"{prefix}-{name}"]), requirements={f"{page}-L1"})) == {f"{page}-L1": "pass"}


@pytest.mark.parametrize("operator", NORMALISATIONS)
def test_the_scale_law_tells_an_eps_outside_the_root(operator: str) -> None:
    """eps added to the deviation violates it."""
    prefix, page = PREFIX[operator]
    assert verdicts(run(specimen(FAULT[f"{prefix}-eps-on-std"]), requirements={f"{page}-L1"})) == {f"{page}-L1": "fail"}


def test_of_two_interpolations_one_is_exact_where_the_gate_is_shut() -> None:
    """x + t (H - x) is sound; its mirror H + c (x - H) rounds x against H, and violates HW-F1 and HW-L1."""
    rules = ("HW-F1", "HW-L1")
    assert verdicts(run(specimen(VARIANT["hw-interpolated"]), requirements=rules)) == dict.fromkeys(rules, "pass")
    mirrored = verdicts(run(specimen(FAULT["hw-interpolated-from-transform"]), requirements=rules))
    assert mirrored["HW-L1"] == "fail"


def test_one_minus_t_has_the_swap_law() -> None:
    """A carry gate that is formed as 1 - t satisfies HW-L4."""
    assert verdicts(run(specimen(VARIANT["hw-one-minus-t"]), requirements={"HW-L4"})) == {"HW-L4": "pass"}


def test_what_a_running_mean_in_bfloat16_loses() -> None:
    """It loses every update below 2^-9 of itself, at powers of two all below 2^-8, and elsewhere not all of these."""
    values = np.arange(128, 256).astype(ml_dtypes.bfloat16)  # every number between two powers of two
    assert all(ml_dtypes.bfloat16(float(value) * (1 + 0.99 * 2.0**-9)) == value for value in values)
    assert ml_dtypes.bfloat16(1 + 0.99 * 2.0**-8) == 1
    assert ml_dtypes.bfloat16(1.75 * (1 + 0.99 * 2.0**-8)) != ml_dtypes.bfloat16(1.75)
