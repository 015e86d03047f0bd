"""Parts on TensorFlow tensors, compared with those on NumPy arrays, whose derivatives are written out."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from normspec.adapters.build_parts import build_part
from normspec.adapters.tensorflow import BRIDGE as TENSORFLOW
from normspec.spec.errors import PartRaised
from normspec.spec.parts import Part

from ..part_problems import PARTS, SHAPE, PartProblem


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("kind", list(PARTS))
def test_tapes_agree_with_the_written_derivatives(kind, dtype):
    """Value, gradients, tangent and second order by tapes are those of the NumPy objects."""
    p = PartProblem(kind, dtype, TENSORFLOW)
    tensors, (g,) = p.tensors(p.arrays), p.tensors([p.g])
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        y = p.call(*tensors)
    p.close(y, p.value(), "y")
    for got, exact in zip(tape.gradient(y, tensors, output_gradients=g), p.gradients(), strict=True):
        p.close(got, exact, "gradient")

    tangent = TENSORFLOW.jvp(p.call, tensors, p.tensors([*p.tx, *p.moved.values()]))
    p.close(tangent, p.tangent(), "tangent")

    if kind == "leaf":
        return  # depends on no x
    rest = tensors[len(p.x) :]
    second = TENSORFLOW.vjp_vjp(lambda *moved: p.call(*moved, *rest), p.tensors(p.x), g, p.tensors(p.a))
    for got, exact in zip(second, p.second(), strict=True):
        p.close(got, exact, "second order")


@pytest.mark.parametrize("kind", list(PARTS))
@pytest.mark.parametrize("shapes", ["known", "unknown"])
def test_parts_are_traced(kind, shapes):
    """Within a tf.function, with known shapes or unknown, a part computes the same as outside."""
    p = PartProblem(kind, np.float32, TENSORFLOW)
    tensors = p.tensors(p.arrays)
    specs = [tf.TensorSpec([None] * t.shape.rank if shapes == "unknown" else t.shape, t.dtype) for t in tensors]
    traced = tf.function(p.call, input_signature=specs)
    np.testing.assert_allclose(traced(*tensors), p.call(*tensors), rtol=1e-5, atol=1e-6)


def test_matrices_are_multiplied_by_what_has_any_rank():
    """linear takes an x of one axis, and one of no rows."""
    w = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert TENSORFLOW.functions.matmul(tf.constant([1.0, 1.0]), w).numpy().tolist() == [4.0, 6.0]
    assert TENSORFLOW.functions.matmul(tf.zeros((0, 2)), w).shape == (0, 2)


def test_what_is_handed_back_is_what_was_handed():
    """identity returns x itself, and view and leaf another tensor of the same value."""
    x, h = tf.ones(SHAPE), tf.ones(SHAPE)
    assert build_part(Part("identity"), {}, TENSORFLOW, memory={})(x) is x
    assert build_part(Part("view"), {}, TENSORFLOW, memory={})(x) is not x
    assert build_part(Part("leaf", ("h",)), {"h": h}, TENSORFLOW, memory={})(x) is not h


def test_zero_is_zero_where_x_is_not_finite():
    """zero returns zeros for NaN and infinity too, as does a shift past the end; relu keeps a NaN."""
    x = tf.constant([[float("nan")], [float("inf")]])
    assert not build_part(Part("zero"), {}, TENSORFLOW, memory={})(x).numpy().any()
    assert not TENSORFLOW.functions.shift(x, 7, 0).numpy().any()
    assert not TENSORFLOW.functions.shift(x, -7, 0).numpy().any()
    assert np.isnan(TENSORFLOW.functions.relu(x).numpy()).tolist() == [[True], [False]]


def test_replayed_replays_a_cotangent():
    """The value is the first leaf, whose gradient is the cotangent; the cotangent of x is the second leaf."""
    x, h = tf.fill(SHAPE, float("nan")), tf.fill(SHAPE, 2.0)
    tensors = {"h": h, "c": tf.fill(SHAPE, 3.0)}
    with tf.GradientTape() as tape:
        tape.watch([x, h])
        y = build_part(Part("replayed", ("h", "c")), tensors, TENSORFLOW, memory={})(x)
    assert (y.numpy() == 2).all()
    dx, dh = tape.gradient(y, [x, h], output_gradients=tf.fill(SHAPE, 5.0))
    assert (dx.numpy() == 3).all()
    assert (dh.numpy() == 5).all()


def test_raising_raises():
    """A raising part raises PartRaised, within a tf.function too."""
    part = build_part(Part("raising"), {}, TENSORFLOW, memory={})
    for call in (part, tf.function(part, autograph=False)):
        with pytest.raises(PartRaised):
            call(tf.ones(2))
