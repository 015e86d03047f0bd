"""Gradients of data with deviations of 2^38 to 2^50, tiny cotangents, and the subnormal end of a format."""

from __future__ import annotations

from functools import partial

import attrs
import numpy as np
import pytest

from normspec.reference.accuracy import AccuracyClass, Arithmetic
from normspec.reference.envelope import envelope_of
from normspec.reference.formats import FORMATS

from .envelope_data import problem, regimes
from .envelope_judge import ratio
from .envelope_moments import CENTRED
from .envelope_zoo import worst

PLAIN = {name: CENTRED[name] for name in ("two-pass forwards", "welford", "tree", "lanes weighted", "blocks")}


@pytest.mark.parametrize("k", [38, 42, 46, 50])
@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
def test_an_algorithm_that_scales_is_within_at_large_deviations(operator, k):
    """dx of float32 data of deviation 2^k, computed on scaled rows, is within the envelope and not lost in it."""
    x = (2.0**k * np.random.default_rng(k).standard_normal((6, 8))).astype(np.float32)
    rows = problem(x, operator)
    envelope = rows.envelope()
    assert envelope.in_range(gradient=False).all()
    assert envelope.in_range(gradient=True).all() == (k <= 38)
    bound, exact = envelope.gradients(rows.g)["dx"], rows.exact["dx"]
    scaled = attrs.evolve(rows, x=rows.x * np.float32(2.0**-k), eps=rows.eps * 4.0**-k)
    gamma, _ = scaled.parameters
    h, d = gamma * scaled.g, scaled.x - scaled.x.mean(axis=1, keepdims=True)
    r = 1 / np.sqrt((d * d).mean(axis=1, keepdims=True) + np.float32(scaled.eps))
    xhat = d * r
    projected = h - h.mean(axis=1, keepdims=True) - xhat * (h * xhat).mean(axis=1, keepdims=True)
    dx = projected * r * np.float32(2.0**-k)
    assert ratio(dx, exact, bound).max() <= 1
    assert np.median(bound / np.abs(exact.hi)) < 1e-3  # a wrong dx would be seen
    unscaled = r * np.float32(2.0**-k)
    collapsed = h * unscaled + (unscaled**3) * d * np.float32(2.0**k)  # r^3 underflows beyond 2^42
    assert ratio(collapsed, exact, bound).max() > 10


@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_subnormal_groups_are_within(dtype, operator):
    """y of subnormal data, where every operation of a streamed mean may underflow, is within the envelope."""
    only = regimes(64, 1e-12, dtype, 0)
    x = only[np.abs(only).max(axis=1) < np.finfo(dtype).smallest_normal]
    found = worst(problem(x, operator, eps=1e-12), PLAIN)
    assert found["y"][0] <= 1


class Flushed(np.ndarray):
    """An array whose operations treat subnormal numbers as zero, in arguments and results."""

    def __array_ufunc__(self, ufunc, method, *inputs, **settings):
        """Flush the inputs, compute, and flush the outputs."""
        plain = [_flush(np.asarray(z)) if isinstance(z, np.ndarray) else z for z in inputs]
        result = getattr(ufunc, method)(*plain, **settings)
        return _flush(result).view(Flushed) if isinstance(result, np.ndarray) else result


def _flush(z: np.ndarray) -> np.ndarray:
    if z.dtype.kind != "f":
        return z
    return np.where(np.abs(z) < np.finfo(z.dtype).smallest_normal, z.dtype.type(0), z)


@pytest.mark.parametrize("eps", [1e-5, 1e-12])
def test_flushing_is_within_its_class(eps):
    """Float32 with subnormal numbers flushed on the way in and out is within the class `flushed`."""
    rng = np.random.default_rng(0)
    tiny = 2.0**-126 * rng.standard_normal((40, 8)) * 4.0 ** rng.integers(-2, 4, (40, 1))
    rows = problem(tiny.astype(np.float32), "layer_norm", eps=eps)
    accuracy = AccuracyClass(flushed=frozenset(FORMATS))
    flushed = {name: lambda x, moments=moments: moments(x.view(Flushed)) for name, moments in PLAIN.items()}
    assert worst(rows, flushed, accuracy)["y"][0] <= 1


def _tiny_products(dtype):
    """Deviations and cotangents whose product is subnormal, although dgamma and dx are not."""
    limits = np.finfo(dtype)
    g = float(limits.smallest_normal) * 64
    rng = np.random.default_rng(1)
    x = (1e-6 * rng.standard_normal((8, 8))).astype(dtype)
    return x, (g * (0.3 + rng.standard_normal((8, 8)))).astype(dtype)


@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_that_underflow_before_r(dtype, operator):
    """sum(g (x - mean)) r and its use in dx may underflow before r, large, multiplies them."""
    x, g = _tiny_products(dtype)
    ones = np.ones(8, dtype)
    mean = x.mean(axis=1, keepdims=True)
    r = 1 / np.sqrt(((x - mean) ** 2).mean(axis=1, keepdims=True) + dtype(1e-12))
    rows = attrs.evolve(problem(x, operator, eps=1e-12), gamma=ones, g=g)
    axis = 0 if operator == "layer_norm" else 1
    dgamma = (g * (x - mean) * r).sum(axis=axis)
    c2 = (g * (x - mean)).mean(axis=1, keepdims=True) * r
    dx = r * (g - g.mean(axis=1, keepdims=True) - (x - mean) * r * c2)
    for affine in ("centred", "folded"):
        bounds = rows.bounds(AccuracyClass(affine=affine))
        assert ratio(dgamma, rows.exact["dgamma"], bounds["dgamma"]).max() <= 1
        assert ratio(dx, rows.exact["dx"], bounds["dx"]).max() <= 1


@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
def test_no_envelope_is_below_one_rounding_of_the_format(operator):
    """For any data, an envelope is at least half the smallest subnormal number of its result."""
    build = partial(envelope_of, operator)
    settings = {"axes": (-1,)} if operator == "layer_norm" else {"training": True, "channel_axis": 0}
    zero = () if operator == "layer_norm" else (np.zeros(3), np.zeros(3))
    x = np.zeros((3, 4), np.float16)
    envelope = build(x, None, None, *zero, eps=1e-5, **settings, arithmetic=Arithmetic.of(np.float16))
    for bound in (envelope.y(), *envelope.gradients(np.zeros(x.shape)).values()):
        assert (bound >= 2.0**-25).all()
