"""What the cases cover: every regime in every dtype, every witness, every check."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import numpy as np
import pytest

from normspec.conformance.cases.case import Case, build
from normspec.conformance.cases.deck import DERIVATIVES, LAWS, deck
from normspec.conformance.cases.description import Description
from normspec.conformance.cases.generate import generate
from normspec.conformance.cases.regimes import GENERATED, REGIMES
from normspec.conformance.cases.witnesses import WITNESSES
from normspec.conformance.checks.catalogue import CHECKS, checks_of
from normspec.conformance.requests.profiles import PROFILES
from normspec.reference.formats import FORMATS
from normspec.spec.operators import OPERATORS

from .runs import DTYPES, NORMALISATIONS

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

#: Regimes made of numbers that float16 cannot hold.
BEYOND_FLOAT16 = {"wide", "huge"}

in_every_dtype = pytest.mark.parametrize("dtype", DTYPES)
of_every_operator = pytest.mark.parametrize("operator", NORMALISATIONS)


def quick(operator: str) -> list[Description]:
    """The quick deck."""
    return deck(operator, "quick", 0)


def generated(operator: str) -> list[Description]:
    """The cases that `standard` adds to its deck."""
    return generate(operator, 0, PROFILES["standard"].free, PROFILES["standard"].rounds)


def shown(descriptions: Iterable[Description], dtype: str) -> set[str]:
    """The regimes for which some group, rounded to the dtype, still has the property of its regime."""
    stored, found = FORMATS[dtype], set()
    for description in descriptions:
        rows = attrs.evolve(description, repeat=None).group_values(stored)
        for (name, _), row in zip(description.groups, rows, strict=True):
            if np.isfinite(row).all() and REGIMES[name].reached(row, description.eps, stored):
                found.add(name)
    return found


@of_every_operator
@in_every_dtype
def test_the_quick_deck_reaches_every_regime(operator: str, dtype: str) -> None:
    """Some group of the quick deck shows each regime whose numbers the dtype can hold."""
    possible = set(REGIMES) - (BEYOND_FLOAT16 if dtype == "float16" else set())
    assert possible - shown(quick(operator), dtype) == set()


@of_every_operator
@in_every_dtype
def test_generated_cases_reach_every_regime_they_are_drawn_from(operator: str, dtype: str) -> None:
    """Some generated group of `standard` shows each regime, once rounded to the dtype."""
    assert set(GENERATED) - shown(generated(operator), dtype) == set()


def test_the_regimes_that_are_not_generated_are_those_of_one_purpose() -> None:
    """Those left to the deck: of the range requirements, of the sweep of sizes, of long groups, and of eps = 0."""
    assert set(REGIMES) - set(GENERATED) == {*BEYOND_FLOAT16, "edges", "ramp", "tiny"}


@of_every_operator
@in_every_dtype
def test_a_case_holds_the_groups_of_its_description(operator: str, dtype: str) -> None:
    """The rows of x are the described groups, exactly, for any shape of x."""
    for description in quick(operator):
        case = build(description, dtype)
        rows = case.layout.rows(case.x).astype(np.float64)
        np.testing.assert_array_equal(rows, description.group_values(FORMATS[dtype]))


@of_every_operator
def test_every_witness_appears(operator: str) -> None:
    """Each witness group is among the cases of `standard`, whole."""
    found = {
        index % len(WITNESSES)
        for description in (*quick(operator), *generated(operator))
        for name, index in description.groups
        if name == "witness" and description.n >= len(WITNESSES[index % len(WITNESSES)].values(1.0))
    }
    assert found == set(range(len(WITNESSES)))


def test_what_a_case_names_is_a_requirement_with_a_check() -> None:
    """No case of any deck names an id that no check is registered for."""
    decks = (deck(operator, "standard", 0) for operator in OPERATORS)
    named = {name for descriptions in decks for one in descriptions for name in one.requirements}
    assert named - set(CHECKS) == set()


def test_one_id_stands_for_those_at_the_same_check() -> None:
    """A batch_norm case that names LN-F3 is judged for BN-F3, and for nothing else if it is only for that."""
    for operator, prefix in (("layer_norm", "LN"), ("batch_norm", "BN")):
        plain = Description(operator, 4, (("near_eps", 0), ("normal", 1)), requirements=frozenset({"LN-F3"}), only=True)
        case = build(plain, "float32")
        assert [check.requirement for check in checks_of(operator) if check.when(case)] == [f"{prefix}-F3"]


@of_every_operator
def test_every_check_has_a_case_in_the_quick_deck(operator: str) -> None:
    """Each check runs on some case of the quick deck."""
    cases: list[Case] = [build(description, "float32") for description in quick(operator)]
    for check in checks_of(operator):
        assert any(check.when(case) for case in cases), check.requirement


@of_every_operator
def test_generated_cases_take_part_in_laws_and_derivatives(operator: str) -> None:
    """Some free cases are for the laws, some for the derivatives and, of batch_norm, some are in inference."""
    free = generate(operator, 0, PROFILES["standard"].free)
    assert {one.requirements for one in free} == {frozenset(), LAWS, DERIVATIVES}
    assert {one.training for one in free} == {True, not OPERATORS[operator].has_modes}
