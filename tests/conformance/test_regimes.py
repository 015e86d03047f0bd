"""What the cases reach: every regime in every dtype, every witness, every tag that a check asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs
import numpy as np
import pytest

from normspec.conformance.cases.case import Case, build
from normspec.conformance.cases.deck import deck
from normspec.conformance.cases.description import Description
from normspec.conformance.cases.generate import generate
from normspec.conformance.cases.regimes import GENERATED, REGIMES
from normspec.conformance.cases.witnesses import WITNESSES
from normspec.conformance.checks.catalogue import checks_of
from normspec.conformance.profiles import PROFILES
from normspec.reference.formats import FORMATS

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
    """The regimes of which some group, rounded to the dtype, is what its regime promises."""
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


def test_the_regimes_that_are_not_generated_are_those_of_one_requirement() -> None:
    """Only `wide` and `huge`, of the range requirements, and `edges`, of the sweep of sizes, are left to the deck."""
    assert set(REGIMES) - set(GENERATED) == {*BEYOND_FLOAT16, "edges"}


@of_every_operator
@in_every_dtype
def test_a_case_holds_the_groups_of_its_description(operator: str, dtype: str) -> None:
    """The rows of x are the described groups, exactly, whatever the shape they are laid out in."""
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


class Asked(frozenset):
    """Tags that note which others they are asked for."""

    asked: set[str]

    @classmethod
    def of(cls, tags: frozenset[str], asked: set[str]) -> Asked:
        """Tags whose questions are added to ``asked``."""
        made = cls(tags)
        made.asked = asked
        return made

    def __contains__(self, tag: object) -> bool:
        self.asked.add(str(tag))
        return super().__contains__(tag)

    def __and__(self, other):
        self.asked.update(other)
        return super().__and__(other)

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("a check chooses its cases by asking for tags, not by listing them")


@of_every_operator
def test_every_tag_that_a_check_asks_for_is_in_the_deck(operator: str) -> None:
    """No check waits for a tag that no case of the quick deck carries."""
    present = {tag for description in quick(operator) for tag in description.tags}
    asked: set[str] = set()
    for case in (build(description, "float32") for description in quick(operator)):
        noting = attrs.evolve(case, tags=Asked.of(case.tags, asked))
        for check in checks_of(operator):
            check.when(noting)
    # The modes of batch_norm: layer_norm has none, and its cases no such tags.
    absent = {"single", "inference"} if operator == "layer_norm" else set()
    assert asked - present == absent


@of_every_operator
def test_every_check_has_a_case_in_the_quick_deck(operator: str) -> None:
    """Each check runs on some case of the quick deck."""
    cases: list[Case] = [build(description, "float32") for description in quick(operator)]
    for check in checks_of(operator):
        assert any(check.when(case) for case in cases), check.requirement


@of_every_operator
def test_generated_cases_take_part_in_laws_and_derivatives(operator: str) -> None:
    """Some free cases carry the laws, some the derivatives and, for batch_norm, some the inference mode."""
    tags = {tag for description in generate(operator, 0, PROFILES["standard"].free) for tag in description.tags}
    assert tags == {"value", "law", "derivative"} | ({"inference"} if operator == "batch_norm" else set())
