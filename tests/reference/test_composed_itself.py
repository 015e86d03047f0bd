"""A part that is the operator itself has the value of the formula inside the formula, and its gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from normspec import reference
from normspec.reference.accuracy import Arithmetic
from normspec.reference.composed import Composed
from normspec.spec.operators import OPERATORS
from normspec.spec.parts import Part

SHAPE, EPS = (3, 4), 0.25
BENT, HALF = Part("tanh_linear", ("w",)), Part("scaled", number=0.5)
Array = np.ndarray


def drawn(seed: int) -> dict[str, Array]:
    """Values for all inputs that a call may have."""
    shapes = {"x": SHAPE, "w": (4, 4), "gamma": (4,), "beta": (4,), "logits": (2,), "a": (4,), "b": (4,), "l": (2,)}
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


def bent(v: dict[str, Array]) -> Callable[[Any], Array]:
    """The inner part."""
    return lambda z: np.tanh(z @ v["w"])


def half(z: Array) -> Array:
    """The other inner part."""
    return 0.5 * z


def block_in_block(block: Callable[..., Array], v: dict[str, Array]) -> Array:
    """A block whose sublayer is that block with other parameters and another eps."""
    return block(v["x"], lambda z: block(-0.5 * z, bent(v), v["a"], v["b"], eps=0.5), v["gamma"], v["beta"], eps=EPS)


#: Operator -> the parts of the outer call, with itself for the operator, and y by the functions of the reference.
CALLS: dict[str, tuple[Callable[[Part], dict[str, Any]], Callable[[dict[str, Array]], Array]]] = {
    "residual": (
        lambda itself: {"branch": itself},
        lambda v: reference.residual(v["x"], lambda z: reference.residual(-0.5 * z, bent(v))),
    ),
    "pre_norm": (lambda itself: {"sublayer": itself}, partial(block_in_block, reference.pre_norm)),
    "post_norm": (lambda itself: {"sublayer": itself}, partial(block_in_block, reference.post_norm)),
    "highway": (
        lambda itself: {"transform": BENT, "gate": itself},
        lambda v: reference.highway(v["x"], bent(v), lambda z: reference.highway(-0.5 * z, bent(v), half)),
    ),
    "mhc": (
        lambda itself: {"branches": (itself, HALF)},
        lambda v: reference.mhc(
            v["x"], [lambda z: reference.mhc(-0.5 * z, [bent(v), half], v["l"]), half], v["logits"]
        ),
    ),
}
#: Operator -> the part.
ITSELF = {
    "residual": Part("itself", inner=(BENT,)),
    **dict.fromkeys(("pre_norm", "post_norm"), Part("itself", ("a", "b"), 0.5, (BENT,))),
    "highway": Part("itself", inner=(BENT, HALF)),
    "mhc": Part("itself", ("l",), inner=(BENT, HALF)),
}


def inputs(operator: str, values: dict[str, Array]) -> dict[str, Array]:
    """Those that the operator and its part take."""
    parameters = OPERATORS[operator].parameters
    return {name: values[name] for name in ("x", "w", *parameters, *ITSELF[operator].leaves)}


def composed(operator: str, values: dict[str, Array], dtype: Any = np.float64) -> Composed:
    """The evaluation."""
    settings = {"eps": EPS} if OPERATORS[operator].normalises else {}
    given = {name: value.astype(dtype) for name, value in inputs(operator, values).items()}
    parts = CALLS[operator][0](ITSELF[operator])
    return Composed(operator, given, settings, parts, Arithmetic.of(np.dtype(dtype)))


@pytest.mark.parametrize("operator", CALLS)
def test_values_are_those_of_the_call_within_the_call(operator: str) -> None:
    """y is that of two calls, and the gradients are its slopes."""
    values, along, g = drawn(1), drawn(2), np.random.default_rng(3).standard_normal(SHAPE)
    y, found = CALLS[operator][1], composed(operator, values)
    np.testing.assert_allclose(found.y().exact.hi, y(values), rtol=1e-13)
    h, gradients = 1e-6, found.gradients(g)
    for name in inputs(operator, values):
        ahead, behind = ({**values, name: values[name] + t * along[name]} for t in (h, -h))
        slope = ((y(ahead) - y(behind)) * g).sum() / (2 * h)
        assert (gradients[name].exact.hi * along[name]).sum() == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("operator", CALLS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_what_the_inner_call_returns_is_rounded(operator: str, dtype: Any) -> None:
    """The envelope of y holds the rounding of the inner result, and stays of the size of a few roundings."""
    values = {name: value.astype(dtype).astype(np.float64) for name, value in drawn(4).items()}
    found, u = composed(operator, values, dtype).y(), np.finfo(dtype).eps / 2
    once = np.abs(found.exact.hi) * u
    assert (found.error > once).all() and (found.error < 400 * u * (1 + np.abs(found.exact.hi))).all()
