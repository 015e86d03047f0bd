"""Parts on JAX arrays, compared with those on NumPy arrays, whose derivatives are written out."""

from __future__ import annotations

import jax
import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.build_parts import build_part
from normspec.adapters.jax import BRIDGE as JAX
from normspec.spec.errors import PartRaised
from normspec.spec.parts import Part

from ..part_problems import PARTS, SHAPE, PartProblem


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(kind, np.float64) for kind in PARTS]
    + [(kind, ml_dtypes.bfloat16) for kind in ("tanh_linear", "relu", "convolution", "fuse_weighted")],
)
def test_transformations_agree_with_the_written_derivatives(kind, dtype):
    """Value, gradients, tangent and second order by JAX are those of the NumPy objects."""
    p = PartProblem(kind, dtype, JAX)
    tensors, (g,) = p.tensors(p.arrays), p.tensors([p.g])
    with JAX.guarded(0, gradients=True):
        y, found = JAX.pullback(p.call, tensors, g)
    p.close(y, p.value(), "y")
    for got, exact in zip(found, p.gradients(), strict=True):
        p.close(got, exact, "gradient")

    with JAX.guarded(0, gradients=True):
        tangent = JAX.jvp(p.call, tensors, p.tensors([*p.tx, *p.moved.values()]))
    p.close(tangent, p.tangent(), "tangent")

    xs, rest, second = tensors[: len(p.x)], tensors[len(p.x) :], p.tensors(p.a)
    with JAX.guarded(0, gradients=True):
        bars = JAX.vjp_vjp(lambda *moved: p.call(*moved, *rest), xs, g, second)
    for got, exact in zip(bars, p.second(), strict=True):
        p.close(got, exact, "second order")


def _made(part, **leaves):
    return build_part(part, leaves, JAX, memory={})


def test_what_is_handed_back_is_what_was_handed():
    """identity, view and leaf return the array itself: arrays are immutable, so no caller can notice."""
    x, h = jax.numpy.ones(SHAPE), jax.numpy.ones(SHAPE)
    assert _made(Part("identity"))(x) is x
    assert _made(Part("view"))(x) is x
    assert _made(Part("leaf", ("h",)), h=h)(x) is h


def test_zero_is_zero_where_x_is_not_finite():
    """zero returns zeros for NaN and infinity too, and so does a shift past the end."""
    x = jax.numpy.array([[float("nan")], [float("inf")]])
    assert (_made(Part("zero"))(x) == 0).all()
    assert (JAX.functions.shift(x, 7, 0) == 0).all()
    assert (JAX.functions.shift(x, -7, 0) == 0).all()


def test_relu_keeps_a_nan_and_has_no_slope_at_zero():
    """A NaN passes; at zero the gradient is zero."""
    x = jax.numpy.array([float("nan"), -1.0, 0.0, 2.0])
    y, (dx,) = JAX.pullback(JAX.functions.relu, [x], jax.numpy.ones(4))
    np.testing.assert_array_equal(y, [np.nan, 0, 0, 2])
    np.testing.assert_array_equal(dx[1:], [0, 0, 1])


def test_a_buffer_is_nothing_but_its_kind():
    """A part with a buffer keeps no array from one call to the next, and no tracer."""
    part, memory = Part("buffered", inner=(Part("square"),)), {}
    for value in (3.0, 5.0):
        x = jax.numpy.full(SHAPE, value)
        y, (dx,) = JAX.pullback(build_part(part, {}, JAX, memory=memory), [x], jax.numpy.ones(SHAPE))
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
