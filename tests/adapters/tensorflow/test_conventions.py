"""TensorFlow's differences by design: an experiment shows each declared convention."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.tensorflow import target
from normspec.spec.errors import Unsupported
from normspec.spec.parts import Part

TARGET = target()
BATCH_NORM = [b for b in TARGET.bindings if b.operator == "batch_norm"]
(FUSED,) = (b for b in BATCH_NORM if "fused" in b.name)
(COMPOSED,) = (b for b in BATCH_NORM if "moments" in b.name)
(LAYER_NORM,) = (b for b in TARGET.bindings if b.operator == "layer_norm")
TRAINING = {"eps": 0.01, "momentum": 0.25, "training": True, "channel_axis": -1}


def _names(bindings):
    return [f"{binding.operator} {binding.name}" for binding in bindings]


def _batch(x, dtype: Any = np.float32, c=2):
    x = np.asarray(x, dtype).reshape(-1, 1, 1, c)
    ones, zeros = np.ones(c, dtype), np.zeros(c, dtype)
    return {"x": x, "gamma": ones, "beta": zeros, "running_mean": zeros, "running_var": ones}


@pytest.mark.parametrize("binding", TARGET.bindings, ids=_names(TARGET.bindings))
def test_every_convention_has_a_reason_and_a_source(binding):
    """Each declared convention and each expected deviation says why, and links to where TensorFlow says or does it."""
    assert set(binding.reasons) == set(binding.conventions)
    assert all("https://" in reason for reason in binding.reasons.values())
    assert all(one.links and all("https://" in link for link in one.links) for one in binding.known_violations)


@pytest.mark.parametrize(("binding", "kept"), [(FUSED, 2.0), (COMPOSED, 1.0)], ids=["fused", "composed"])
def test_running_variance(binding, kept):
    """The batch is normalised by the biased variance; the fused kernel keeps the unbiased one."""
    assert binding.conventions.get("running_variance", "biased") == ("bessel" if kept == 2 else "biased")
    x = np.array([[-1.0, -3.0], [1.0, 3.0]])
    outputs = TARGET.session(binding).start(_batch(x), TRAINING).outputs()
    np.testing.assert_allclose(outputs["new_running_var"], 0.75 + 0.25 * kept * np.array([1.0, 9.0]), rtol=1e-6)
    np.testing.assert_allclose(outputs["y"].reshape(2, 2), x / np.sqrt(np.array([1.0, 9.0]) + 0.01), rtol=1e-6)


@pytest.mark.parametrize("binding", BATCH_NORM, ids=_names(BATCH_NORM))
@pytest.mark.parametrize("momentum", [0.0, 0.25, 1.0])
def test_momentum_weighs_the_new_statistic(binding, momentum):
    """Momentum is normative: it weighs the batch's mean, at 0 and at 1 too."""
    assert "momentum" not in binding.conventions
    settings = {**TRAINING, "momentum": momentum}
    outputs = TARGET.session(binding).start(_batch([[4.0, 8.0], [4.0, 8.0]]), settings).outputs()
    np.testing.assert_allclose(outputs["new_running_mean"], [4 * momentum, 8 * momentum])


@pytest.mark.parametrize("binding", BATCH_NORM, ids=_names(BATCH_NORM))
def test_one_value_per_channel_is_beta(binding):
    """Training on one value per channel gives beta, and the mean its value."""
    assert "single_value" not in binding.conventions
    inputs = {**_batch([[4.0, 8.0]]), "beta": np.array([0.5, -1.5], np.float32)}
    outputs = TARGET.session(binding).start(inputs, TRAINING).outputs()
    assert (outputs["y"].reshape(-1) == inputs["beta"]).all()
    np.testing.assert_allclose(outputs["new_running_mean"], [1.0, 2.0])


@pytest.mark.parametrize("channel_axis", [0, 1, 2, 3, -1, -3])
@pytest.mark.parametrize("binding", BATCH_NORM, ids=_names(BATCH_NORM))
def test_any_channel_axis(binding, channel_axis):
    """The channels are taken from where they are said to be, and y comes back in x's shape."""
    x = np.random.Generator(np.random.Philox(3)).normal(size=(2, 3, 4, 5)).astype(np.float32)
    c = x.shape[channel_axis]
    inputs = {**_batch(np.zeros((1, c)), c=c), "x": x}
    axes = tuple(axis for axis in range(4) if axis != channel_axis % 4)
    y = TARGET.session(binding).start(inputs, {**TRAINING, "channel_axis": channel_axis}).outputs()["y"]
    centred = x - x.mean(axes, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axes, keepdims=True) + 0.01)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_what_the_fused_kernel_takes():
    """It takes four axes, and no float64."""
    assert FUSED.accepts((2, 3), TRAINING) == f"{FUSED.name} takes rank 4, not 2"
    assert FUSED.accepts((2, 3, 4, 5), TRAINING) is None
    with pytest.raises(Unsupported, match="float16, bfloat16 and float32, not float64"):
        TARGET.session(FUSED).start(_batch([[1.0, 2.0]], np.float64), TRAINING)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_the_fused_kernel_computes_in_float32(dtype):
    """A sum of 1001 ones is rounded once, at the end, and a mean that 16 bits cannot hold is kept: storage is H0."""
    assert "storage" not in FUSED.conventions
    x = np.arange(2002) % 7
    gradients = (
        TARGET.session(FUSED).start(_batch(x, dtype), TRAINING).pull(np.ones((1001, 1, 1, 2), dtype)).gradients()
    )
    assert (gradients["beta"] == np.array(1001, dtype)).all()
    low, high = np.array([256, 258] if dtype is ml_dtypes.bfloat16 else [2048, 2050], dtype)
    inputs = _batch([low, high], dtype, c=1)
    y = TARGET.session(FUSED).start(inputs, TRAINING).outputs()["y"].astype(np.float64).reshape(-1)
    np.testing.assert_allclose(y, np.array([-1, 1]) / np.sqrt(1.01), rtol=2.0**-8)


def test_moments_and_batch_normalization_compute_in_16_bits():
    """A mean that 16 bits cannot hold is rounded before x is normalised: storage is native."""
    for binding in (LAYER_NORM, COMPOSED):
        assert binding.conventions["storage"] == "native"
    # In bfloat16, 256 and 258 are neighbours, and their mean 257 lies between them.
    x = np.array([[256.0, 258.0]]).astype(ml_dtypes.bfloat16)
    y = TARGET.session(LAYER_NORM).start({"x": x, "gamma": None, "beta": None}, {"eps": 0.01, "axes": (-1,)}).outputs()
    assert abs(float(y["y"][0, 0]) + 1 / np.sqrt(1.01)) > 0.5


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("binding", [LAYER_NORM, *BATCH_NORM], ids=_names([LAYER_NORM, *BATCH_NORM]))
def test_float32_parameters(binding, dtype):
    """16-bit data takes float32 parameters; y keeps the data's dtype, and gradients and statistics the parameters'."""
    x = np.random.Generator(np.random.Philox(5)).normal(size=(3, 1, 2, 4)).astype(dtype)
    wide = {name: np.linspace(0.5, 1.5, 4, dtype=np.float32) for name in ("gamma", "beta")}
    settings: dict[str, Any] = {"eps": 0.01, "axes": (-1,)}
    if binding.operator == "batch_norm":
        wide |= {name: np.ones(4, np.float32) for name in ("running_mean", "running_var")}
        settings = TRAINING
    evaluation = TARGET.session(binding).start({"x": x, **wide}, settings)
    outputs = evaluation.outputs()
    assert outputs.pop("y").dtype == dtype
    assert {value.dtype.name for value in outputs.values()} <= {"float32"}
    gradients = evaluation.pull(x).gradients()
    assert gradients["x"].dtype == dtype
    assert gradients["gamma"].dtype == gradients["beta"].dtype == np.float32


def _subnormal(dtype):
    return np.ldexp(dtype(1), np.finfo(dtype).minexp - 3)


@pytest.mark.parametrize(
    ("binding", "dtype"),
    # The fused kernel takes no float64.
    [(b, dtype) for b in TARGET.bindings for dtype in (np.float32, np.float64) if (b, dtype) != (FUSED, np.float64)],
)
def test_subnormal_numbers_are_flushed(binding, dtype):
    """A result that would be subnormal is zero, in every binding, and this is measured; none has to declare it."""
    assert np.dtype(dtype).name in {trait.dtype for trait in TARGET.traits("cpu")}
    assert "subnormals" not in binding.conventions
    tiny = _subnormal(dtype)
    x = np.full((2, 1, 1, 2), tiny, dtype)
    zeros, ones = np.zeros(2, dtype), np.ones(2, dtype)
    part, zero = Part("identity"), Part("zero")
    cases: dict[str, tuple[dict, dict, dict]] = {
        # For a group of zeros only beta is left.
        "layer_norm": ({"x": 0 * x, "gamma": ones, "beta": tiny * ones}, {"eps": 1.0, "axes": (-1,)}, {}),
        "batch_norm": (
            {"x": x, "gamma": ones, "beta": zeros, "running_mean": zeros, "running_var": ones},
            {**TRAINING, "training": False},
            {},
        ),
        "residual": ({"x": x}, {}, {"branch": part}),
        "pre_norm": ({"x": x, "gamma": ones, "beta": zeros}, {"eps": 1.0}, {"sublayer": zero}),
        "post_norm": ({"x": 0 * x, "gamma": ones, "beta": tiny * ones}, {"eps": 1.0}, {"sublayer": zero}),
        "highway": ({"x": x}, {}, {"transform": part, "gate": zero}),
        "mhc": ({"x": x, "logits": zeros}, {}, {"branches": (part, part)}),
    }
    inputs, settings, parts = cases[binding.operator]
    y = TARGET.session(binding).start(inputs, settings, parts=parts).outputs()["y"]
    assert (y == 0).all()


def test_float16_keeps_its_subnormal_numbers():
    """They are normal numbers of float32, in which float16 is computed; those of the other dtypes are lost."""
    assert {trait.dtype for trait in TARGET.traits("cpu")} == {"bfloat16", "float32", "float64"}
    assert {(trait.key, trait.value) for trait in TARGET.traits("cpu")} == {("subnormals", "flushed")}
    x = np.full((2, 3), 2.0**-20, np.float16)
    (residual,) = (b for b in TARGET.bindings if b.operator == "residual")
    y = TARGET.session(residual).start({"x": x}, {}, parts={"branch": Part("identity")}).outputs()["y"]
    assert (y == 2.0**-19).all()
