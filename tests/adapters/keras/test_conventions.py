"""Keras's differences by design: an experiment shows each declared convention."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.keras import target
from normspec.adapters.keras.bridge import BACKEND
from normspec.spec.parts import Part

TARGET = target()
BATCH_NORM = [b for b in TARGET.bindings if b.operator == "batch_norm"]
LAYER_NORM = [b for b in TARGET.bindings if b.operator == "layer_norm"]
RMS_AND_GROUPS = [b for b in TARGET.bindings if b.operator in ("rms_norm", "group_norm")]
SAMPLES = [b for b in TARGET.bindings if b.operator in ("group_norm", "instance_norm")]
(LAYER,) = (b for b in BATCH_NORM if "layers" in b.name)
TRAINING = {"eps": 0.01, "momentum": 0.25, "training": True, "channel_axis": 1}


def _names(bindings):
    return [f"{binding.operator} {binding.name}" for binding in bindings]


def _batch(x, dtype: Any = np.float32, parameters: Any = None):
    x = np.asarray(x, dtype)
    ones, zeros = (fill(x.shape[1], parameters or dtype) for fill in (np.ones, np.zeros))
    return {"x": x, "gamma": ones, "beta": zeros, "running_mean": zeros, "running_var": ones}


@pytest.mark.parametrize("binding", TARGET.bindings, ids=_names(TARGET.bindings))
def test_every_convention_has_a_reason_and_a_source(binding):
    """Each declared convention and each expected deviation says why, and links to where Keras says or does it."""
    assert set(binding.reasons) == set(binding.conventions)
    assert all("https://" in reason for reason in binding.reasons.values())
    assert all(one.links and all("https://" in link for link in one.links) for one in binding.known_violations)


@pytest.mark.parametrize("binding", BATCH_NORM, ids=_names(BATCH_NORM))
def test_running_variance_is_biased(binding):
    """The batch is normalised by the biased variance, and that enters the running one."""
    assert "running_variance" not in binding.conventions
    x = np.array([[-1.0, -3.0], [1.0, 3.0]])
    outputs = TARGET.session(binding).start(_batch(x), TRAINING).outputs()
    np.testing.assert_allclose(outputs["new_running_var"], 0.75 + 0.25 * np.array([1.0, 9.0]), rtol=1e-6)
    np.testing.assert_allclose(outputs["y"], x / np.sqrt(np.array([1.0, 9.0]) + 0.01), rtol=1e-6)


def test_momentum_weighs_the_old_statistic():
    """The layer's momentum is the weight of the running mean, so it gets one minus the suite's."""
    assert LAYER.conventions["momentum"] == "old"
    outputs = TARGET.session(LAYER).start(_batch([[4.0, 8.0], [4.0, 8.0]]), TRAINING).outputs()
    np.testing.assert_allclose(outputs["new_running_mean"], [1.0, 2.0], rtol=1e-6)


@pytest.mark.parametrize("binding", BATCH_NORM, ids=_names(BATCH_NORM))
def test_one_value_per_channel_is_beta(binding):
    """Training on one value per channel gives beta, without an error."""
    assert "single_value" not in binding.conventions
    inputs = {**_batch([[1.0, 2.0]]), "beta": np.array([3.0, -4.0], np.float32)}
    outputs = TARGET.session(binding).start(inputs, TRAINING).outputs()
    np.testing.assert_array_equal(outputs["y"], [[3.0, -4.0]])


def test_the_layers_have_their_own_eps():
    """Without an eps the layers take 1e-3, and the operation keras.config.epsilon(), which is 1e-7."""
    x = np.array([[-0.03125, 0.03125]], np.float32)
    inputs = {"x": x, "gamma": None, "beta": None}
    for binding, eps in zip(LAYER_NORM, (1e-3, 1e-7), strict=True):
        outputs = TARGET.session(binding).start(inputs, {"axes": (-1,)}, defaults=True).outputs()
        np.testing.assert_allclose(outputs["y"], x / np.sqrt(x[0, 0] ** 2 + eps), rtol=1e-5)


def test_rms_and_group_normalization_have_their_own_eps():
    """Without an eps RMSNormalization takes 1e-6, its operation 1e-7 and GroupNormalization 1e-3."""
    x = np.array([[[-0.001953125], [0.001953125]]], np.float32)
    own = {"rms_norm": {"axes": (-2, -1)}, "group_norm": {"groups": 1, "channel_axis": 1}}
    for binding, eps in zip(RMS_AND_GROUPS, (1e-6, 1e-3, 1e-7), strict=True):
        inputs = {name: x if name == "x" else None for name in binding.record.arguments}
        outputs = TARGET.session(binding).start(inputs, own[binding.operator], defaults=True).outputs()
        np.testing.assert_allclose(outputs["y"], x / np.sqrt(x[0, 0] ** 2 + eps), rtol=1e-5)


@pytest.mark.parametrize("channel_axis", [1, 2, -1, -2])
@pytest.mark.parametrize("binding", SAMPLES, ids=_names(SAMPLES))
def test_channels_along_any_axis(binding, channel_axis):
    """Groups of channels are those of the reference along each axis but the first, counted from either end."""
    rng = np.random.Generator(np.random.Philox(3))
    x = rng.normal(1, 2, (2, 4, 6)).astype(np.float32)
    gamma, beta = (rng.normal(size=x.shape[channel_axis]).astype(np.float32) for _ in range(2))
    settings = {"eps": 0.01, "channel_axis": channel_axis, "groups": 2}
    settings = {name: settings[name] for name in binding.record.settings}
    evaluation = TARGET.session(binding).start({"x": x, "gamma": gamma, "beta": beta}, settings)
    exact = import_module(f"normspec.reference.{binding.operator}")
    y = getattr(exact, binding.operator)(x, gamma, beta, **settings)
    np.testing.assert_allclose(evaluation.outputs()["y"], y, rtol=1e-4, atol=1e-5)
    gradients = evaluation.pull(x).gradients().values()
    right = getattr(exact, f"{binding.operator}_vjp")(x, gamma, beta, x, **settings)
    for got, wanted in zip(gradients, right, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


def test_the_layer_has_its_own_momentum():
    """Without eps and momentum BatchNormalization takes 1e-3, and 0.99 for the weight of the old."""
    inputs, settings = _batch([[-2.0], [4.0]]), {"training": True, "channel_axis": 1}
    outputs = TARGET.session(LAYER).start(inputs, settings, defaults=True).outputs()
    np.testing.assert_allclose(outputs["new_running_mean"], [0.01], rtol=1e-5)
    np.testing.assert_allclose(outputs["y"], np.array([[-3.0], [3.0]]) / np.sqrt(9.001), rtol=1e-6)


@pytest.mark.parametrize("parameters", [ml_dtypes.bfloat16, np.float32])
def test_16_bit_data_is_normalised_in_float32(parameters):
    """A mean that 16 bits cannot hold, and a gradient that they cannot sum, are kept: storage is H0, undeclared."""
    for binding in (*LAYER_NORM, LAYER):
        assert "storage" not in binding.conventions
        if binding.operator == "layer_norm":
            x = np.tile(np.array([256.0, 258.0]), (1001, 1)).astype(ml_dtypes.bfloat16)
            inputs = {"x": x, "gamma": np.ones(2, parameters), "beta": np.zeros(2, parameters)}
            settings, expected = {"eps": 0.01, "axes": (-1,)}, np.array([-1.0, 1.0]) / np.sqrt(1.01)
        else:
            x = np.tile(np.array([[256.0], [258.0]]), (501, 2)).astype(ml_dtypes.bfloat16)
            inputs, settings = _batch(x, x.dtype, parameters), TRAINING
            expected = np.tile(np.array([[-1.0], [1.0]]), (501, 2)) / np.sqrt(1.01)
        evaluation = TARGET.session(binding).start(inputs, settings)
        np.testing.assert_allclose(
            evaluation.outputs()["y"].astype(np.float64), np.broadcast_to(expected, x.shape), rtol=2.0**-8
        )
        total = evaluation.pull(np.ones_like(x)).gradients()["beta"]
        assert total.dtype == parameters
        assert (total == parameters(len(x))).all()


@pytest.mark.skipif(BACKEND != "torch", reason="the other backends form the variance from deviations")
def test_the_variance_is_formed_in_one_pass():
    """For 4095 and 4097 the variance is 1; in float32 mean(x^2) - mean(x)^2 is 0 or 2, because x^2 is rounded."""
    outputs = TARGET.session(LAYER).start(_batch([[4097.0, 0.0], [4095.0, 0.0]]), {**TRAINING, "momentum": 1.0})
    assert LAYER.conventions["variance_algorithm"] == "one-pass"
    assert outputs.outputs()["new_running_var"][0] != 1
    x = np.array([4097.0, 4095.0], np.float32)
    assert outputs.outputs()["new_running_var"][0] == np.mean(x * x) - np.mean(x) ** 2


def test_subnormals():
    """The sum of two subnormal numbers is zero on TensorFlow and on JAX, and kept on PyTorch."""
    (residual,) = (b for b in TARGET.bindings if b.operator == "residual")
    x = np.full((2, 3), 1e-40, np.float32)
    y = TARGET.session(residual).start({"x": x}, {}, parts={"branch": Part("identity")}).outputs()["y"]
    assert (y == (x + x if BACKEND == "torch" else 0)).all()
    flushed = {trait.dtype for trait in TARGET.traits("cpu") if trait.key == "subnormals"}
    single = {trait.value for trait in TARGET.traits("cpu") if trait.key == "float64"}
    assert single == (set() if BACKEND == "tensorflow" else {"float32"})
    assert flushed == (set() if BACKEND == "torch" else {"bfloat16", "float32", "float64"})
