"""
The bounds of relations between calls, A32 to A34, evaluated as the accuracy page prints them.

The page's bounds are compared with those that the checks of the aspects compute. A constant or a sign that is changed
only on the page, or only in the code, fails here.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from mpmath import mpf

from normspec.conformance.cases.case import Case
from normspec.conformance.checks.aspects import TOGETHER
from normspec.conformance.checks.derived import perturbed
from normspec.conformance.checks.exactly import exact
from normspec.conformance.checks.received import Claim, Received, RelatedCall
from normspec.reference.accuracy import Arithmetic

from .page_bounds import Step, carried_out, rules
from .page_classes import agree
from .page_notation import evaluate
from .page_values import array, precise

pytestmark = pytest.mark.exhaustive


@pytest.fixture(autouse=True)
def _precise():
    with precise():
        yield


def rule(number: str, label: str) -> Step:
    """The sides that a formula relates under a label."""
    (found,) = (step for step in rules(number) if step.conditions == (label,))
    return found


def case(*shape: int) -> Case:
    """A call of layer_norm in float32."""
    x = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
    inputs: dict[str, Any] = {"x": x, "gamma": None, "beta": None}
    return Case("layer_norm", inputs, {"eps": 0.25, "axes": (-1,)}, np.ones_like(x))


def run(of: Case, seed: int, error: float) -> RelatedCall:
    """A possible result of a call: y with errors up to a limit, on either side."""
    random = np.random.default_rng(seed)
    x = of.x.astype(np.float64)
    nearly = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 0.25)
    got = (nearly * (1 + error * random.uniform(-1, 1, x.shape))).astype(np.float32).astype(np.float64)
    envelope = 2.0**-20 * (1 + random.random(x.shape))
    return RelatedCall(of, got, nearly, envelope, 2.0**-24, 0.25)


def told(of: RelatedCall) -> dict[str, Any]:
    """The same for the page."""
    numbers = {"z'": of.got, "z": of.nearly, "ENV_z": of.envelope}
    return {name: array(one) for name, one in numbers.items()} | {"u_o": mpf(of.roundoff)}


@pytest.mark.parametrize("error", [2.0**-22, 0.5])
def test_received_numbers(error: float):
    """A32: the error of received numbers, and of their sums, differences and products with given numbers."""
    one, other = (run(case(3, 5), seed, error) for seed in (1, 2))
    a, b = one.y, other.y
    e_a, e_b = (carried_out("A32", {"received"}, told(of))["E_z"] for of in (one, other))
    agree(a.error, e_a)
    agree(b.error, e_b)
    both = {"E_a": e_a, "E_b": e_b}
    agree((a + b).error, carried_out("A32", {"a + b or a - b"}, both)["E"])
    agree((a - b).error, carried_out("A32", {"a + b or a - b"}, both)["E"])
    c = np.random.default_rng(3).standard_normal((3, 5))
    agree(a.times(c).error, carried_out("A32", {"c a", "c given"}, {"E_a": e_a, "c": array(c)})["E"])


@pytest.mark.parametrize("side", [1 - 2.0**-30, 1 + 2.0**-30])
def test_two_sides(side: float):
    """A32: two sides differ by no more than both errors."""
    e_left, e_right, right = np.array([0.25]), np.array([0.5]), np.array([3.0])
    left = right + side * (e_left + e_right)
    claim = Claim(case(1, 1), Received(exact(left), e_left), Received(exact(right), e_right), "y", "")
    sides = {"left'": left, "right'": right, "E_left": e_left, "E_right": e_right}
    env = {name: array(one)[0] for name, one in sides.items()}
    said = rule("A32", "left = right")
    assert (claim.compared().ratio <= 1) == (evaluate(said.name, env) <= evaluate(said.text, env))


@attrs.frozen
class Answered:
    """The parts of a subject that `RelatedCall.of` uses: exact values, and an envelope."""

    nearby: np.ndarray
    envelope: np.ndarray

    @property
    def settings(self) -> dict[str, float]:
        """The settings of the call."""
        return {"eps": 0.25}

    def truth(self, case: Case, *, normative: bool) -> Answered:
        """The truth of a case."""
        return self

    def nearly(self) -> np.ndarray:
        """The exact y."""
        return self.nearby

    def arithmetic(self, case: Case, *, normative: bool) -> Arithmetic:
        """The arithmetic of a case."""
        return Arithmetic.of("float32")

    def bound(self, case: Case, name: str) -> Any:
        """The envelope of an output."""
        return lambda normative: self.envelope


@pytest.mark.parametrize("side", [1 - 2.0**-30, 1 + 2.0**-30])
def test_what_is_judged(side: float):
    """A32: nothing that may be half of the largest number."""
    largest, said = Arithmetic.of("float32").largest, rule("A32", "judged")
    for share in (0.25, 1.0):
        z, envelope = (np.array([[part * side * largest / 2]]) for part in (share, 1 - share))
        found = RelatedCall.of(Answered(z, envelope), case(1, 1), z, normative=True)  # type: ignore[arg-type]
        env = {"z": mpf(z.item()), "ENV_z": mpf(envelope.item()), "largest": mpf(largest)}
        assert np.isfinite(found.envelope).all() == (evaluate(said.name, env) < evaluate(said.text, env))


@pytest.mark.parametrize("error", [2.0**-22, 0.25, 0.5])
@pytest.mark.parametrize("widened", [1.0, 2.0**17, 2.0**21])
def test_what_stands_under_the_root(error: float, widened: float):
    """A33: q of two values of a group, and its bound, infinite where the two may be the same."""
    of = run(case(3, 5), 1, error)
    of = attrs.evolve(of, envelope=widened * of.envelope)
    groups, i, j = np.arange(3), np.array([0, 1, 4]), np.array([2, 3, 1])
    found = of.slope(groups, i, j)
    errors = carried_out("A32", {"received"}, told(of))["E_z"]
    picked = {"x": of.case.x, "y": of.nearly, "y'": of.got, "ENV": of.envelope, "E": errors}

    def page(y: str, **more: Any) -> dict[str, Any]:
        named = {**picked, "y": picked[y]}
        env = {f"{name}_{k}": array(np.asarray(one)[groups, at]) for name, one in named.items()
               for k, at in (("i", i), ("j", j))}  # fmt: skip
        return carried_out("A33", set(), {**env, **more}, until=None if more else "t")

    received = page("y'")
    assert [float(one) for one in found.value.to_dd().hi] == [float(one) for one in received["q"]]
    agree(found.error, page("y", **{"D'": received["D"], "q'": received["q"]})["E_q"])


def test_the_slope_is_what_stands_under_the_root():
    """A33: q of the exact y is var + eps, in every group and of any two values."""
    of = case(3, 5)
    x = array(of.x)
    mean = x.sum(axis=1, keepdims=True) / 5
    under = ((x - mean) ** 2).sum(axis=1) / 5 + mpf(0.25)
    y = (x - mean) / np.array([one.sqrt() for one in under])[:, None]
    env = {"x_i": x[:, 0], "x_j": x[:, 3], "y_i": y[:, 0], "y_j": y[:, 3]}
    assert max(abs(carried_out("A33", set(), env, until="t")["q"] - under)) < mpf(10) ** -100


@pytest.mark.parametrize("side", [1 - 2.0**-20, 1 + 2.0**-20])
@pytest.mark.parametrize("staying", [1, 2, 3, 5])
def test_what_does_not_depend_on_a_value(side: float, staying: int):
    """A34: values outside the group stay; where half of a group or more stay, none of those surely moves."""
    before = case(2, 5)
    after, moved = before.derived("perturbed", perturbed)
    (row,) = np.flatnonzero(moved.any(axis=1))
    runs = {"before": run(before, 1, 0.0), "after": run(after, 2, 0.0)}
    bound = runs["before"].envelope + runs["after"].envelope
    # Every exact value moves by nearly or just the sum of the envelopes; `staying` values of the group stay as
    # received.
    nearly = runs["before"].nearly + side * bound
    got = runs["before"].got + 1.0
    got[row, :staying] = runs["before"].got[row, :staying]
    got[1 - row] = runs["before"].got[1 - row] + side * bound[1 - row]
    nearly[1 - row] = runs["before"].nearly[1 - row] = got[1 - row]  # no error of rounding is added by A32
    runs["after"] = attrs.evolve(runs["after"], nearly=nearly, got=got)
    outside, inside = TOGETHER.claims(runs)
    unmoved, surely = rule("A34", "unmoved"), rule("A34", "surely moved")
    y = {"y_1'": runs["before"].got, "y_2'": got, "y_1": runs["before"].nearly, "y_2": nearly}
    errors = {"E_1": runs["before"].error, "E_2": runs["after"].error}
    envelopes = {"ENV_1": runs["before"].envelope, "ENV_2": runs["after"].envelope}
    env = {name: array(one) for name, one in {**y, **errors, **envelopes}.items()}
    stays = (evaluate(unmoved.name, env) <= evaluate(unmoved.text, env))[1 - row].all()
    assert (outside.compared().ratio <= 1) == stays
    moves = (evaluate(surely.name, env) > evaluate(surely.text, env))[row]
    violated = 2 * staying >= 5 and moves[:staying].any()
    assert (inside.compared().ratio > 1) == violated
