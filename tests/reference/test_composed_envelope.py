"""Sound algorithms for the composed operators stay within their envelopes, in every format and class."""

from __future__ import annotations

import attrs
import ml_dtypes
import numpy as np
import pytest

from normspec.reference.accuracy import AccuracyClass

from .composed_data import LOGITS, OPERATORS, draw, highway_witness, mhc_witness
from .composed_zoo import fused, ratios
from .envelope_moments import ONE_PASS, SHIFTED

pytestmark = pytest.mark.exhaustive

CLASSES = [
    (np.float32, "H0"),
    (np.float64, "H0"),
    (ml_dtypes.bfloat16, "H0"),
    (ml_dtypes.bfloat16, "native"),
    (np.float16, "H0"),
    (np.float16, "native"),
]
SHAPES = ((2, 3), (3, 4), (2, 2, 5), (2, 1), (1, 7))


def exceeding(call, storage="H0", variance="centred", **forms):
    """The variants and results of a call that leave the envelope, and the largest ratio of each result."""
    outside, largest = [], {}
    for result, variant, reached in ratios(call, AccuracyClass(storage=storage, variance=variance), **forms):
        largest[result] = max(largest.get(result, 0.0), reached)
        if not reached <= 1:
            outside.append((result, variant, reached))
    return outside, largest


@pytest.mark.parametrize(("dtype", "storage"), CLASSES)
@pytest.mark.parametrize("operator", OPERATORS)
def test_random_calls_are_within(operator, dtype, storage):
    """No form, order or derivative of any operator exceeds 1, and some result comes above 0.03."""
    highest = 0.0
    for seed in range(10):
        outside, largest = exceeding(draw(operator, seed, SHAPES[seed % 5]).cast(dtype), storage)
        assert outside == [], seed
        highest = max(highest, *largest.values())
    assert highest > 0.03


@pytest.mark.parametrize(("dtype", "storage"), CLASSES)
def test_small_tensors_are_within(dtype, storage):
    """Where cotangents and inputs are so small that steps underflow in 16 bits the envelope allows for it."""
    for operator in OPERATORS:
        for seed in range(3):
            call = draw(operator, seed)
            inputs = call.inputs | {"x": call.inputs["x"] * 1e-4}
            for small in (attrs.evolve(call, g=call.g * 1e-5), attrs.evolve(call, inputs=inputs, g=call.g * 1e-3)):
                outside, _ = exceeding(small.cast(dtype), storage)
                assert outside == [], (operator, seed)


@pytest.mark.parametrize(("dtype", "storage"), CLASSES)
def test_extreme_gates_are_within(dtype, storage):
    """Gates of +-10^4 and +-inf, with small and large x, H and g, stay within and give no NaN."""
    for carry in (False, True):
        for scales in ((1, 1, 1), (1e-3, 1e3, 1e-3), (1e3, 1, 1e-5), (1e-4, 1e-4, 1e-4)):
            outside, _ = exceeding(highway_witness(*scales, carry=carry).cast(dtype), storage)
            assert outside == []


@pytest.mark.parametrize(("dtype", "storage"), CLASSES)
def test_extreme_logits_are_within(dtype, storage):
    """Ties, wide spreads and a logit of -inf stay within and give no NaN, with x added first or last."""
    for logits in LOGITS.values():
        for scales in ({}, {"equal": True}, {"scale_h": 1e-5, "scale_g": 1e-5}):
            outside, _ = exceeding(mhc_witness(logits, **scales).cast(dtype), storage)
            assert outside == []


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_float32_parameters_are_within(dtype):
    """With 16-bit x, float32 gamma, beta and logits have float32 gradients, within their envelopes."""
    for operator in ("pre_norm", "post_norm", "mhc"):
        for seed in range(6):
            outside, _ = exceeding(draw(operator, seed, SHAPES[seed % 5]).cast(dtype, np.float32))
            assert outside == [], (operator, seed)


@pytest.mark.parametrize(("variance", "algorithms"), [("one-pass", ONE_PASS), ("shifted", SHIFTED)])
@pytest.mark.parametrize("operator", ["pre_norm", "post_norm"])
def test_weaker_variances_are_within(operator, variance, algorithms):
    """Blocks built on a one-pass or shifted variance stay within the envelope of that class."""
    forms = {name: fused(algorithm) for name, algorithm in algorithms.items()}
    for dtype in (np.float32, np.float64):
        for seed in range(4):
            call = draw(operator, seed, SHAPES[seed % 3]).cast(dtype)
            assert exceeding(call, variance=variance, xhats=forms)[0] == [], seed
