"""The RMSNorms of Hugging Face's transformers: Llama's, T5's and Gemma's."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.targets import resolve
from normspec.reference.rms_norm import rms_norm, rms_norm_vjp
from normspec.spec.errors import Unsupported

TARGET = resolve("torch", op="rms_norm")
BINDINGS = [one for one in TARGET.bindings if one.name.startswith("transformers")]
BEFORE_GAIN = [one for one in BINDINGS if "cast" in one.conventions]
ALL = pytest.mark.parametrize("binding", BINDINGS, ids=lambda one: one.name)
SETTINGS = {"eps": 0.01, "axes": (-1,)}


def drawn(dtype):
    """Three groups of seven values, and a gain in the same dtype."""
    rng = np.random.Generator(np.random.Philox(31))
    return rng.normal(1, 2, (3, 7)).astype(dtype), rng.normal(1, 0.5, 7).astype(dtype)


@ALL
def test_values_and_gradients(binding):
    """In float32 y, dx and dgamma are the exact ones; a gain stored as gamma - 1 is passed as such."""
    x, gamma = drawn(np.float32)
    g = np.random.Generator(np.random.Philox(32)).normal(size=x.shape).astype(np.float32)
    handed = gamma - 1 if binding.conventions.get("gain") else gamma
    exact = (handed + 1).astype(np.float32) if binding.conventions.get("gain") else gamma
    evaluation = TARGET.session(binding).start({"x": x, "gamma": handed}, SETTINGS)
    np.testing.assert_allclose(evaluation.outputs()["y"], rms_norm(x, exact, **SETTINGS), rtol=1e-6)
    gradients = evaluation.pull(g).gradients()
    for name, value in zip(("x", "gamma"), rms_norm_vjp(x, exact, g, **SETTINGS), strict=True):
        np.testing.assert_allclose(gradients[name], value, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("binding", BEFORE_GAIN, ids=lambda one: one.name)
def test_the_normalised_values_are_rounded_before_the_gain(binding):
    """y is the rounded product of the gain and of the rounded normalised values, and is not that of one rounding."""
    x, gamma = drawn(ml_dtypes.bfloat16)
    y = TARGET.session(binding).start({"x": x, "gamma": gamma}, SETTINGS).outputs()["y"]
    normalised = rms_norm(x, None, **SETTINGS)
    rounded = normalised.astype(ml_dtypes.bfloat16).astype(np.float32)
    wide = gamma.astype(np.float32)
    np.testing.assert_array_equal(y, (rounded * wide).astype(ml_dtypes.bfloat16))
    assert (y != (normalised * wide).astype(ml_dtypes.bfloat16)).any()


@ALL
def test_a_float32_weight(binding):
    """A float32 weight makes y float32 where that is declared, and leaves it in 16 bits elsewhere."""
    x, _ = drawn(ml_dtypes.bfloat16)
    y = TARGET.session(binding).start({"x": x, "gamma": np.ones(7, np.float32)}, SETTINGS).outputs()["y"]
    promoted = binding.conventions.get("mixed_dtypes") == "promoted"
    assert y.dtype == (np.float32 if promoted else ml_dtypes.bfloat16)


@ALL
def test_what_it_does_not_take(binding):
    """There is always a weight, and one axis; its own eps is 1e-6."""
    x, gamma = drawn(np.float32)
    session = TARGET.session(binding)
    with pytest.raises(Unsupported, match="always has a weight"):
        session.start({"x": x, "gamma": None}, SETTINGS)
    assert "only the last axis" in (binding.accepts((2, 3, 4), {"axes": (-2, -1)}) or "")
    inputs = {"x": x * np.float32(2**-10), "gamma": gamma}
    own = session.start(inputs, {"axes": (-1,)}, defaults=True).outputs()["y"]
    np.testing.assert_array_equal(own, session.start(inputs, {"eps": 1e-6, "axes": (-1,)}).outputs()["y"])


def test_a_part_of_t5s_dx_overflows_in_float16():
    """With 1/sqrt(eps) of 10^6, dx is NaN or infinite where its two parts are beyond float16 and their sum is not."""
    binding = next(one for one in BINDINGS if "T5" in one.name)
    x = (2.0**-24 * np.array([[4, -4, -17, 6, 3, 8]])).astype(np.float16)
    g = np.array([[0.267, 0.238, -0.3237, 1.906, 2.248, 1.064]]).astype(np.float16)
    settings = {"eps": 1e-12, "axes": (-1,)}
    inputs = {"x": x, "gamma": np.ones(6, np.float16)}
    exact, _ = rms_norm_vjp(x, None, g, **settings)
    got = TARGET.session(binding).start(inputs, settings).pull(g).gradients()["x"]
    assert abs(exact[0, 2]) < 60000
    assert not np.isfinite(got[0, 2])
    assert {one.outputs for one in binding.known_violations} == {("dx",)}
