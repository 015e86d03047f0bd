"""Parts on JAX arrays: against those on NumPy arrays, whose derivatives are written out."""

from __future__ import annotations

import jax
import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.errors import PartRaised
from normspec.adapters.jax import BRIDGE as JAX
from normspec.adapters.numpy import BRIDGE as NUMPY
from normspec.adapters.part import Part
from normspec.adapters.realise import realise

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
    """One part, with arrays for all that it reads, in NumPy and in JAX."""

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

    def jax(self, arrays):
        return [JAX.tensor(array, "contiguous", "cpu") for array in arrays]

    def call(self, *tensors):
        """The value, as a function of what is handed and of the leaves that have gradients."""
        count = len(self.x)
        leaves = dict(zip(self.leaves, self.jax(self.leaves.values()), strict=True))
        leaves.update(zip(self.moved, tensors[count:], strict=True))
        return realise(self.part, leaves, JAX, memory={})(self.hand(tensors[:count]))


def _close(got, expected, dtype, what):
    got = JAX.array(got, what)
    assert got.dtype == expected.dtype == dtype, what
    # JAX rounds every operation to 16 bits: sums of a dozen products of values up to 8.
    tolerance = 32 * float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(
        got.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance, err_msg=what
    )


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(kind, np.float64) for kind in PARTS]
    + [(kind, ml_dtypes.bfloat16) for kind in ("tanh_linear", "relu", "convolution", "fuse_weighted")],
)
def test_transformations_agree_with_the_written_derivatives(kind, dtype):
    """Value, gradients, tangent and second order by JAX are those of the NumPy objects."""
    p = _Problem(kind, dtype)
    arrays = [*p.x, *(p.leaves[name] for name in p.moved)]
    tensors, (g,) = p.jax(arrays), p.jax([p.g])
    with JAX.guarded(0, gradients=True):
        y, found = JAX.pullback(p.call, tensors, g)
    _close(y, p.numpy()(p.hand(p.x)), dtype, "y")
    notes = {}
    pulled = p.numpy(notes=notes).vjp(p.hand(p.x), p.g)
    expected = [*(pulled if p.many else [pulled]), *(notes.get(name) for name in p.moved)]
    for got, exact in zip(found, expected, strict=True):
        _close(got, np.zeros(got.shape, dtype) if exact is None else exact, dtype, "gradient")

    with JAX.guarded(0, gradients=True):
        tangent = JAX.jvp(p.call, tensors, p.jax([*p.tx, *p.moved.values()]))
    _close(tangent, p.numpy(tangents=p.moved).jvp(p.hand(p.x), p.hand(p.tx)), dtype, "tangent")

    x_bar, g_bar = p.numpy().vjp_vjp(p.hand(p.x), p.g, p.hand(p.a))
    rest = tensors[len(p.x) :]
    second = p.jax(p.a)
    with JAX.guarded(0, gradients=True):
        bars = JAX.vjp_vjp(lambda *xs: p.call(*xs, *rest), tensors[: len(p.x)], g, second)
    for got, exact in zip(bars, [*(x_bar if p.many else [x_bar]), g_bar], strict=True):
        _close(got, exact, dtype, "second order")


def _made(part, **leaves):
    return realise(part, leaves, JAX, memory={})


def test_what_is_handed_back_is_what_was_handed():
    """identity, view and leaf return the array itself: arrays do not change, and nobody can tell."""
    x, h = jax.numpy.ones(SHAPE), jax.numpy.ones(SHAPE)
    assert _made(Part("identity"))(x) is x
    assert _made(Part("view"))(x) is x
    assert _made(Part("leaf", ("h",)), h=h)(x) is h


def test_zero_is_zero_where_x_is_not_finite():
    """zero returns zeros for NaN and infinity too, and so does a shift past the end."""
    x = jax.numpy.array([[float("nan")], [float("inf")]])
    assert (_made(Part("zero"))(x) == 0).all()
    assert (JAX.shift(x, 7, 0) == 0).all()
    assert (JAX.shift(x, -7, 0) == 0).all()


def test_relu_keeps_a_nan_and_has_no_slope_at_zero():
    """A NaN passes; at zero the gradient is zero."""
    x = jax.numpy.array([float("nan"), -1.0, 0.0, 2.0])
    y, (dx,) = JAX.pullback(JAX.relu, [x], jax.numpy.ones(4))
    np.testing.assert_array_equal(y, [np.nan, 0, 0, 2])
    np.testing.assert_array_equal(dx[1:], [0, 0, 1])


def test_a_buffer_is_nothing_but_its_kind():
    """A part with a buffer keeps no array from one call to the next, and no tracer."""
    part, memory = Part("buffered", inner=(Part("square"),)), {}
    for value in (3.0, 5.0):
        x = jax.numpy.full(SHAPE, value)
        y, (dx,) = JAX.pullback(realise(part, {}, JAX, memory=memory), [x], jax.numpy.ones(SHAPE))
        assert (y == value**2).all()
        assert (dx == 2 * value).all()
    ((_, held),) = memory.values()
    assert not isinstance(held, jax.Array)


def test_replayed_replays_a_cotangent():
    """The value is the first leaf, whose gradient is the cotangent; the cotangent of x is the second leaf."""
    x, h, c, g = (jax.numpy.full(SHAPE, value) for value in (float("nan"), 2.0, 3.0, 5.0))
    y, (dx, dh) = JAX.pullback(lambda x, h: _made(Part("replayed", ("h", "c")), h=h, c=c)(x), [x, h], g)
    assert (y == 2).all()
    assert (dx == 3).all()
    assert (dh == 5).all()


def test_raising_raises():
    """A raising part raises PartRaised, through a transformation too."""
    for call in (_made(Part("raising")), jax.jit(_made(Part("raising")))):
        with pytest.raises(PartRaised):
            call(jax.numpy.ones(2))
