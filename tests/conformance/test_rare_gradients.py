"""Mistakes in gradients, and in what a call leaves unchanged, that show only on cases of a rare kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from normspec.adapters.numpy.operators import IMPLEMENTATIONS
from normspec.adapters.numpy.operators.rows import Array, Pull, RowSteps
from normspec.conformance.judging.verdicts import Verdict
from normspec.conformance.requests.implementation_targets import implementation_target
from normspec.conformance.sound.registry import NORMALISATIONS, combined
from normspec.spec.layout import Layout
from normspec.spec.operators import OPERATORS

from .runs import VARIANT, function, result, run

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

of_every_normalisation = pytest.mark.parametrize("operator", NORMALISATIONS)

#: float16's largest number.
_LARGEST = np.float32(65504)


def _within(values: Array) -> Array:
    """The values, those beyond float16's range at its ends."""
    return np.clip(values, -_LARGEST, _LARGEST)


class ProductWithin(RowSteps):
    """Keeps gamma g within float16's range, although it is computed in float32."""

    def input_gradient(self, p: Pull) -> Array:
        return super().input_gradient(replace(p, h=_within(p.h)))


class MeanWithin(RowSteps):
    """Keeps the sum of gamma g xhat over a group within float16's range."""

    def project(self, z: Array, xhat: Array, s: Any) -> Array:
        n = z.dtype.type(z.shape[1])
        return self.centre(z) - xhat * _within(self.row_mean(z * xhat) * n) / n


class TermWithin(RowSteps):
    """Keeps each term of dgamma within float16's range."""

    def gamma_gradient(self, p: Pull) -> Array:
        return self.parameter_sum(_within(p.g * p.xhat))


def _fails(step: type[RowSteps], operator: str, number: str) -> bool:
    """Whether the operator with this step violates its requirement of this number in float16."""
    requirement = f"{OPERATORS[operator].prefix}-{number}"
    target = implementation_target("own", operator, combined(step, operator)().implementation())
    report = run(target, requirements={requirement}, dtypes=("float16",))
    return result(report, requirement, "float16").verdict is Verdict.FAIL


@of_every_normalisation
@pytest.mark.parametrize("step", [ProductWithin, MeanWithin])
def test_a_step_towards_dx_that_is_kept_in_the_range_of_float16(step: type[RowSteps], operator: str) -> None:
    """In float32 nothing has to be, and where 1/sqrt(var + eps) is small dx is moderate: G1 is violated."""
    assert _fails(step, operator, "G1")


@pytest.mark.parametrize("operator", ["layer_norm", "rms_norm"])
def test_a_term_of_dgamma_that_is_kept_in_the_range_of_float16(operator: str) -> None:
    """Terms beyond it may cancel: G2 is violated."""
    assert _fails(TermWithin, operator, "G2")


@of_every_normalisation
def test_x_that_is_one_group_is_overwritten(operator: str) -> None:
    """Where no other group is in x, working in place violates CM-P1."""
    made = IMPLEMENTATIONS[operator]().implementation()

    def call(x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
        found = made.call(x, *arguments, **settings)
        if x.size == Layout.of(operator, x.shape, settings).size:
            x -= x.mean()
        return found

    report = run(function(operator, call, vjp=made.vjp), requirements={"CM-P1"})
    assert result(report, "CM-P1").verdict is Verdict.FAIL


def _layer_norm(change: Callable[..., Any]) -> Any:
    """A sound layer_norm whose gradients go through ``change(x, gamma, beta, g, gradients, axes)``."""
    made = VARIANT["ln-plain"].build()

    def vjp(x: np.ndarray, gamma: Any, beta: Any, g: np.ndarray, **settings: Any) -> Any:
        return change(x, gamma, beta, g, made.vjp(x, gamma, beta, g, **settings), settings["axes"])

    return function("layer_norm", made.call, vjp=vjp)


def _first_group_alone(x: Any, gamma: Any, beta: Any, g: np.ndarray, gradients: Any, axes: Any) -> Any:
    """A cotangent is taken for 0 if the first group's is."""
    dx, *others = gradients
    size = Layout.of("layer_norm", x.shape, {"axes": axes}).size
    return (dx if g.reshape(-1)[:size].any() else np.zeros_like(dx), *others)


def _transposed(place: int) -> Callable[..., Any]:
    """dgamma or dbeta of two axes is in the other order where the other parameter is absent."""

    def change(x: Any, gamma: Any, beta: Any, g: Any, gradients: Any, axes: Any) -> Any:
        found = list(gradients)
        if found[3 - place] is None and found[place] is not None and len(axes) == 2:
            found[place] = found[place].T.reshape(found[place].shape)
        return tuple(found)

    return change


def _two_of_three(x: np.ndarray, gamma: Any, beta: Any, g: np.ndarray, gradients: Any, axes: Any) -> Any:
    """Without beta, dgamma leaves out what is not first along the third leading axis."""
    if beta is not None or gamma is None or x.ndim - len(axes) != 3:
        return gradients
    wide = x.astype(np.float64)
    deviation = wide - wide.mean(axes, keepdims=True)
    terms = g * deviation / np.sqrt((deviation**2).mean(axes, keepdims=True))
    return gradients[0], terms[:, :, 0].sum((0, 1)).astype(gamma.dtype), None


@pytest.mark.parametrize(
    ("change", "requirement"),
    [
        (_first_group_alone, "LN-G1"),
        (_transposed(1), "LN-G2"),
        (_transposed(2), "LN-G3"),
        (_two_of_three, "LN-G2"),
    ],
)
def test_a_gradient_that_is_wrong_for_rare_arguments(change: Callable[..., Any], requirement: str) -> None:
    """The requirement about it is violated."""
    assert result(run(_layer_norm(change), requirements={requirement}), requirement).verdict is Verdict.FAIL
