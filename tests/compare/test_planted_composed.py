"""The rows about composed operators: each shows the one thing that it is about, and no other row does."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.binding import DERIVATIVES, Binding
from normspec.adapters.numpy import BRIDGE
from normspec.adapters.numpy.operators import IMPLEMENTATIONS as SOUND
from normspec.adapters.target import Target
from normspec.conformance.compare.catalogue import probes_of
from normspec.conformance.compare.run import compare
from normspec.spec.operators import COMPOSED

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

FLOAT16, BFLOAT16 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
BLOCKS = ("pre_norm", "post_norm")


def _target(operator: str, name: str, change: Callable | None = None, steps: type | None = None, without: str = ""):
    """The sound operator, with its call and vjp passed to ``change(stage, function, *arguments, **settings)``."""
    base = SOUND[operator]
    made = (base if steps is None else type(steps.__name__, (steps, base), {}))().implementation()

    def stage(key):
        function = getattr(made, key)
        return function if change is None else lambda *a, **s: change(key, function, *a, **s)

    derivatives = {key: stage(key) for key in DERIVATIVES if key != without}
    binding = Binding(operator, name, stage("call"), derivatives)
    return Target(name, "numpy", np.__version__, BRIDGE, (binding,))


def _off(dtype, where):
    """Results 1.5% off in one dtype: outside one rounding, within many."""

    def change(stage, function, *arguments, **settings):
        found = function(*arguments, **settings)
        if stage != where or arguments[0].dtype != dtype:
            return found
        single = not isinstance(found, tuple)
        moved = [
            None if v is None else (v * dtype.type(1.015)).astype(v.dtype) for v in ((found,) if single else found)
        ]
        return moved[0] if single else tuple(moved)

    return change


def _refusing(stage, function, x, *rest, **settings):
    if not x.size:
        raise ValueError("no samples")
    return function(x, *rest, **settings)


def _replacing(where):
    def change(stage, function, x, *rest, **settings):
        return function(np.where(where(x), x.dtype.type(0), x), *rest, **settings)

    return change


def _seldom():
    calls = [0]

    def change(stage, function, *arguments, **settings):
        found = function(*arguments, **settings)
        calls[0] += stage == "call"
        if stage == "call" and calls[0] % 50 == 0 and found.size:
            found = found.copy()
            found.flat[-1] = np.nextafter(found.flat[-1], found.dtype.type(0))
        return found

    return change


class _OnTheDeviation:
    def rstd(self, variance, eps):
        return 1 / (np.sqrt(variance) + eps)


class _NeverZero:
    def rstd(self, variance, eps):
        return 1 / np.sqrt(variance + (eps if eps > 0 else eps.dtype.type(1e-3)))


class _Unbiased:
    def moments(self, x):
        mean, variance = super().moments(x)
        return mean, variance * x.dtype.type(x.shape[1] / max(x.shape[1] - 1, 1))


PLANTED = {
    "float16": {"change": _off(FLOAT16, "call")},
    "float16_gradients": {"change": _off(FLOAT16, "vjp")},
    "bfloat16": {"change": _off(BFLOAT16, "call")},
    "bfloat16_gradients": {"change": _off(BFLOAT16, "vjp")},
    "empty": {"change": _refusing},
    "nan": {"change": _replacing(np.isnan)},
    "inf": {"change": _replacing(np.isinf)},
    "determinism": {"change": _seldom()},
    "gradients": {"without": "vjp"},
    "second_order": {"without": "vjp_vjp"},
    "forward_mode": {"without": "jvp"},
}
OF_BLOCKS = {
    "eps_placement": {"steps": _OnTheDeviation},
    "eps_zero": {"steps": _NeverZero},
    "variance": {"steps": _Unbiased},
}
CASES = [(operator, row) for operator in COMPOSED for row in PLANTED]
CASES += [(operator, row) for operator in BLOCKS for row in OF_BLOCKS]


@pytest.mark.parametrize(("operator", "row"), CASES)
def test_one_changed_semantic_shows_in_its_row_alone(operator, row):
    """A function with one change differs from the plain function only in the row that names the change."""
    changed = _target(operator, "changed", **{**PLANTED, **OF_BLOCKS}[row])
    table = compare([_target(operator, "plain"), changed], op=operator)
    assert {found.key for _, found in table.differences} == {row}


@pytest.mark.parametrize("operator", COMPOSED)
def test_every_row_has_something_planted(operator):
    """A row that nothing has ever changed proves nothing."""
    planted = {*PLANTED, *(OF_BLOCKS if operator in BLOCKS else ())}
    assert planted == {probe.key for probe in probes_of(operator)}
