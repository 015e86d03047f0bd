"""What `Composed` promises besides its values: parts, leaves, masks, arguments of parts, and what is not judged."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.reference.accuracy import Arithmetic
from normspec.reference.composed import Composed
from normspec.reference.known_parts import NoExactValue
from normspec.spec.parts import Part

from .composed_data import OPERATORS, draw

SINGLE = Arithmetic.of("float32")


def normal(*shape, seed=0, dtype=np.float32):
    """Random numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def residual(branch, inputs, arithmetic=SINGLE, **parts):
    """A residual connection."""
    return Composed("residual", inputs, {}, {"branch": branch, **parts}, arithmetic)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("seed", range(4))
def test_tangent_and_gradients_are_adjoint(operator, seed):
    """<g, jvp(t)> is <gradients(g), t>, and the second derivative's "g" is the tangent."""
    call = draw(operator, seed, (3, 4))
    composed = call.composed(call.arithmetic())
    tangent = composed.jvp(call.second).exact.hi
    gradients = composed.gradients(call.g)
    assert set(gradients) == set(call.second)
    inner = sum((gradients[name].exact.hi * call.second[name]).sum() for name in gradients)
    np.testing.assert_allclose((tangent * call.g).sum(), inner, rtol=1e-12)
    np.testing.assert_array_equal(composed.vjp_vjp(call.g, call.second)["g"].exact.hi, tangent)


@pytest.mark.parametrize("operator", OPERATORS)
def test_values_in_float64_are_those_of_double_double(operator):
    """For data narrower than float64 plain values differ from exact ones by far less than the envelope."""
    for seed in range(4):
        narrow = draw(operator, seed, (3, 4)).cast(np.float32)
        wide = narrow.cast(np.float64)
        plain, exact = (c.composed(c.arithmetic()).gradients(c.g) for c in (narrow, wide))
        for name, value in plain.items():
            judged = np.isfinite(value.error)
            assert (np.abs(value.exact.hi - exact[name].exact.hi) <= 2.0**-20 * value.error)[judged].all()


def test_evaluations_leave_no_trace():
    """Gradients are the same, bit by bit, before and after other derivatives."""
    call = draw("mhc", 1)
    composed = call.composed(call.arithmetic())
    before = composed.gradients(call.g)
    composed.vjp_vjp(call.g, call.second)
    after = composed.gradients(call.g)
    assert all((before[name].error == after[name].error).all() for name in before)


def test_gradients_of_a_shared_leaf_add():
    """Two branches that close over one leaf give it the sum of both gradients."""
    x, w, g = normal(2, 3), normal(3, 3, seed=1), normal(2, 3, seed=2)
    logits = np.zeros(2, np.float32)
    alone = Part("linear", ("w",))
    both = Composed("mhc", {"x": x, "logits": logits, "w": w}, {}, {"branches": (alone, alone), "fuse": None}, SINGLE)
    once = residual(alone, {"x": x, "w": w})
    np.testing.assert_allclose(both.gradients(g)["w"].exact.hi, once.gradients(g)["w"].exact.hi, rtol=1e-14)


def test_a_mask_has_no_gradient():
    """The mask of dropout is an input without gradient, and scales the branch."""
    x, mask = normal(2, 3), np.array([[0, 2, 2], [2, 0, 0]], np.float32)
    part = Part("dropout", ("branch.mask",), inner=(Part("identity"),))
    composed = residual(part, {"x": x, "branch.mask": mask})
    assert set(composed.gradients(x)) == {"x"}
    assert set(composed.vjp_vjp(x, {"x": x})) == {"x", "g"}
    np.testing.assert_array_equal(composed.y().exact.hi, x + x.astype(float) * mask)


def test_what_parts_are_handed():
    """x comes without error, LN(x) and the sum with theirs, and fuse gets all results in order."""
    x, h = normal(2, 3), normal(2, 3, seed=1)
    leaf = Part("leaf", ("h",))
    handed = residual(leaf, {"x": x, "h": h}, activation=Part("tanh")).handed()
    assert (handed["branch"][0].error == 0).all()
    assert (handed["activation"][0].error > 0).all()
    parts = {"branches": (leaf, Part("identity")), "fuse": Part("fuse_sum")}
    handed = Composed("mhc", {"x": x, "h": h}, {}, parts, SINGLE).handed()
    assert list(handed) == ["branches.0", "branches.1", "fuse"]
    np.testing.assert_array_equal([value.exact.hi for value in handed["fuse"]], [h, x])
    blocks = Composed("pre_norm", {"x": x, "h": h}, {"eps": 0.1}, {"sublayer": leaf}, SINGLE).handed()
    assert (blocks["sublayer"][0].error > 0).all()


def test_a_replayed_part_returns_what_it_is_told():
    """Its value is one leaf, its cotangent of x the other; the cotangent that arrives goes to the first leaf."""
    x, h, k, g = (normal(2, 3, seed=seed) for seed in range(4))
    composed = residual(Part("replayed", ("h", "k")), {"x": x, "h": h, "k": k})
    found = composed.gradients(g)
    np.testing.assert_array_equal(found["x"].exact.hi, g.astype(float) + k)
    np.testing.assert_array_equal(found["h"].exact.hi, g)
    np.testing.assert_array_equal(found["k"].exact.hi, 0)


@pytest.mark.parametrize("kind", ["misshapen", "flattened", "broadcasting", "raising", "unheard of"])
def test_parts_without_a_value_are_refused(kind):
    """A part that raises or returns another shape has no truth."""

    class Odd:
        leaves, number, inner = (), 0.0, ()

    part = Odd()
    part.kind = kind
    with pytest.raises(NoExactValue, match=kind):
        residual(part, {"x": normal(2, 3)})


def test_the_derivative_at_a_kink_is_not_judged():
    """Where relu's argument may have either sign, its gradient's error is infinite; elsewhere it is not."""
    x = np.array([[1.0, -1.0, 0.5]], np.float32)
    h = np.array([[-1.0, 0.5, 0.5]], np.float32)
    composed = residual(Part("leaf", ("h",)), {"x": x, "h": h}, activation=Part("relu"))
    dx = composed.gradients(np.full_like(x, 3.0))["x"]
    np.testing.assert_array_equal(np.isinf(dx.error), [[True, False, False]])
    np.testing.assert_array_equal(dx.exact.hi[0, 1:], [0, 3])
    np.testing.assert_array_equal(composed.y().exact.hi, [[0, 0, 1]])


def test_what_may_overflow_is_not_judged():
    """Near the largest number of the format the error is infinite, only for that element."""
    for dtype, large in ((np.float32, 1e38), (np.float16, 6e4), (ml_dtypes.bfloat16, 1e38)):
        x = np.array([[large, 1.0]]).astype(dtype)
        composed = residual(Part("square"), {"x": x}, Arithmetic.of(np.dtype(dtype)))
        np.testing.assert_array_equal(np.isinf(composed.y().error), [[True, False]])


def test_errors_are_a_few_roundings_on_easy_data():
    """x + F is within two roundings, a gate's result within twenty of its terms."""
    x, h, z = (normal(4, 5, seed=seed) for seed in range(3))
    y = residual(Part("leaf", ("h",)), {"x": x, "h": h}).y()
    assert (y.error <= 2.01 * 2.0**-24 * np.abs(y.exact.hi) + 1e-40).all()
    parts = {"transform": Part("leaf", ("h",)), "gate": Part("leaf", ("z",)), "carry": None}
    y = Composed("highway", {"x": x, "h": h, "z": z}, {}, parts, SINGLE).y()
    assert (y.error <= 20 * 2.0**-24 * (np.abs(x) + np.abs(h))).all()
