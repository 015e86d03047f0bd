"""The shapes and formats of a composed operator's tensors, and their effect on its bounds."""

from __future__ import annotations

import gc
import re
import weakref

import ml_dtypes
import numpy as np
import pytest

from normspec.reference.accuracy import Arithmetic
from normspec.reference.bounded import Number, Rounding, Tape
from normspec.reference.composed import Composed
from normspec.reference.highway import formula as highway_of
from normspec.reference.pre_norm import formula as pre_norm_of
from normspec.reference.residual import formula as residual_of
from normspec.reference.values import Float64Numbers
from normspec.spec import pages
from normspec.spec.parts import Part

RNG = np.random.Generator(np.random.Philox(21))


def pre_norm(shape: tuple[int, ...], x: np.ndarray, parameters: str = "float32") -> Composed:
    """x + h, where h does not depend on the normalised x; the sublayer gets the normalised x."""
    gamma, beta = (np.arange(1.0, 1 + shape[-1], dtype=parameters) / 4 for _ in range(2))
    inputs = {"x": x.reshape(shape), "gamma": gamma, "beta": beta, "sublayer.h": x.reshape(shape)}
    parts = {"sublayer": Part("leaf", ("sublayer.h",))}
    return Composed("pre_norm", inputs, {"eps": 0.25}, parts, Arithmetic.of(x.dtype, parameters))


def post_norm(x: np.ndarray, parameters: str) -> Composed:
    """LN(x + h)."""
    gamma, beta = (np.arange(1, 1 + x.shape[-1]).astype(parameters) / np.asarray(4, parameters) for _ in range(2))
    inputs = {"x": x, "gamma": gamma, "beta": beta, "sublayer.h": x[::-1]}
    parts = {"sublayer": Part("leaf", ("sublayer.h",))}
    return Composed("post_norm", inputs, {"eps": 0.25}, parts, Arithmetic.of(x.dtype, parameters))


def test_leading_axes_count_for_nothing():
    """Rows along two axes have the bounds of the same rows along one."""
    x = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    flat, deep = pre_norm((6, 4), x), pre_norm((2, 3, 4), x)
    (one,), (other,) = flat.handed()["sublayer"], deep.handed()["sublayer"]
    np.testing.assert_array_equal(other.error, one.error.reshape(2, 3, 4))
    np.testing.assert_array_equal(other.exact.hi, one.exact.hi.reshape(2, 3, 4))


def test_a_tensor_that_is_given_is_exact_whatever_its_size():
    """Near the largest number too: the shortcut gets x itself, and dx is g itself."""
    x, g = (np.array([[60000.0, -1.0]], np.float16) for _ in range(2))
    parts = {"branch": Part("leaf", ("branch.h",)), "shortcut": None, "activation": None}
    call = Composed("residual", {"x": x, "branch.h": -x}, {}, parts, Arithmetic.of("float16"))
    (handed,) = call.handed()["branch"]
    assert not handed.error.any() and not call.gradients(g)["x"].error.any()


@pytest.mark.parametrize("parameters", ["float32", ml_dtypes.bfloat16])
def test_a_gradient_is_rounded_to_the_format_of_its_owner(parameters):
    """With 16-bit data the gradients of float32 parameters have the digits of float32, and dx has not."""
    x, g = (RNG.normal(size=(3, 4)).astype(ml_dtypes.bfloat16) for _ in range(2))
    found = post_norm(x, parameters).gradients(g)
    for name in ("x", "sublayer.h", "gamma", "beta"):
        narrow = name in ("x", "sublayer.h") or parameters != "float32"
        relative = np.max(found[name].error / np.abs(found[name].exact.hi))
        assert (relative > 2.0**-9) == narrow, name


def test_a_gradient_may_have_more_terms_than_the_definition():
    """A27: the p of x that the accuracy page gives for pre_norm and highway, and 0 elsewhere."""
    said = dict(re.findall(r"(\d) for x in (\w+)", pages()["accuracy"]))
    float32 = Arithmetic.of("float32")
    calls = {
        "pre_norm": lambda x: pre_norm_of(x, None, None, sublayer=lambda z: z, eps=0.5, arithmetic=float32),
        "highway": lambda x: highway_of(x, transform=lambda z: z, gate=lambda z: z),
        "residual": lambda x: residual_of(x, branch=lambda z: z),
    }
    found = {}
    for operator, call in calls.items():
        steps = Rounding(float32.u, float32.eta, float32.largest, 0.0)
        x = Number(
            Tape(Float64Numbers, steps, steps), np.ones((1, 3)), np.ones((1, 3)), np.zeros((1, 3)), np.ones((1, 3))
        )
        call(x)
        if x.extra_terms:
            found[str(x.extra_terms)] = operator
    assert found == said == {"1": "highway", "2": "pre_norm"}


def test_an_evaluation_is_freed_at_once():
    """
    Sums and products refer to what they were computed from, in no circle: those of a large case would wait for a
    garbage collection.
    """
    x, g = (RNG.normal(size=(3, 4)) for _ in range(2))
    parts = {"branch": Part("leaf", ("branch.h",)), "shortcut": None, "activation": None}
    evaluation = Composed("residual", {"x": x, "branch.h": x}, {}, parts, Arithmetic.of("float64"))
    evaluation.gradients(g)
    evaluation.vjp_vjp(g, {"x": g})
    freed = weakref.ref(evaluation._tape)
    gc.disable()
    try:
        del evaluation
        assert freed() is None
    finally:
        gc.enable()
