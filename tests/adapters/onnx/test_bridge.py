"""ONNX's tensors, its models, and the user's own functions on its arrays."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from normspec.adapters.onnx import BRIDGE, reference_target, target
from normspec.adapters.onnx.models import Node, model
from normspec.adapters.targets import resolve
from normspec.spec.errors import DeviceUnavailable
from normspec.spec.operators import OPERATORS

SETTINGS = {"eps": 0.25, "axes": (-1,)}
NORMALISATIONS = [name for name, one in OPERATORS.items() if one.normalises and not one.composed]


def binding_of(made, operator):
    """The binding of an operator."""
    (found,) = (binding for binding in made().bindings if binding.operator == operator)
    return found


@pytest.mark.parametrize("made", [target, reference_target])
def test_both_evaluators_have_every_normalisation(made):
    """Each target has one binding of each normalisation, and no operator that takes parts."""
    assert {binding.operator for binding in made().bindings} == set(NORMALISATIONS)
    assert len(made().bindings) == len(NORMALISATIONS)
    assert made().framework == "onnx"
    assert not made().bridge.differentiates


def test_there_is_the_cpu_alone():
    """Another device is refused, and the message says what to do."""
    BRIDGE.check_device("cpu")
    with pytest.raises(DeviceUnavailable, match="ONNX on the CPU alone, not on 'cuda'"):
        BRIDGE.check_device("cuda")


def test_a_model_passes_onnxs_own_checker():
    """A model of each operator is valid ONNX, its axes of any size."""
    one = ("X", "float32", 3), ("Scale", "float32", 1)
    made = model(Node("LayerNormalization", one, (("Y", "float32", 3),), (("axis", -1), ("epsilon", 1e-5))))
    onnx.checker.check_model(made, full_check=True)
    shape = made.graph.input[0].type.tensor_type.shape
    assert [axis.dim_param for axis in shape.dim] == ["X_0", "X_1", "X_2"]


@pytest.mark.parametrize("made", [target, reference_target])
@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_a_session_serves_every_size(made, rows):
    """Batches of different sizes go through one model, and each row is normalised."""
    binding = binding_of(made, "layer_norm")
    x = np.tile(np.array([1.0, 3.0]), (rows, 1))
    inputs = {"x": x, "gamma": None, "beta": np.array([0.0, 1.0])}
    y = made().session(binding).start(inputs, {**SETTINGS, "eps": 3.0}).outputs()["y"]
    np.testing.assert_array_equal(y, np.tile([-0.5, 1.5], (rows, 1)))


@pytest.mark.parametrize("made", [target, reference_target])
@pytest.mark.parametrize("channel_axis", [1, -1])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_has_its_channels_on_any_axis(made, channel_axis, training):
    """The channel axis moves to 1 and back, and the running statistics change only in training."""
    binding = binding_of(made, "batch_norm")
    x = np.array([[[1.0, 5.0]], [[3.0, 5.0]]])
    channels = x.shape[channel_axis]
    inputs = {
        "x": x,
        "gamma": None,
        "beta": None,
        "running_mean": np.full(channels, 1.0),
        "running_var": np.full(channels, 4.0),
    }
    settings = {"eps": 0.0, "momentum": 0.5, "training": training, "channel_axis": channel_axis}
    if training and channel_axis == -1:
        settings["eps"] = 3.0
    out = made().session(binding).start(inputs, settings).outputs()
    assert out["y"].shape == x.shape
    if not training:
        np.testing.assert_array_equal(out["y"], (x - 1.0) / 2.0)
        np.testing.assert_array_equal(out["new_running_mean"], inputs["running_mean"])
    elif channel_axis == -1:
        np.testing.assert_array_equal(out["y"], [[[-0.5, 0.0]], [[0.5, 0.0]]])
        np.testing.assert_array_equal(out["new_running_mean"], [1.5, 3.0])
        np.testing.assert_array_equal(out["new_running_var"], [2.5, 2.0])


@pytest.mark.parametrize("made", [target, reference_target])
@pytest.mark.parametrize("channel_axis", [1, -1])
def test_group_norm_has_consecutive_channels_on_any_axis(made, channel_axis):
    """Two groups of two channels each, and the gain of each channel."""
    x = np.array([[[1.0], [3.0], [2.0], [6.0]]])
    inputs = {"x": np.moveaxis(x, 1, channel_axis), "gamma": np.array([1.0, 2.0, 3.0, 4.0]), "beta": None}
    settings = {"eps": 0.0, "groups": 2, "channel_axis": channel_axis}
    y = made().session(binding_of(made, "group_norm")).start(inputs, settings).outputs()["y"]
    assert np.moveaxis(y, channel_axis, 1).ravel().tolist() == [-1.0, 2.0, -3.0, 4.0]


@pytest.mark.parametrize("made", [target, reference_target])
def test_rms_norm_takes_the_last_axes_together(made):
    """1 and 7 have a mean square of 25, over one axis or two."""
    x = np.array([[[1.0], [7.0]]])
    inputs = {"x": x, "gamma": np.array([[1.0], [2.0]])}
    y = made().session(binding_of(made, "rms_norm")).start(inputs, {"eps": 0.0, "axes": (-2, -1)}).outputs()["y"]
    np.testing.assert_allclose(y.ravel(), [0.2, 2.8], rtol=1e-15)


def test_an_own_function_takes_numpy_arrays(write):
    """A function for ONNX gets arrays, and has the gradients defined next to it."""
    path = write(
        """
        import onnx

        def layer_norm(x, gamma, beta, *, eps, axes):
            assert type(x).__name__ == "ndarray"
            return x
        """
    )
    found = resolve(f"{path}:layer_norm")
    assert (found.framework, found.bridge.name) == ("onnx", "onnx")
    inputs = {"x": np.ones((2, 3)), "gamma": None, "beta": None}
    evaluation = found.session(found.bindings[0]).start(inputs, SETTINGS)
    np.testing.assert_array_equal(evaluation.outputs()["y"], inputs["x"])
