"""Generated cases depend only on the seed, and a deeper profile has more of them for every requirement."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from normspec.conformance.cases.case import build
from normspec.conformance.cases.generate import generate
from normspec.conformance.cases.regimes import REGIMES
from normspec.conformance.checks.catalogue import checks_of
from normspec.conformance.requests.profiles import PROFILES
from normspec.spec.operators import OPERATORS

from .digests import DECKS, DIGESTS, DRAWN, deck_digest, digest, drawn_digest

COUNT, ROUNDS = 40, 2

#: Requirements that a deeper profile repeats more often instead (Profile.repeats).
REPEATED = {"CM-P2", "CM-P3"}

of_every_operator = pytest.mark.parametrize("operator", OPERATORS)


@pytest.mark.parametrize("seed", [0, 1, 2])
@of_every_operator
def test_the_cases_are_these(operator: str, seed: int) -> None:
    """The cases of `standard` are the same to the last bit, for any Python and NumPy.

    After an intended change to the cases, tests/conformance/digests.py prints the new digests.
    """
    assert digest(operator, seed) == DIGESTS[operator][seed]


@of_every_operator
def test_the_other_profiles_run_these(operator: str) -> None:
    """The descriptions of `quick` and of `thorough` are the same too."""
    assert (deck_digest(operator, "quick"), deck_digest(operator, "thorough")) == DECKS[operator]


@pytest.mark.parametrize("regime", REGIMES)
def test_a_regime_draws_these(regime: str) -> None:
    """Each member of its family has the same values in every dtype."""
    assert drawn_digest(regime) == DRAWN[regime]


@of_every_operator
def test_another_seed_gives_other_descriptions(operator: str) -> None:
    """Two seeds share few descriptions even when the seed inside them is set aside."""

    def told(seed: int) -> set[tuple]:
        return {(d.n, d.groups, d.eps, d.gamma, d.beta) for d in generate(operator, seed, COUNT)}

    assert len(told(5) & told(6)) < COUNT // 4


@of_every_operator
def test_a_longer_run_begins_with_a_shorter_one(operator: str) -> None:
    """More free cases and more rounds keep the earlier cases, and their number is the requested one."""
    free, more = generate(operator, 5, COUNT), generate(operator, 5, 2 * COUNT)
    assert (len(free), len(more), more[:COUNT]) == (COUNT, 2 * COUNT, free)
    varied = generate(operator, 5, 0, 1)
    assert generate(operator, 5, 0, ROUNDS)[: len(varied)] == varied


@of_every_operator
def test_a_variation_keeps_what_its_case_is_for(operator: str) -> None:
    """A variation has the requirements, kinds of groups and recipe of a case of the deck, and other values."""
    kinds = {
        (d.requirements, tuple(name for name, _ in d.groups), d.recipe)
        for d in PROFILES["quick"].cases(operator, 0)
    }  # fmt: skip
    for description in generate(operator, 0, 0, ROUNDS):
        assert (description.requirements, tuple(name for name, _ in description.groups), description.recipe) in kinds
        assert description.seed != 0


@pytest.mark.exhaustive
@of_every_operator
def test_a_deeper_profile_judges_every_requirement_on_more_cases(operator: str) -> None:
    """Each check has more cases in `standard` than in `quick`, and more in `thorough` than in `standard`."""
    found = []
    for name in ("quick", "standard", "thorough"):
        # Two of these rounds show as much as all.
        profile = attrs.evolve(PROFILES[name], rounds=min(PROFILES[name].rounds, ROUNDS))
        cases = profile.cases(operator, 0)
        few = (attrs.evolve(d, repeat=None, leading=None) if d.repeat else d for d in cases)
        found.append([build(d, "float32") for d in few])
    for check in checks_of(operator):
        counts = [sum(check.when(case) for case in cases) for cases in found]
        more = counts[0] < counts[1] < counts[2]
        assert more or check.requirement in REPEATED, (check.requirement, counts)


@of_every_operator
def test_generated_cases_are_finite_where_their_regimes_are(operator: str) -> None:
    """No generated x of float64 holds a NaN or an infinity."""
    for description in generate(operator, 4, COUNT, 1):
        assert np.isfinite(build(description, "float64").x).all(), description
