"""Parts with arrays for all that they read, made for NumPy and for the bridge of a framework."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from normspec.adapters.build_parts import build_part
from normspec.adapters.numpy import BRIDGE as NUMPY
from normspec.spec.parts import Part

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
    "causal": Part("causal", ("k",), 2.0),
    "cascade": Part("cascade", inner=(BENT, Part("square"), BENT)),
    "dropout": Part("dropout", ("mask",), inner=(BENT,)),
    "counted": Part("counted", inner=(BENT,)),
    "buffered": Part("buffered", inner=(BENT,)),
    "transposed": Part("transposed", inner=(BENT,)),
    "strided": Part("strided", inner=(BENT,)),
    "common": Part("common", inner=(BENT,)),
    "misshapen": Part("misshapen", inner=(BENT,)),
    "flattened": Part("flattened", inner=(BENT,)),
    "broadcasting": Part("broadcasting", inner=(BENT,)),
    "fuse_sum": Part("fuse_sum"),
    "fuse_product": Part("fuse_product"),
    "fuse_weighted": Part("fuse_weighted", ("a",)),
    "fuse_coupled": Part("fuse_coupled"),
}


class PartProblem:
    """One part, with arrays for all that it reads, in NumPy and by a bridge."""

    def __init__(self, kind, dtype, bridge):
        rng = np.random.Generator(np.random.Philox(11))

        def draw(shape):
            return rng.normal(0, 0.7, shape).astype(dtype)

        self.bridge = bridge
        self.dtype = np.dtype(dtype)
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
        return build_part(self.part, self.leaves, NUMPY, memory={}, **more)

    def tensors(self, arrays, *, tracked=False):
        """Arrays as the bridge's tensors."""
        return [self.bridge.tensor(array, "contiguous", "cpu", tracked=tracked) for array in arrays]

    @property
    def arrays(self):
        """The part's arguments, and its leaves that have gradients."""
        return [*self.x, *(self.leaves[name] for name in self.moved)]

    def call(self, *tensors):
        """The value, as a function of the arguments and of the leaves that have gradients."""
        count = len(self.x)
        leaves = dict(zip(self.leaves, self.tensors(self.leaves.values()), strict=True))
        leaves.update(zip(self.moved, tensors[count:], strict=True))
        return build_part(self.part, leaves, self.bridge, memory={})(self.hand(tensors[:count]))

    def close(self, got, expected, what):
        """Check a tensor, an array or None, which stands for zero, against an array or None."""
        if got is expected is None:
            return
        if expected is None:
            expected = np.zeros(got.shape, self.dtype)
        if got is None:
            got = np.zeros_like(expected)
        got = got if isinstance(got, np.ndarray) else self.bridge.array(got, what)
        assert got.dtype == expected.dtype == self.dtype, what
        # Frameworks round every operation to 16 bits: sums of a dozen products of values up to 8.
        tolerance = 32 * float(ml_dtypes.finfo(self.dtype).eps)
        np.testing.assert_allclose(
            got.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance, err_msg=what
        )

    # The written derivatives of NumPy's objects --------------------------------------------------------------

    def value(self):
        """The part's value."""
        return self.numpy()(self.hand(self.x))

    def gradients(self):
        """The gradients of the arguments and of the leaves; None if none reaches one."""
        notes = {}
        pulled = self.numpy(notes=notes).vjp(self.hand(self.x), self.g)
        return [*(pulled if self.many else [pulled]), *(notes.get(name) for name in self.moved)]

    def tangent(self):
        """The tangent of the value, for the tangents tx and those of the leaves."""
        return self.numpy(tangents=self.moved).jvp(self.hand(self.x), self.hand(self.tx))

    def second(self):
        """The second-order gradients of the arguments and of the cotangent, for the cotangents a."""
        x_bar, g_bar = self.numpy().vjp_vjp(self.hand(self.x), self.g, self.hand(self.a))
        return [*(x_bar if self.many else [x_bar]), g_bar]
