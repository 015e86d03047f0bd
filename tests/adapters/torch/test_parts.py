"""Parts on PyTorch tensors: against those on NumPy arrays, whose derivatives are written out."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from normspec.adapters.errors import PartRaised
from normspec.adapters.numpy import BRIDGE as NUMPY
from normspec.adapters.part import Part
from normspec.adapters.realise import realise
from normspec.adapters.torch import BRIDGE as TORCH

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
    """One part, with arrays for all that it reads, in NumPy and in torch."""

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

    def torch(self, arrays, *, tracked=True):
        return [TORCH.tensor(array, "contiguous", "cpu", tracked=tracked) for array in arrays]

    def call(self, *tensors):
        """The value, as a function of what is handed and of the leaves that have gradients."""
        count = len(self.x)
        leaves = dict(zip(self.leaves, self.torch(self.leaves.values(), tracked=False), strict=True))
        leaves.update(zip(self.moved, tensors[count:], strict=True))
        return realise(self.part, leaves, TORCH, memory={})(self.hand(tensors[:count]))


def _close(got, expected, dtype, what):
    if got is None:
        got = np.zeros_like(expected)
    got = TORCH.array(got, what) if isinstance(got, torch.Tensor) else got
    assert got.dtype == expected.dtype == dtype, what
    # torch rounds every operation to 16 bits: sums of a dozen products of values up to 8.
    tolerance = 32 * float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(
        got.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance, err_msg=what
    )


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("kind", list(PARTS))
def test_autograd_agrees_with_the_written_derivatives(kind, dtype):
    """Value, gradients, tangent and second order by autograd are those of the NumPy objects."""
    p = _Problem(kind, dtype)
    arrays = [*p.x, *(p.leaves[name] for name in p.moved)]
    tensors = p.torch(arrays)
    y = p.call(*tensors)
    _close(y, p.numpy()(p.hand(p.x)), dtype, "y")

    if y.requires_grad:
        found = torch.autograd.grad(y, tensors, p.torch([p.g], tracked=False)[0], allow_unused=True)
        notes = {}
        pulled = p.numpy(notes=notes).vjp(p.hand(p.x), p.g)
        expected = [*(pulled if p.many else [pulled]), *(notes[name] for name in p.moved)]
        for got, exact in zip(found, expected, strict=True):
            _close(got, exact, dtype, "gradient")

    tangents = [*p.tx, *p.moved.values()]
    with TORCH.guarded(0, gradients=True):  # torch's forward mode warns of its own internals
        tangent = TORCH.jvp(p.call, p.torch(arrays, tracked=False), p.torch(tangents, tracked=False))
    _close(tangent, p.numpy(tangents=p.moved).jvp(p.hand(p.x), p.hand(p.tx)), dtype, "tangent")

    x_bar, g_bar = p.numpy().vjp_vjp(p.hand(p.x), p.g, p.hand(p.a))
    tracked, g = p.torch(p.x), p.torch([p.g])[0]
    y = p.call(*tracked, *p.torch([p.leaves[n] for n in p.moved], tracked=False))
    if not y.requires_grad:
        return
    first = torch.autograd.grad(y, tracked, g, create_graph=True)
    second = torch.autograd.grad(first, [*tracked, g], p.torch(p.a, tracked=False), allow_unused=True)
    for got, exact in zip(second, [*(x_bar if p.many else [x_bar]), g_bar], strict=True):
        _close(got, exact, dtype, "second order")


def test_a_buffer_outlives_a_call_and_no_graph_does():
    """The second call overwrites the first one's result, and its gradient does not go through the first one's graph."""
    part, memory = Part("buffered", inner=(Part("square"),)), {}
    first = realise(part, {}, TORCH, memory=memory)(torch.full(SHAPE, 3.0, requires_grad=True))
    first.sum().backward()
    x = torch.full(SHAPE, 5.0, requires_grad=True)
    second = realise(part, {}, TORCH, memory=memory)(x)
    assert (first == 25).all()
    assert (torch.autograd.grad(second.sum(), x)[0] == 10).all()


def test_what_is_handed_back_is_what_was_handed():
    """identity returns x itself, view another tensor on its memory, and a leaf another on the leaf's."""
    x, h = torch.ones(SHAPE), torch.ones(SHAPE)
    assert realise(Part("identity"), {}, TORCH, memory={})(x) is x
    view = realise(Part("view"), {}, TORCH, memory={})(x)
    assert view is not x
    assert view.data_ptr() == x.data_ptr()
    assert realise(Part("leaf", ("h",)), {"h": h}, TORCH, memory={})(x).data_ptr() == h.data_ptr()


def test_zero_is_zero_where_x_is_not_finite():
    """zero returns zeros for NaN and infinity too, and so does a shift past the end."""
    x = torch.tensor([[float("nan")], [float("inf")]])
    assert (realise(Part("zero"), {}, TORCH, memory={})(x) == 0).all()
    assert (TORCH.shift(x, 7, 0) == 0).all()
    assert (TORCH.shift(x, -7, 0) == 0).all()


def test_replayed_replays_a_cotangent():
    """The value is the first leaf, whose gradient is the cotangent; the cotangent of x is the second leaf."""
    x = torch.full(SHAPE, float("nan"), requires_grad=True)
    h = torch.full(SHAPE, 2.0, requires_grad=True)
    tensors = {"h": h, "c": torch.full(SHAPE, 3.0)}
    y = realise(Part("replayed", ("h", "c")), tensors, TORCH, memory={})(x)
    assert (y == 2).all()
    dx, dh = torch.autograd.grad(y, [x, h], torch.full(SHAPE, 5.0))
    assert (dx == 3).all()
    assert (dh == 5).all()


def test_raising_raises():
    """A raising part raises PartRaised."""
    with pytest.raises(PartRaised):
        realise(Part("raising"), {}, TORCH, memory={})(torch.ones(2))
