"""[=] excuses the order of sums between two calls, but no difference from given values or from zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from normspec.adapters.target import Target

from .runs import VARIANT, function, run, verdicts

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

Change = Callable[[np.ndarray], np.ndarray]


def residual(y: Change = lambda y: y, dx: Change = lambda dx: dx) -> Target:
    """A sound residual with y and dx changed before they are returned."""
    made = VARIANT["rs-plain"].build()

    def call(*arguments: Any, **optional: Any) -> np.ndarray:
        return y(made.call(*arguments, **optional))

    def vjp(*arguments: Any, **optional: Any) -> tuple[np.ndarray]:
        return (dx(made.vjp(*arguments, **optional)[0]),)

    return function("residual", call, vjp=vjp, jvp=made.jvp, vjp_vjp=made.vjp_vjp)


def noise() -> Change:
    """Roundings in other places at every call: a quarter of a unit in the last place of 1."""
    random = np.random.default_rng(0)
    return lambda values: values + values.dtype.type(2.0**-26) * random.integers(2, size=values.shape, dtype=np.int8)


@pytest.mark.parametrize(("law", "wrong"), [("RS-L2", {"y": noise()}), ("RS-G6", {"dx": noise()})], ids=["y", "dx"])
def test_no_repetition_excuses_what_is_to_be_zero(law: str, wrong: dict[str, Change]) -> None:
    """A target that does not repeat its bits violates the laws by which x - x and g - g are 0."""
    assert verdicts(run(residual(**wrong), requirements={law})) == {law: "fail"}


def test_no_repetition_excuses_another_x() -> None:
    """Nor does it excuse a y that must equal x."""
    assert verdicts(run(residual(y=noise()), requirements={"RS-L1"})) == {"RS-L1": "fail"}


def test_a_subnormal_number_is_not_zero() -> None:
    """Where a result is to be zero, one that is below the normal range violates the law."""

    def tiny(values: np.ndarray) -> np.ndarray:
        return np.where(values == 0, values.dtype.type(1e-45), values)

    assert verdicts(run(residual(dx=tiny), requirements={"RS-G6"})) == {"RS-G6": "fail"}


def test_no_repetition_excuses_a_changed_input() -> None:
    """A target whose bits vary may not change x, however wide the envelope."""
    made, move = VARIANT["rs-plain"].build(), noise()

    def call(x: np.ndarray, *arguments: Any, **optional: Any) -> np.ndarray:
        y = made.call(x, *arguments, **optional)
        x[...] = move(x)
        return y

    assert verdicts(run(function("residual", call, vjp=made.vjp), requirements={"CM-P1"})) == {"CM-P1": "fail"}


def test_a_zero_cotangent_gives_zero() -> None:
    """A gradient of the cotangent 0 that is no zero violates the law of linearity."""
    made = VARIANT["ln-two-pass"].build()

    def vjp(*arguments: Any, **settings: Any) -> tuple[np.ndarray, ...]:
        dx, *others = made.vjp(*arguments, **settings)
        return (np.where(dx == 0, dx.dtype.type(1e-30), dx), *others)

    assert verdicts(run(function("layer_norm", made.call, vjp=vjp), requirements={"LN-G8"})) == {"LN-G8": "fail"}
