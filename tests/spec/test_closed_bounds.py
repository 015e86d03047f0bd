"""Formulas A29 to A31 of the accuracy page are what the running analysis gives for parts that return a leaf."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from normspec.adapters.part import Part
from normspec.reference.accuracy import AccuracyClass, Arithmetic
from normspec.reference.composed import Composed

#: One evaluation of the envelope in float64, which A28 allows for.
EVALUATION = 1 + 2.0**-20
SHAPE = (3, 4)


@attrs.frozen
class Drawn:
    """Tensors of one dtype, and the arithmetic in which operators work on them."""

    dtype: str
    storage: str
    random: np.random.Generator

    @property
    def arithmetic(self) -> Arithmetic:
        """In 16 bits native, so that the result is not rounded once more."""
        return Arithmetic.of(self.dtype, None, AccuracyClass(storage=self.storage))

    def tensor(self, *shape: int) -> np.ndarray:
        """Normal deviates."""
        return self.random.standard_normal(shape or SHAPE).astype(self.dtype)


@pytest.fixture(params=[("float64", "H0"), ("float32", "H0"), ("float16", "native")], ids=lambda param: param[0])
def drawn(request) -> Drawn:
    """Draw from one seed in each dtype."""
    return Drawn(*request.param, np.random.default_rng(7))


def leaf(name: str) -> Part:
    """A part that returns its leaf whatever it is handed."""
    return Part("leaf", (name,))


def size(tensor: np.ndarray) -> np.ndarray:
    """|z| in float64."""
    return np.abs(tensor.astype(np.float64))


def one(z: np.ndarray) -> np.ndarray:
    """max(1, |z|)."""
    return np.maximum(1.0, z)


def agrees(bound: np.ndarray, formula: np.ndarray) -> None:
    """Equal but for the rounding of either evaluation, which is in float64."""
    np.testing.assert_allclose(bound, formula * EVALUATION, rtol=1e-9)


def test_residual(drawn: Drawn):
    """A29: y has one rounding of the sum, and dx is exact where the branch ignores x."""
    x, h, g = drawn.tensor(), drawn.tensor(), drawn.tensor()
    parts = {"branch": leaf("branch.h"), "shortcut": None, "activation": None}
    call = Composed("residual", {"x": x, "branch.h": h}, {}, parts, drawn.arithmetic)
    agrees(call.y().error, drawn.arithmetic.u * np.abs(x.astype(np.float64) + h.astype(np.float64)))
    assert not call.gradients(g)["x"].error.any()


def test_highway(drawn: Drawn):
    """A30: y, dx, dH and dz."""
    x, h, z, g = (drawn.tensor() for _ in range(4))
    u, eta = drawn.arithmetic.u, drawn.arithmetic.eta
    inputs = {"x": x, "transform.h": h, "gate.z": z}
    parts = {"transform": leaf("transform.h"), "gate": leaf("gate.z"), "carry": None}
    call = Composed("highway", inputs, {}, parts, drawn.arithmetic)
    t = 1 / (1 + np.exp(-z.astype(np.float64)))
    gate_error, carry_error = 4 * u, 5 * u
    gate, carry = t + gate_error, 1 + t + carry_error
    x, h, g_size = size(x), size(h), size(g)
    y = h * gate_error + x * carry_error + 3 * u * (h * gate + x * carry) + eta * (one(h) + 2 * one(x))
    agrees(call.y().error, y)
    found = {name: value.error for name, value in call.gradients(g).items()}
    agrees(found["x"], g_size * carry_error + 2 * u * g_size * carry + 2 * eta * one(g_size))
    agrees(found["transform.h"], g_size * gate_error + 2 * u * g_size * gate + eta * one(g_size))
    slope = gate * carry_error + carry * gate_error + 2 * u * gate * carry + 2 * eta
    dz = g_size * (h + x) * (slope + 5 * u * gate * carry)
    agrees(found["gate.z"], dz + eta * (2 + gate * carry) * one(g_size) * (one(h) + one(x)))


def test_mhc(drawn: Drawn):
    """A31: y, dH_k and dlogits."""
    count = 3
    x, g, logits = drawn.tensor(), drawn.tensor(), drawn.tensor(count)
    u, eta = drawn.arithmetic.u, drawn.arithmetic.eta
    names = [f"branches.{k}.h" for k in range(count)]
    outputs = {name: drawn.tensor() for name in names}
    parts = {"branches": tuple(leaf(name) for name in names), "fuse": None}
    call = Composed("mhc", {"x": x, "logits": logits, **outputs}, {}, parts, drawn.arithmetic)
    down = size(logits.astype(np.float64) - float(logits.max()))
    w = np.exp(-down) / np.exp(-down).sum()
    largest = float(size(logits).max())
    scaled = 6 * (len(set(logits.tolist())) - 1)
    w_error = w * np.expm1(u * (2 * down + largest + np.log(count) + 8 + count + 4 + scaled)) + 2 * eta
    above = w + w_error
    x_size, g_size, h = size(x), size(g), np.stack([size(output) for output in outputs.values()])
    weigh = np.tensordot  # sum over k of weight_k h_k
    y = weigh(w_error, h, 1) + u * (count * x_size + (count + 2) * weigh(above, h, 1)) + eta * (one(h).sum(axis=0) + 1)
    agrees(call.y().error, y)
    found = {name: value.error for name, value in call.gradients(g).items()}
    for k, name in enumerate(names):
        agrees(found[name], g_size * w_error[k] + 2 * u * g_size * above[k] + eta * (1 + one(g_size)))
    inner, hull = (g_size * h).sum(axis=(1, 2)), (one(g_size) * one(h)).sum(axis=(1, 2))
    inner_error = u * (x.size + 1) * inner + eta * hull
    mean = (above * inner).sum()
    mean_error = (inner * w_error + above * inner_error).sum() + u * (count + 1) * mean + eta * hull.sum()
    dlogits = above * (inner_error + mean_error) + (inner + mean) * (w_error + 3 * u * above)
    dlogits = dlogits + eta * (hull + hull.sum() + 4 * hull.min())
    signed = np.array([(g.astype(np.float64) * output.astype(np.float64)).sum() for output in outputs.values()])
    exact = np.abs(w * (signed - (w * signed).sum()))
    returned = dlogits.sum() + u * (count + 1) * (exact + dlogits).sum()
    agrees(found["logits"], dlogits + np.where(down == 0, returned, 0.0))
