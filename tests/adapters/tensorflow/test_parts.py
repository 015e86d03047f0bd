"""Parts on TensorFlow tensors: against those on NumPy arrays, whose derivatives are written out."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from normspec.adapters.errors import PartRaised
from normspec.adapters.numpy import BRIDGE as NUMPY
from normspec.adapters.part import Part
from normspec.adapters.realise import realise
from normspec.adapters.tensorflow import BRIDGE as TENSORFLOW

N = 4
SHAPE = (3, 5, N)
SHAPES = {"w": (N, N), "k": (3, N), "h": SHAPE, "mask": SHAPE, "a": (3, N)}
BENT = Part("tanh_linear", ("w",))
PARTS = {
    "identity": Part("identity"),
    "view": Part("view"),
    "zero": Part("zero"),
    "leaf": Part("leaf", ("h",)),
    "negated": Part("negated"),
    "scaled": Part("scaled", number=0.25),
    "linear": Part("linear", ("w",)),
    "tanh_linear": BENT,
    "square": Part("square"),
    "relu": Part("relu"),
    "tanh": Part("tanh"),
    "convolution": Part("convolution", ("k",), 2.0),
    "cascade": Part("cascade", inner=(BENT, Part("square"), BENT)),
    "dropout": Part("dropout", ("mask",), inner=(BENT,)),
    "counted": Part("counted", inner=(BENT,)),
    "buffered": Part("buffered", inner=(BENT,)),
    "misshapen": Part("misshapen", inner=(BENT,)),
    "broadcasting": Part("broadcasting", inner=(BENT,)),
    "fuse_sum": Part("fuse_sum"),
    "fuse_product": Part("fuse_product"),
    "fuse_weighted": Part("fuse_weighted", ("a",)),
    "fuse_coupled": Part("fuse_coupled"),
}


class _Problem:
    """One part, with arrays for all that it reads, in NumPy and in TensorFlow."""

    def __init__(self, kind, dtype):
        rng = np.random.Generator(np.random.Philox(11))

        def draw(shape):
            return rng.normal(0, 0.7, shape).astype(dtype)

        self.part = PARTS[kind]
        self.many = kind.startswith("fuse")
        count = 3 if self.many else 1
        self.x, self.tx, self.a = ([draw(SHAPE) for _ in range(count)] for _ in range(3))
        names = list(dict.fromkeys(self.part.all_leaves()))
        self.leaves = {name: draw(SHAPES[name]) for name in names}
        self.moved = {name: draw(SHAPES[name]) for name in names if name != "mask"}
        if "mask" in self.leaves:
            self.leaves["mask"] = (2 * rng.integers(0, 2, SHAPE)).astype(dtype)
        self.g = draw(self.numpy()(self.hand(self.x)).shape)

    def hand(self, tensors):
        return list(tensors) if self.many else tensors[0]

    def numpy(self, **more):
        return realise(self.part, self.leaves, NUMPY, memory={}, **more)

    def call(self, *tensors):
        """The value, as a function of what is handed and of the leaves that have gradients."""
        count = len(self.x)
        leaves = dict(zip(self.leaves, _tensors(self.leaves.values()), strict=True))
        leaves.update(zip(self.moved, tensors[count:], strict=True))
        return realise(self.part, leaves, TENSORFLOW, memory={})(self.hand(tensors[:count]))


def _tensors(arrays):
    return [TENSORFLOW.tensor(array, "contiguous", "cpu") for array in arrays]


def _close(got, expected, dtype, what):
    got = np.zeros_like(expected) if got is None else TENSORFLOW.array(got, what)
    assert got.dtype == expected.dtype == dtype, what
    # TensorFlow rounds every operation to 16 bits: sums of a dozen products of values up to 8.
    tolerance = 32 * float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(
        got.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance, err_msg=what
    )


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("kind", list(PARTS))
def test_tapes_agree_with_the_written_derivatives(kind, dtype):
    """Value, gradients, tangent and second order by tapes are those of the NumPy objects."""
    p = _Problem(kind, dtype)
    inputs = [*p.x, *(p.leaves[name] for name in p.moved)]
    (g,) = _tensors([p.g])
    tensors = _tensors(inputs)
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        y = p.call(*tensors)
    _close(y, p.numpy()(p.hand(p.x)), dtype, "y")

    notes = {}
    pulled = p.numpy(notes=notes).vjp(p.hand(p.x), p.g)
    expected = [
        *(pulled if p.many else [pulled]),
        *(notes.get(name, np.zeros_like(p.leaves[name])) for name in p.moved),
    ]
    for got, exact in zip(tape.gradient(y, tensors, output_gradients=g), expected, strict=True):
        _close(got, exact, dtype, "gradient")

    tangent = TENSORFLOW.jvp(p.call, _tensors(inputs), _tensors([*p.tx, *p.moved.values()]))
    _close(tangent, p.numpy(tangents=p.moved).jvp(p.hand(p.x), p.hand(p.tx)), dtype, "tangent")

    if kind == "leaf":
        return  # depends on no x
    leaves = _tensors([p.leaves[name] for name in p.moved])
    x_bar, g_bar = p.numpy().vjp_vjp(p.hand(p.x), p.g, p.hand(p.a))
    second = TENSORFLOW.vjp_vjp(lambda *x: p.call(*x, *leaves), _tensors(p.x), g, _tensors(p.a))
    for got, exact in zip(second, [*(x_bar if p.many else [x_bar]), g_bar], strict=True):
        _close(got, exact, dtype, "second order")


@pytest.mark.parametrize("kind", list(PARTS))
@pytest.mark.parametrize("shapes", ["known", "unknown"])
def test_parts_are_traced(kind, shapes):
    """Within a tf.function, its shapes known or not, a part computes what it does outside."""
    p = _Problem(kind, np.float32)
    tensors = _tensors([*p.x, *(p.leaves[name] for name in p.moved)])
    specs = [tf.TensorSpec([None] * t.shape.rank if shapes == "unknown" else t.shape, t.dtype) for t in tensors]
    traced = tf.function(p.call, input_signature=specs)
    np.testing.assert_allclose(traced(*tensors), p.call(*tensors), rtol=1e-5, atol=1e-6)


def test_matrices_are_multiplied_by_what_has_any_rank():
    """linear takes an x of one axis, and one of no rows."""
    w = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert TENSORFLOW.matmul(tf.constant([1.0, 1.0]), w).numpy().tolist() == [4.0, 6.0]
    assert TENSORFLOW.matmul(tf.zeros((0, 2)), w).shape == (0, 2)


def test_what_is_handed_back_is_what_was_handed():
    """identity returns x itself, and view and leaf another tensor of the same value."""
    x, h = tf.ones(SHAPE), tf.ones(SHAPE)
    assert realise(Part("identity"), {}, TENSORFLOW, memory={})(x) is x
    assert realise(Part("view"), {}, TENSORFLOW, memory={})(x) is not x
    assert realise(Part("leaf", ("h",)), {"h": h}, TENSORFLOW, memory={})(x) is not h


def test_zero_is_zero_where_x_is_not_finite():
    """zero returns zeros for NaN and infinity too, as does a shift past the end; relu keeps a NaN."""
    x = tf.constant([[float("nan")], [float("inf")]])
    assert not realise(Part("zero"), {}, TENSORFLOW, memory={})(x).numpy().any()
    assert not TENSORFLOW.shift(x, 7, 0).numpy().any()
    assert not TENSORFLOW.shift(x, -7, 0).numpy().any()
    assert np.isnan(TENSORFLOW.relu(x).numpy()).tolist() == [[True], [False]]


def test_replayed_replays_a_cotangent():
    """The value is the first leaf, whose gradient is the cotangent; the cotangent of x is the second leaf."""
    x, h = tf.fill(SHAPE, float("nan")), tf.fill(SHAPE, 2.0)
    tensors = {"h": h, "c": tf.fill(SHAPE, 3.0)}
    with tf.GradientTape() as tape:
        tape.watch([x, h])
        y = realise(Part("replayed", ("h", "c")), tensors, TENSORFLOW, memory={})(x)
    assert (y.numpy() == 2).all()
    dx, dh = tape.gradient(y, [x, h], output_gradients=tf.fill(SHAPE, 5.0))
    assert (dx.numpy() == 3).all()
    assert (dh.numpy() == 5).all()


def test_raising_raises():
    """A raising part raises PartRaised, within a tf.function too."""
    part = realise(Part("raising"), {}, TENSORFLOW, memory={})
    for call in (part, tf.function(part, autograph=False)):
        with pytest.raises(PartRaised):
            call(tf.ones(2))
