"""Mistakes of ONNX and its evaluators, pinned in their own terms: once one is fixed, these tests say so."""

from __future__ import annotations

import ml_dtypes
import mpmath
import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from normspec.adapters.onnx import reference_target, target
from normspec.spec.errors import TargetRaised

BOTH = pytest.mark.parametrize("made", [target, reference_target])


def batch_norm(made, x, *, dtype, parameters=None, gamma=1.0, mean=0.0, variance=1.0, eps=1e-5, momentum=0.1):
    """The outputs of one training step on one channel."""
    parameters = dtype if parameters is None else parameters
    inputs = {
        "x": np.array(x, dtype).reshape(-1, 1),
        "gamma": np.array([gamma], parameters),
        "beta": np.zeros(1, parameters),
        "running_mean": np.array([mean], parameters),
        "running_var": np.array([variance], parameters),
    }
    settings = {"eps": eps, "momentum": momentum, "training": True, "channel_axis": 1}
    return made().session(binding_of(made, "batch_norm")).start(inputs, settings).outputs()


def binding_of(made, operator):
    """The binding of an operator."""
    (found,) = (b for b in made().bindings if b.operator == operator)
    return found


@BOTH
def test_momentum_is_a_float32(made):
    """With a running mean of 1 and a batch of zeros, momentum 0.9 leaves the float32 next to 0.9, not 0.9."""
    got = batch_norm(made, [0.0, 0.0], dtype=np.float64, mean=1.0, variance=1.0)
    exact = 1 - mpmath.mpf(0.1)
    for name in ("new_running_mean", "new_running_var"):
        assert got[name][0] == float(np.float32(0.9))
        assert abs(mpmath.mpf(float(got[name][0])) - exact) / exact > mpmath.mpf(2) ** -26
    assert "BN-S1" in {one.requirement for one in binding_of(made, "batch_norm").known_violations}


def reference(operator, inputs, outputs, **attributes):
    """onnx.reference on one node, without anything of normspec's."""
    kinds = {"float16": TensorProto.FLOAT16, "float32": TensorProto.FLOAT}
    made = [helper.make_tensor_value_info(name, kinds[a.dtype.name], a.shape) for name, a in inputs.items()]
    out = [helper.make_tensor_value_info(name, kinds[dtype], None) for name, dtype in outputs.items()]
    node = helper.make_node(operator, list(inputs), list(outputs), **attributes)
    graph = helper.make_graph([node], "g", made, out)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return ReferenceEvaluator(made).run(None, inputs)


def test_the_reference_squares_in_16_bits():
    """LayerNormalization of (256, -256) in float16 is zero, since squares overflow: stash_type 1 is not obeyed."""
    x = np.array([[256.0, -256.0]], np.float16)
    inputs = {"X": x, "S": np.ones(2, np.float16)}
    with np.errstate(over="ignore"):
        (y,) = reference("LayerNormalization", inputs, {"Y": "float16"}, stash_type=1)
    assert y.tolist() == [[0.0, 0.0]]
    # In float32, which stash_type asks for, the variance is 65536 and the result 1 and -1.
    wide = {name: array.astype(np.float32) for name, array in inputs.items()}
    (y,) = reference("LayerNormalization", wide, {"Y": "float32"}, stash_type=1)
    np.testing.assert_allclose(y, [[1.0, -1.0]], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_the_reference_gives_running_statistics_the_dtype_of_x(dtype):
    """With 16-bit x and float32 statistics the new statistics are of 16 bits, where the operator says float32."""
    got = batch_norm(reference_target, [1.0, 2.0], dtype=dtype, parameters=np.float32, mean=1.0 + 2.0**-20)
    assert got["new_running_mean"].dtype == dtype
    assert "CM-D3" in {one.requirement for one in binding_of(reference_target, "batch_norm").known_violations}


def test_the_runtime_gives_running_statistics_their_own_dtype():
    """ONNX Runtime returns the same in float32."""
    got = batch_norm(target, [1.0, 2.0], dtype=np.float16, parameters=np.float32, mean=1.0 + 2.0**-20)
    assert got["new_running_mean"].dtype == np.float32


def group_norm(made, x):
    """GroupNormalization of one group without parameters, eps 1e-3."""
    inputs = {"x": np.array(x, np.float32), "gamma": None, "beta": None}
    settings = {"eps": 1e-3, "groups": 1, "channel_axis": 1}
    return made().session(binding_of(made, "group_norm")).start(inputs, settings).outputs()["y"]


def test_the_variance_of_group_norm_is_a_difference_that_may_be_negative():
    """For 39,996 and 39,997 it is -128 in the reference, and should be 1/4; y is NaN."""
    y = group_norm(reference_target, [[[39996.0], [39997.0]]])
    assert np.isnan(y).all()
    x = np.array([39996.0, 39997.0], np.float32)
    assert (x * x).mean() - x.mean() ** 2 == -128
    found = [one for one in binding_of(reference_target, "group_norm").known_violations if one.requirement == "GN-F1"]
    assert [one.failures for one in found] == [("nan",)]


@BOTH
def test_group_norm_of_no_samples_raises(made):
    """The shape (0, C, -1) can be given to no empty array."""
    with pytest.raises(TargetRaised):
        group_norm(made, np.zeros((0, 2, 3)))


@BOTH
def test_the_first_stage_of_rms_norm_in_16_bits(made):
    """The square of 256 overflows float16: the runtime computes in float32, the reference ignores stash_type."""
    x = np.array([[256.0, 0.0, 0.0, 0.0]], np.float16)
    settings = {"eps": 0.0, "axes": (-1,)}
    with np.errstate(over="ignore"):
        y = made().session(binding_of(made, "rms_norm")).start({"x": x, "gamma": None}, settings).outputs()["y"]
    assert y[0, 0] == (2.0 if made is target else 0.0)
