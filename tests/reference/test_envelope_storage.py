"""The storage classes of 16-bit data (H0, H1, H2, native), each against an algorithm of that class."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.reference.accuracy import AccuracyClass, Arithmetic
from normspec.reference.envelope import envelope_of

from .envelope_data import adversarial, problem, regimes
from .envelope_judge import Problem, ratio
from .envelope_moments import CENTRED
from .envelope_storage import computed
from .envelope_zoo import worst

NARROW = [np.float16, ml_dtypes.bfloat16]


def rows_for(dtype: type, n: int, operator: str, eps: float = 1e-3) -> Problem:
    """Adversarial and regime rows that float16 can hold."""
    hard = adversarial(np.random.default_rng(n), 4, n, np.float32)
    x = np.concatenate([np.clip(hard, -1e4, 1e4).astype(dtype), regimes(n, eps, dtype, 0)])
    return problem(x, operator, eps=eps)


def reached(rows: Problem, algorithm: str, storage: str) -> dict[str, float]:
    """The largest ratio of each result of an algorithm of one class, judged in another."""
    bounds, values = rows.bounds(AccuracyClass(storage=storage)), computed(rows, algorithm)
    return {name: float(ratio(values[name], rows.exact[name], bounds[name]).max()) for name in values}


@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
@pytest.mark.parametrize("storage", ["H0", "H1", "H2"])
@pytest.mark.parametrize("dtype", NARROW)
def test_each_class_holds_its_algorithm(dtype, storage, operator):
    """An algorithm that rounds as its class says stays within the class's envelope, and comes near it in y."""
    found = [reached(rows_for(dtype, n, operator), storage, storage) for n in (2, 3, 8, 33)]
    assert max(max(f.values()) for f in found) <= 1, found
    assert max(f["y"] for f in found) > 0.3


@pytest.mark.parametrize("dtype", NARROW)
def test_the_next_tighter_class_does_not(dtype):
    """Rounding on the way is seen by the class that does not allow it."""
    rows = rows_for(dtype, 8, "batch_norm")
    assert max(reached(rows, "H1", "H0").values()) > 1
    assert max(reached(rows, "H2", "H1").values()) > 1


@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
@pytest.mark.parametrize("dtype", NARROW)
def test_native_arithmetic_is_within_native(dtype, operator):
    """Every operation rounded to 16 bits: all algorithms of the zoo are within the class `native`."""
    for n in (2, 3, 8, 16):
        found = worst(rows_for(dtype, n, operator), CENTRED, AccuracyClass(storage="native"))
        assert max(r for r, _ in found.values()) <= 1, (n, found)


@pytest.mark.parametrize("dtype", NARROW)
def test_native_arithmetic_is_outside_h0(dtype):
    """The same textbook computation in 16 bits misses the envelope of one output rounding."""
    x = np.random.default_rng(0).standard_normal((40, 16)).astype(dtype)
    found = worst(problem(x, "layer_norm"), {"": CENTRED["two-pass pairs"]}, AccuracyClass(), sums=("pairs",))
    assert found["y"][0] > 1.5 and found["dx"][0] > 1.5


@pytest.mark.parametrize("dtype", NARROW)
def test_computing_in_float32_is_within_h0(dtype):
    """The whole zoo in float32 with one rounding at the end is within H0."""
    found = worst(rows_for(dtype, 8, "layer_norm"), CENTRED, compute=np.dtype(np.float32))
    assert max(r for r, _ in found.values()) <= 1, found
    assert found["y"][0] > 0.5


def test_small_float16_gradients_are_judged():
    """With a deviation of 8 and cotangents of 1e-4, dx is below the normal range of float16: zeros are wrong."""
    rng = np.random.default_rng(1)
    x = (8 * rng.standard_normal((4, 32))).astype(np.float16)
    rows = problem(x, "layer_norm", g=1e-4)
    bound, exact = rows.bounds()["dx"], rows.exact["dx"].hi
    assert np.quantile(np.abs(exact), 0.95) < 2.0**-14  # the smallest normal number
    assert (np.abs(exact) > bound).mean() > 0.9
    assert reached(rows, "H0", "H0")["dx"] <= 1
    missing = (rows.parameters[0] * rows.g).astype(np.float32) / x.astype(np.float32).std(axis=1, keepdims=True)
    assert ratio(missing, rows.exact["dx"], bound).max() > 10  # the two projections left out


def test_float32_parameters_keep_float32_gradients():
    """With 16-bit x and float32 parameters, dgamma and dbeta are judged at float32's own roundoff in H0."""
    x = np.random.default_rng(2).standard_normal((6, 8)).astype(ml_dtypes.bfloat16)
    g, gamma = x[::-1], np.ones(8, np.float32)
    bounds = {
        held: envelope_of(
            "layer_norm", x, gamma, None, eps=1e-5, axes=(-1,), arithmetic=Arithmetic.of(ml_dtypes.bfloat16, held)
        ).gradients(g)
        for held in ("float32", "bfloat16")
    }
    assert (bounds["float32"]["dbeta"] < 0.1 * bounds["bfloat16"]["dbeta"]).all()
    assert (bounds["float32"]["dx"] == bounds["bfloat16"]["dx"]).all()
