"""Parts on PyTorch tensors, compared with those on NumPy arrays, whose derivatives are written out."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from normspec.adapters.build_parts import build_part
from normspec.adapters.torch import BRIDGE as TORCH
from normspec.spec.errors import PART_ERRORS, PartRaised
from normspec.spec.parts import Part

from ..part_problems import PARTS, SHAPE, PartProblem


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("kind", list(PARTS))
def test_autograd_agrees_with_the_written_derivatives(kind, dtype):
    """Value, gradients, tangent and second order by autograd are those of the NumPy objects."""
    p = PartProblem(kind, dtype, TORCH)
    tensors = p.tensors(p.arrays, tracked=True)
    y = p.call(*tensors)
    p.close(y, p.value(), "y")

    if y.requires_grad:
        found = torch.autograd.grad(y, tensors, p.tensors([p.g])[0], allow_unused=True)
        for got, exact in zip(found, p.gradients(), strict=True):
            p.close(got, exact, "gradient")

    tangents = [*p.tx, *p.moved.values()]
    with TORCH.guarded(0, gradients=True):  # torch's forward mode warns of its own internals
        tangent = TORCH.jvp(p.call, p.tensors(p.arrays), p.tensors(tangents))
    p.close(tangent, p.tangent(), "tangent")

    tracked, (g,) = p.tensors(p.x, tracked=True), p.tensors([p.g], tracked=True)
    y = p.call(*tracked, *p.tensors([p.leaves[name] for name in p.moved]))
    if not y.requires_grad:
        return
    first = torch.autograd.grad(y, tracked, g, create_graph=True)
    second = torch.autograd.grad(first, [*tracked, g], p.tensors(p.a), allow_unused=True)
    for got, exact in zip(second, p.second(), strict=True):
        p.close(got, exact, "second order")


def test_a_buffer_outlives_a_call_and_no_graph_does():
    """The second call overwrites the first one's result; its gradient does not go through the first one's graph."""
    part, memory = Part("buffered", inner=(Part("square"),)), {}
    first = build_part(part, {}, TORCH, memory=memory)(torch.full(SHAPE, 3.0, requires_grad=True))
    first.sum().backward()
    x = torch.full(SHAPE, 5.0, requires_grad=True)
    second = build_part(part, {}, TORCH, memory=memory)(x)
    assert (first == 25).all()
    assert (torch.autograd.grad(second.sum(), x)[0] == 10).all()


def test_what_is_handed_back_is_what_was_handed():
    """identity returns x itself, view another tensor on its memory, and a leaf another on the leaf's."""
    x, h = torch.ones(SHAPE), torch.ones(SHAPE)
    assert build_part(Part("identity"), {}, TORCH, memory={})(x) is x
    view = build_part(Part("view"), {}, TORCH, memory={})(x)
    assert view is not x
    assert view.data_ptr() == x.data_ptr()
    assert build_part(Part("leaf", ("h",)), {"h": h}, TORCH, memory={})(x).data_ptr() == h.data_ptr()


@pytest.mark.parametrize(("kind", "strides"), [("transposed", (1, 3, 15)), ("strided", (40, 8, 2))])
def test_what_is_laid_out_has_its_strides(kind, strides):
    """The value of such a part lies in memory as the kind says."""
    y = build_part(Part(kind, inner=(Part("square"),)), {}, TORCH, memory={})(torch.ones(3, 5, 4))
    assert y.stride() == strides


def test_a_part_without_memory_raises_torchs_own_error():
    """Code that catches MemoryError, or PyTorch's error for want of memory, catches it."""
    part = build_part(Part("raising", number=PART_ERRORS.index(MemoryError)), {}, TORCH, memory={})
    for kind in (MemoryError, torch.OutOfMemoryError):
        with pytest.raises(kind):
            part(torch.ones(2))


def test_zero_is_zero_where_x_is_not_finite():
    """zero returns zeros for NaN and infinity too, and so does a shift past the end."""
    x = torch.tensor([[float("nan")], [float("inf")]])
    assert (build_part(Part("zero"), {}, TORCH, memory={})(x) == 0).all()
    assert (TORCH.functions.shift(x, 7, 0) == 0).all()
    assert (TORCH.functions.shift(x, -7, 0) == 0).all()


def test_replayed_replays_a_cotangent():
    """The value is the first leaf, whose gradient is the cotangent; the cotangent of x is the second leaf."""
    x = torch.full(SHAPE, float("nan"), requires_grad=True)
    h = torch.full(SHAPE, 2.0, requires_grad=True)
    tensors = {"h": h, "c": torch.full(SHAPE, 3.0)}
    y = build_part(Part("replayed", ("h", "c")), tensors, TORCH, memory={})(x)
    assert (y == 2).all()
    dx, dh = torch.autograd.grad(y, [x, h], torch.full(SHAPE, 5.0))
    assert (dx == 3).all()
    assert (dh == 5).all()


def test_raising_raises():
    """A raising part raises PartRaised."""
    with pytest.raises(PartRaised):
        build_part(Part("raising"), {}, TORCH, memory={})(torch.ones(2))
