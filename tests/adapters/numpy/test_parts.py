"""Parts on NumPy arrays: their values and their written-out derivatives."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.build_parts import build_part
from normspec.adapters.numpy import BRIDGE
from normspec.adapters.numpy.operators.post_norm import PostNorm
from normspec.adapters.operation import Operation
from normspec.spec.errors import PartRaised, Unsupported
from normspec.spec.operators import OPERATORS
from normspec.spec.parts import KINDS, Part

N = 4
SHAPE = (3, 5, N)
LEAVES = {
    "branch.w": (N, N),
    "branch.v": (N, N),
    "branch.k": (3, N),
    "branch.h": SHAPE,
    "branch.mask": SHAPE,
    "fuse.a": (3, N),
}
LINEAR, BENT = Part("linear", ("branch.w",)), Part("tanh_linear", ("branch.v",))

#: Differentiable parts of one tensor, and of a list of three.
SINGLE = {
    "identity": Part("identity"),
    "view": Part("view"),
    "zero": Part("zero"),
    "leaf": Part("leaf", ("branch.h",)),
    "negated": Part("negated"),
    "scaled": Part("scaled", number=0.25),
    "linear": LINEAR,
    "tanh_linear": BENT,
    "square": Part("square"),
    "relu": Part("relu"),
    "tanh": Part("tanh"),
    "convolution": Part("convolution", ("branch.k",), 2.0),
    "causal": Part("causal", ("branch.k",), 2.0),
    "cascade": Part("cascade", inner=(BENT, Part("square"), LINEAR, Part("tanh"))),
    "dropout": Part("dropout", ("branch.mask",), inner=(BENT,)),
    "counted": Part("counted", inner=(BENT,)),
    "buffered": Part("buffered", inner=(BENT,)),
    "broadcasting": Part("broadcasting", inner=(BENT,)),
    "transposed": Part("transposed", inner=(BENT,)),
    "strided": Part("strided", inner=(BENT,)),
    "common": Part("common", inner=(BENT,)),
    "misshapen": Part("misshapen", inner=(BENT,)),
    "flattened": Part("flattened", inner=(BENT,)),
}
FUSED = {
    "fuse_sum": Part("fuse_sum"),
    "fuse_product": Part("fuse_product"),
    "fuse_weighted": Part("fuse_weighted", ("fuse.a",)),
    "fuse_coupled": Part("fuse_coupled"),
    "fuse_coupled, counted": Part("counted", inner=(Part("fuse_coupled"),)),
    "fuse_coupled, then tanh": Part("cascade", inner=(Part("fuse_coupled"), Part("tanh"))),
}


def _rng(seed):
    return np.random.Generator(np.random.Philox(seed))


def _drawn(seed, dtype=np.float64):
    rng = _rng(seed)
    leaves = {name: rng.normal(0, 0.6, shape).astype(dtype) for name, shape in LEAVES.items()}
    leaves["branch.mask"] = (2.0 * rng.integers(0, 2, SHAPE)).astype(dtype)
    return leaves


def _made(part, tensors, memory=None, **more):
    tensors = {name: tensors[name] for name in part.all_leaves()}
    return build_part(part, tensors, BRIDGE, memory={} if memory is None else memory, **more)


def _point(kind, seed):
    """The part's arguments as a list of arrays, and how to pass them."""
    rng = _rng(seed)
    if kind in FUSED:
        return [rng.normal(size=SHAPE) for _ in range(3)], list
    return [rng.normal(size=SHAPE)], lambda arrays: arrays[0]


def _dot(left, right):
    return sum(float((a * b).sum()) for a, b in zip(left, right, strict=True))


def _listed(value):
    return value if isinstance(value, list) else [value]


def test_every_differentiable_kind_is_tested():
    """Every kind is in the lists above, except those without a derivative of their own."""
    kinds = {kind for part in (*SINGLE.values(), *FUSED.values()) for kind in (part.kind,)}
    assert set(KINDS) - kinds == {"raising", "replayed", "itself"}


@pytest.mark.parametrize("kind", [*SINGLE, *FUSED])
def test_derivatives_agree_with_finite_differences(kind):
    """jvp is the slope of the value, vjp its transpose, vjp_vjp the transpose of the slope of vjp."""
    part = {**SINGLE, **FUSED}[kind]
    x, hand = _point(kind, 1)
    leaves, h = _drawn(2), 1e-6
    along, leaves_along = _point(kind, 3)[0], {**_drawn(4), "branch.mask": np.zeros(SHAPE)}

    def moved(t):
        return hand([a + t * b for a, b in zip(x, along, strict=True)])

    def of(t):
        return {name: leaf + t * leaves_along[name] for name, leaf in leaves.items()}

    def value(t):
        return _made(part, of(t))(moved(t)).copy()

    slope = (value(h) - value(-h)) / (2 * h)
    tangent = _made(part, leaves, tangents=leaves_along).jvp(hand(x), hand(along))
    np.testing.assert_allclose(tangent, slope, atol=1e-7)

    g, notes = _rng(5).normal(size=slope.shape), {}
    pulled = _listed(_made(part, leaves, notes=notes).vjp(hand(x), g))
    names = [name for name in part.all_leaves() if name != "branch.mask"]
    total = _dot(pulled, along) + _dot([notes[name] for name in names], [leaves_along[name] for name in names])
    assert total == pytest.approx(float((slope * g).sum()), abs=1e-7)

    a, g_along = _point(kind, 6)[0], _rng(7).normal(size=slope.shape)

    def paired(t):
        notes.clear()
        return _dot(_listed(_made(part, leaves).vjp(moved(t), g + t * g_along)), a)

    x_bar, g_bar = _made(part, leaves).vjp_vjp(hand(x), g, hand(a))
    bent = (paired(h) - paired(-h)) / (2 * h)
    assert _dot(_listed(x_bar), along) + float((g_bar * g_along).sum()) == pytest.approx(bent, abs=1e-6)


FORMULAS = {
    "leaf": lambda x, t: t["branch.h"],
    "negated": lambda x, t: -x,
    "scaled": lambda x, t: x / 4,
    "linear": lambda x, t: np.einsum("abi,ij->abj", x, t["branch.w"]),
    "tanh_linear": lambda x, t: np.tanh(np.einsum("abi,ij->abj", x, t["branch.v"])),
    "square": lambda x, t: x**2,
    "relu": lambda x, t: np.where(x > 0, x, 0),
    "tanh": lambda x, t: np.tanh(x),
    "dropout": lambda x, t: FORMULAS["tanh_linear"](x, t) * t["branch.mask"],
    "zero": lambda x, t: 0 * x,
    "identity": lambda x, t: x,
    "view": lambda x, t: x,
}


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("kind", list(FORMULAS))
def test_values_are_the_formulas(kind, dtype):
    """The value is the formula in float64, except the rounding to x's dtype and a few units below it."""
    x = _rng(8).normal(size=SHAPE).astype(dtype)
    tensors = _drawn(9, dtype)
    y = _made(SINGLE[kind], tensors)(x)
    wide = {name: leaf.astype(np.float64) for name, leaf in tensors.items()}
    assert y.dtype == dtype
    unit = float(ml_dtypes.finfo(dtype).eps)
    # One rounding of a value below 4; in dropout two, the mask's factor being a power of two.
    np.testing.assert_allclose(y.astype(np.float64), FORMULAS[kind](x.astype(np.float64), wide), atol=4 * unit)


def test_a_convolution_reads_neighbours_at_its_dilation():
    """One position that is set appears at itself and two before and after, times each tap; nothing wraps around."""
    x = np.zeros((1, 5, 1))
    x[0, 1, 0] = 1.0
    part = Part("convolution", ("branch.k",), 2.0)
    y = _made(part, {"branch.k": np.array([[3.0], [5.0], [7.0]])})(x)
    np.testing.assert_array_equal(y[0, :, 0], [0, 5, 0, 3, 0])


def test_a_causal_convolution_reads_no_later_position():
    """One position that is set appears at itself, and two and four after; nothing wraps around."""
    x = np.zeros((1, 6, 1))
    x[0, 1, 0] = 1.0
    part = Part("causal", ("branch.k",), 2.0)
    y = _made(part, {"branch.k": np.array([[3.0], [5.0], [7.0]])})(x)
    np.testing.assert_array_equal(y[0, :, 0], [0, 7, 0, 5, 0, 3])


def test_identity_and_view_hand_back_the_memory_of_x():
    """identity returns x itself, view another array on its memory."""
    x = np.ones(SHAPE)
    assert _made(Part("identity"), {})(x) is x
    view = _made(Part("view"), {})(x)
    assert view is not x
    assert np.shares_memory(view, x)


def test_counted_counts_from_when_it_was_built():
    """The first call gives the value, the second its double; another one that is built starts again."""
    x, part = np.ones(SHAPE), Part("counted", inner=(Part("identity"),))
    counted = _made(part, {})
    assert [counted(x)[0, 0, 0], counted(x)[0, 0, 0]] == [1, 2]
    assert _made(part, {})(x)[0, 0, 0] == 1
    # Where derivatives are taken, calling again is allowed.
    again = _made(part, {}, notes={})
    assert [again(x)[0, 0, 0], again(x)[0, 0, 0]] == [1, 1]


def test_buffered_returns_one_buffer():
    """A later call, even of the part built again, overwrites an earlier result; another part does not."""
    memory, part, other = {}, *(Part("buffered", inner=(Part("negated"),)) for _ in range(2))
    first = _made(part, {}, memory)(np.ones(SHAPE))
    assert (first == -1).all()
    second = _made(part, {}, memory)(np.full(SHAPE, 2.0))
    assert second is first
    assert (first == -2).all()
    _made(other, {}, memory)(np.full(SHAPE, 3.0))
    assert (first == -2).all()


def test_buffers_do_not_pile_up():
    """A memory holds some buffers, and lets the oldest go."""
    memory, x = {}, np.ones(2)
    for _ in range(200):
        _made(Part("buffered", inner=(Part("identity"),)), {}, memory)(x)
    assert len(memory) < 100


@pytest.mark.parametrize(("kind", "strides"), [("transposed", (1, 3, 15)), ("strided", (40, 8, 2))])
def test_what_is_laid_out_has_its_strides(kind, strides):
    """The value of such a part, and its cotangent of x, lie in memory as the kind says."""
    part, x = _made(SINGLE[kind], _drawn(1)), np.ones(SHAPE)
    for array in (part(x), part.vjp(x, x)):
        assert array.strides == tuple(array.itemsize * stride for stride in strides)


def test_cut_parts_have_other_shapes():
    """A misshapen part lacks the last feature; a broadcasting one has only the first, a flattened one only one axis."""
    x = np.ones(SHAPE)
    assert _made(SINGLE["misshapen"], _drawn(1))(x).shape == (3, 5, N - 1)
    assert _made(SINGLE["broadcasting"], _drawn(1))(x).shape == (3, 5, 1)
    assert _made(SINGLE["flattened"], _drawn(1))(x).shape == (15 * N,)


POST_NORM = PostNorm().implementation()


def _operation(vjp):
    """post_norm in NumPy, with this vjp."""
    return Operation(OPERATORS["post_norm"], POST_NORM.call, vjp)


ITSELF = Part("itself", ("gamma", "beta"), 0.5, (BENT,))


def test_a_part_that_is_the_operator_calls_it_with_what_is_inside():
    """Its value and its vjp are those of the operator with the inner part, the leaves for parameters, and its eps."""
    rng, leaves, notes, noted = _rng(3), _drawn(1), {}, {}
    leaves |= {"gamma": rng.normal(size=N), "beta": rng.normal(size=N)}
    x, g = rng.normal(size=SHAPE), rng.normal(size=SHAPE)
    part = _made(ITSELF, leaves, notes=notes, operation=_operation(POST_NORM.vjp))
    arguments = -0.5 * x, _made(BENT, leaves, notes=noted), leaves["gamma"], leaves["beta"]
    np.testing.assert_array_equal(part(x), POST_NORM.call(*arguments, eps=0.5))
    dx, dgamma, dbeta = POST_NORM.vjp(*arguments, g, eps=0.5)
    np.testing.assert_array_equal(part.vjp(x, g), -0.5 * dx)
    np.testing.assert_array_equal(notes["gamma"], dgamma)
    np.testing.assert_array_equal(notes["beta"], dbeta)
    np.testing.assert_array_equal(notes["branch.v"], noted["branch.v"])


def test_a_part_that_is_the_operator_has_a_vjp_alone():
    """What is asked of it besides, or of an operator without a vjp, is unsupported."""
    leaves, x = {**_drawn(1), "gamma": np.ones(N), "beta": np.ones(N)}, np.ones(SHAPE)
    part = _made(ITSELF, leaves, operation=_operation(POST_NORM.vjp))
    without = _made(ITSELF, leaves, operation=_operation(None))
    for call in (
        lambda: part.jvp(x, x),
        lambda: part.vjp_vjp(x, x, x),
        lambda: part.jvp_jvp(x, x, x),
        lambda: without.vjp(x, x),
    ):
        with pytest.raises(Unsupported, match="vjp of its own alone"):
            call()


def test_raising_raises():
    """A raising part raises PartRaised for every request."""
    part, x = _made(Part("raising"), {}), np.ones(SHAPE)
    for call in (lambda: part(x), lambda: part.vjp(x, x), lambda: part.jvp(x, x), lambda: part.vjp_vjp(x, x, x)):
        with pytest.raises(PartRaised):
            call()


def test_replayed_replays_a_cotangent():
    """The value is the first leaf, whose gradient is the cotangent; the cotangent of x is the second leaf."""
    x, notes = np.ones(SHAPE), {}
    tensors = {"branch.h": np.full(SHAPE, 2.0), "branch.mask": np.full(SHAPE, 3.0)}
    part = _made(Part("replayed", ("branch.h", "branch.mask")), tensors, notes=notes)
    assert (part(x) == 2).all()
    assert (part.vjp(x, np.full(SHAPE, 5.0)) == 3).all()
    assert (notes["branch.h"] == 5).all()


def test_gradients_of_a_shared_leaf_add_and_are_rounded_once():
    """Each call of vjp adds its gradient: 256 + 1 + 1 is 258 in bfloat16, which two roundings would make 256."""
    notes, part = {}, Part("leaf", ("branch.h",))
    made = [_made(part, {"branch.h": np.zeros(1, ml_dtypes.bfloat16)}, notes=notes) for _ in range(2)]
    for built, g in zip((made[0], made[1], made[1]), (256, 1, 1), strict=True):
        built.vjp(np.zeros(1, ml_dtypes.bfloat16), np.array([g], ml_dtypes.bfloat16))
    assert notes["branch.h"].dtype == ml_dtypes.bfloat16
    assert notes["branch.h"] == 258
