"""PyTorch's CUDA batch_norm: its known mistakes against numbers from an H100 (PyTorch 2.11); this needs no GPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from normspec.adapters.known import Failure, KnownViolation
from normspec.adapters.torch.batch_norm_cuda import INSTANCE_NORM_ON_CUDA, ON_CUDA

SETTINGS = {"eps": 1e-6, "momentum": 0.0, "training": True, "channel_axis": 1}
X = np.array([float.fromhex(v) for v in ("0x1.58p-15", "-0x1.1e8p-13", "0x1.1ccp-12", "-0x1.71p-13")])
G = np.array([float.fromhex(v) for v in ("0x1.78p-17", "0x1.08cp-13", "0x1.4c8p-14", "0x1.474p-13")])
#: The exact values in float64, and the GPU's where every product of g and x - mean is below 2^-25.
EXACT = {"dx": [9.092775161314801, -3.59199342810960, 1.38151033036312, -6.88229206356832], "dgamma": -2.2368977e-5}
GIVEN = {"dx": [9.1171875, -3.67578125, 1.5478515625, -6.98828125], "dgamma": 0.0}
SHAPES = {"dx": (2, 1, 2), "dgamma": (1,)}


def entry(requirement: str, output: str) -> KnownViolation:
    """The entry about this output under this requirement."""
    (found,) = (one for one in ON_CUDA if one.requirement == requirement and output in one.outputs)
    return found


def small(output: str) -> Failure:
    """The failure as the GPU showed it."""
    inputs = {
        "x": X.reshape(2, 1, 2).astype(np.float16),
        "gamma": np.array([-112.9375], np.float16),
        "beta": np.zeros(1, np.float16),
    }
    got, expected = (np.reshape(values[output], SHAPES[output]) for values in (GIVEN, EXACT))
    return Failure(output, "", inputs, SETTINGS, G.reshape(2, 1, 2).astype(np.float16), got, expected)


@pytest.mark.parametrize(("requirement", "output"), [("BN-G1", "dx"), ("BN-G2", "dgamma")])
def test_products_below_the_format_are_lost(requirement: str, output: str) -> None:
    """The GPU's result is predicted; thirty times the exact value, of either sign, is not."""
    known, failure = entry(requirement, output), small(output)
    assert np.all(known.covers(failure))
    for factor in (-30.0, 30.0):
        assert failure.expected is not None
        assert not np.all(known.covers(replace(failure, got=factor * failure.expected)))
    assert not np.all(known.covers(replace(failure, got=np.full(SHAPES[output], np.inf))))


def test_a_product_above_the_format_is_infinite() -> None:
    """In inference, 100 times 700 is infinite in float16, and so is dgamma; a finite wrong number is not covered."""
    x, g = np.array([[700.0], [-1.0]]), np.array([[100.0], [1.0]])
    inputs = {
        "x": x.astype(np.float16), "gamma": np.ones(1, np.float16), "beta": None,
        "running_mean": np.zeros(1, np.float16), "running_var": np.array([64.0], np.float16),
    }  # fmt: skip
    settings = {**SETTINGS, "training": False}
    exact = np.array([(700.0 * 100.0 - 1.0) / 8.0])
    failure = Failure("dgamma", "", inputs, settings, g.astype(np.float16), np.array([np.inf]), exact)
    known = entry("BN-G4", "dgamma")
    assert np.all(known.covers(failure))
    assert not np.any(known.covers(replace(failure, got=np.array([1.0]))))


def test_instance_norm_loses_them_in_each_sample() -> None:
    """The GPU's result for one sample is predicted for instance_norm, whose dgamma is the sum over samples."""
    x = np.array([float.fromhex("-0x1.9e8p-9"), float.fromhex("0x1.9e8p-9")])
    g = np.array([float.fromhex("0x1.254p-13"), float.fromhex("0x1.23p-16")])
    dx = Failure(
        "dx", "", _sample(x, float.fromhex("0x1.1ep+1")), {"eps": 1e-5, "channel_axis": 1},
        g.reshape(1, 1, 2).astype(np.float16), np.full((1, 1, 2), -0.0164794922), np.full((1, 1, 2), -0.0152985789),
    )  # fmt: skip
    known = {one.requirement: one for one in INSTANCE_NORM_ON_CUDA}
    assert np.asarray(known["IN-G1"].covers(dx))[0, 0, 1]
    assert not np.any(known["IN-G1"].covers(replace(dx, got=np.full((1, 1, 2), -0.03))))
    far = _sample(np.array([60000.0, -60000.0]), 1.0)
    lost = replace(dx, output="dgamma", inputs=far, g=np.array([[[2.0, -2.0]]], np.float16), expected=np.array([4.0]))
    assert np.all(known["IN-G2"].covers(replace(lost, got=np.array([np.inf]))))
    assert not np.any(known["IN-G2"].covers(replace(lost, got=np.array([5.0]))))


def _sample(x: np.ndarray, gamma: float) -> dict[str, np.ndarray | None]:
    return {"x": x.reshape(1, 1, 2).astype(np.float16), "gamma": np.array([gamma], np.float16), "beta": None}


def test_a_bias_alone_has_no_gradient() -> None:
    """Autograd raises, or sums the empty gradient of one channel to 0; with a weight nothing of that is known."""
    raises, zero = entry("CM-T3", "gradient"), entry("BN-G4", "dbeta")
    one, two = np.zeros(1), np.zeros(2)
    assert raises.shows_in({"gamma": None, "beta": two}, SETTINGS)
    assert not raises.shows_in({"gamma": two, "beta": two}, SETTINGS)
    assert zero.shows_in({"gamma": None, "beta": one}, SETTINGS)
    assert not zero.shows_in({"gamma": None, "beta": two}, SETTINGS)
    failure = Failure("dbeta", "", {"gamma": None, "beta": one}, SETTINGS, None, np.zeros(1), np.array([-1.0]))
    assert np.all(zero.covers(failure)) and not np.all(zero.covers(replace(failure, got=np.ones(1))))


def test_all_of_it_is_about_cuda() -> None:
    """On the CPU none of it is an excuse."""
    assert not any(one.applies(dtype="float16", device="cpu") for one in (*ON_CUDA, *INSTANCE_NORM_ON_CUDA))
    assert all(one.applies(dtype="float16", device="cuda:1") for one in ON_CUDA)
