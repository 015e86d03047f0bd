"""PyTorch's CUDA group_norm: its known mistakes against numbers from an H100 (PyTorch 2.11); this needs no GPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from normspec.adapters.known import Failure, KnownViolation
from normspec.adapters.torch.group_norm_cuda import ON_CUDA

G = np.array([float.fromhex("0x1.684p-3"), float.fromhex("-0x1.ebcp-2")]).reshape(1, 2, 1)
#: By output: x, the number that the GPU gave, and where.
SEEN = {
    "y": (("-0x1.064p-10", "0x1.064p-10"), "-0x1.68cp-1", (0, 0, 0)),
    "dx": (("0x1.8p-22", "0x1.c8p-19"), "0x1.46p+8", (0, 0, 0)),
    "dgamma": (("-0x1.064p-10", "0x1.064p-10"), "-0x1.5a8p-2", (1,)),
}
REQUIREMENTS = {"y": "GN-F1", "dx": "GN-G1", "dgamma": "GN-G2"}


def entry(output: str) -> KnownViolation:
    """The entry about a small eps and this output."""
    (found,) = (one for one in ON_CUDA if one.requirement == REQUIREMENTS[output] and one.where.startswith("eps"))
    return found


def failing(output: str, got: float, eps: float = 1e-6) -> Failure:
    """A failure of one number, all of the output being it."""
    x = SEEN[output][0]
    inputs = {
        "x": np.array([float.fromhex(one) for one in x], np.float16).reshape(1, 2, 1),
        "gamma": np.ones(2, np.float16),
        "beta": np.zeros(2, np.float16),
    }
    settings = {"eps": eps, "groups": 1, "channel_axis": 1}
    shape = (2,) if output == "dgamma" else (1, 2, 1)
    return Failure(output, "", inputs, settings, G.astype(np.float16), np.full(shape, got), np.zeros(shape))


@pytest.mark.parametrize("output", SEEN)
def test_a_small_eps_is_rounded(output: str) -> None:
    """The GPU's result is predicted at its place; one hundredth more, the opposite sign and NaN are not."""
    _, given, where = SEEN[output]
    known, got = entry(output), float.fromhex(given)
    assert np.asarray(known.covers(failing(output, got)))[where]
    for wrong in (1.01 * got, -got, np.nan):
        assert not np.asarray(known.covers(failing(output, wrong)))[where]


def test_an_eps_that_is_zero_in_float16_makes_nan() -> None:
    """A constant group and eps = 1e-8: 0 times infinity."""
    failure = failing("y", np.nan, 1e-8)
    constant = {**failure.inputs, "x": np.ones((1, 2, 1), np.float16)}
    assert np.all(entry("y").covers(replace(failure, inputs=constant)))
    assert not np.any(entry("y").covers(replace(failure, inputs=constant, settings={**failure.settings, "eps": 1e-6})))


def test_a_mean_below_the_format_is_rounded() -> None:
    """Up to 2.11 y reads the saved mean: 40 units of 2^-20 more than the exact y of that eps."""
    x = np.array([float.fromhex("0x1.8p-22"), float.fromhex("0x1.c8p-19")], np.float16).reshape(1, 2, 1)
    failure = failing("y", float.fromhex("0x1.84p-10"))
    assert np.asarray(entry("y").covers(replace(failure, inputs={**failure.inputs, "x": x})))[0, 1, 0]


def test_products_of_float16_overflow() -> None:
    """20 times 4136 is infinite in float16, and dx NaN where there is one position; a finite number is not covered."""
    (known,) = (one for one in ON_CUDA if one.requirement == "GN-G8")
    x = np.array([float.fromhex("-0x1.ca4p+13"), float.fromhex("0x1.028p+12")], np.float16).reshape(1, 2, 1)
    g = np.array([0.0, 20.0], np.float16).reshape(1, 2, 1)
    failure = failing("dx", np.nan)
    failure = replace(failure, inputs={**failure.inputs, "x": x}, g=g)
    assert np.all(known.covers(failure))
    assert not np.any(known.covers(replace(failure, got=np.ones(x.shape))))
    assert not np.any(known.covers(replace(failure, g=g / 4)))
    assert not np.any(known.covers(replace(failure, g=g / 4, got=np.ones(x.shape))))
    assert not known.shows_in({"x": np.ones((1, 2, 3))}, failure.settings)


def test_a_normal_eps_is_no_excuse() -> None:
    """From 2^-14 on float16 holds eps with all its digits."""
    assert not entry("y").covers(failing("y", float.fromhex(SEEN["y"][1]), 2.0**-14))


def test_all_of_it_is_about_cuda() -> None:
    """On the CPU none of it is an excuse; eps is an excuse only in float16."""
    assert not any(one.applies(dtype="float16", device="cpu") for one in ON_CUDA)
    assert [one.requirement for one in ON_CUDA if one.applies(dtype="bfloat16", device="cuda")] == ["CM-S1"]


def test_many_groups_have_no_gradient() -> None:
    """A grid of CUDA has 65,535 blocks in its second extent."""
    (known,) = (one for one in ON_CUDA if one.requirement == "CM-S1")
    assert known.shows_in({}, {"groups": 65536}) and not known.shows_in({}, {"groups": 65535})
