"""The choice of cases for a check, if it does not run on all of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from normspec.adapters.dtypes import DTYPES
from normspec.adapters.targets import resolve
from normspec.conformance.cases.deck import deck
from normspec.conformance.cases.sizes import SLOW, extents, size_deck
from normspec.conformance.checks.catalogue import checks_of
from normspec.conformance.checks.registry import Check
from normspec.conformance.engine.engine import Run
from normspec.conformance.engine.selection import select_cases, traits_of
from normspec.conformance.judging.findings import Finding
from normspec.conformance.judging.library import Library
from normspec.conformance.judging.verdicts import Verdict
from normspec.conformance.requests.plan import Plan
from normspec.conformance.requests.profiles import PROFILES, Profile, profile_of
from normspec.spec.operators import OPERATORS


@pytest.mark.parametrize(
    ("profile", "slow", "first", "own", "foremost", "others"),
    [
        ("standard", False, True, False, None, None),
        ("standard", False, False, False, 8, 8),
        ("standard", True, True, False, 2, 1),
        ("standard", True, False, False, 1, 1),
        ("standard", True, True, True, 8, 8),
        ("quick", False, True, False, None, 1),
        ("quick", False, True, True, None, None),
        ("quick", False, False, False, 1, 1),
        ("quick", True, True, True, 4, 4),
        ("thorough", True, True, False, None, None),
        ("thorough", True, False, False, None, None),
        ("thorough", True, True, True, None, None),
        ("thorough", False, False, False, None, None),
    ],
)
def test_how_many_cases_a_requirement_is_put_to(profile, slow, first, own, foremost, others):
    """The number in docs/checking.md: it depends on the profile, the cost of a new shape, and whose function it is."""
    minimum = profile_of(profile).minimum
    assert minimum(slow=slow, own=own, first=first, foremost=True) == foremost
    assert minimum(slow=slow, own=own, first=first, foremost=False) == others


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_repetitions_come_in_whole_rounds(profile):
    """They are a multiple of 32, and nowhere more than in the plainest subject."""
    for slow, other, large in product((False, True), repeat=3):
        repeats = profile.repeated(slow=slow, other=other, large=large)
        assert repeats % 32 == 0 and repeats <= profile.repeated(slow=False) == profile.repeats


def test_enough_is_enough_for_every_check():
    """Each check has as many of the chosen cases as requested, or all that exist."""
    library, checks, cases = Library("float32"), checks_of("layer_norm"), deck("layer_norm", "quick", 0)

    def asked(check: Check, among: list) -> int:
        return sum(check.when(library.case(one)) for one in among)

    chosen = select_cases(cases, checks, 2)
    assert set(chosen) < set(cases)
    assert all(asked(check, chosen) >= min(2, asked(check, cases)) for check in checks)


@pytest.mark.parametrize("operator", OPERATORS)
def test_what_a_case_is_good_for_depends_on_no_dtype(operator):
    """A case meets the same checks and has the same traits in every dtype: the choice is made once for all."""
    libraries = [Library(dtype) for dtype in DTYPES]
    for description in profile_of("standard").cases(operator, 0):
        cases = [library.fresh(description) for library in libraries]
        assert len({traits_of(description, case) for case in cases}) == 1
        for check in checks_of(operator):
            assert len({check.when(case) for case in cases}) == 1, check.requirement


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_extent_is_large_in_some_case_of_a_first_binding(operator):
    """If few cases run, they include, once, those of the sweep that every framework runs."""
    for profile in ("quick", "standard"):
        cases = size_deck(operator, profile)
        far = [one for one in cases if one.far]
        assert len(far) == sum(size < extent.largest for extent in extents(operator) for size in SLOW[profile])
        checks = [check for check in checks_of(operator) if check.requirement == "CM-S1"]
        assert set(far) <= set(select_cases(cases, checks, 1, first=True))
        assert set(far) <= set(select_cases(cases, checks, 1, varied=True))
        assert len(select_cases(cases, checks, 1)) == 1


def _run(monkeypatch, body, *, gradient=False, slow=True, profile=None, accepts=None):
    """Run one check of layer_norm, with this body, on NumPy's layers as a slow or a fast framework."""
    seen = []

    def noted(subject, case):
        seen.append(case)
        yield from body(subject, case, len(seen))

    check = Check("LN-F1", noted, lambda case: True, "error", gradient=gradient)
    monkeypatch.setattr("normspec.conformance.engine.engine.checks_of", lambda operator: [check])
    target = replace(resolve("numpy", op="layer_norm"), slow=slow)
    if accepts is not None:
        target = replace(target, bindings=tuple(replace(one, accepts=accepts) for one in target.bindings))
    plan = Plan((target,), ("float32",), "cpu", {}, profile or Profile("quick", 0, 0, 32, slow=2, slow_own=2), 0)
    (result,) = Run(plan).report().results
    return result, seen


def test_what_its_cases_cannot_judge_is_put_to_others(monkeypatch):
    """A check that judges nothing on its chosen cases tries one more, each case at most once."""

    def third_judges(subject, case, turn):
        yield Finding(case, violated=False, judged=turn == 3)

    result, seen = _run(monkeypatch, third_judges)
    assert (result.verdict, result.cases, len(seen)) == (Verdict.PASS, 1, 3)
    assert len(set(map(id, seen))) == 3


def test_what_the_target_declines_is_put_to_others(monkeypatch):
    """A check whose chosen cases are all declined tries one more too."""

    def judges(subject, case, turn):
        yield Finding(case, violated=False)

    _, chosen = _run(monkeypatch, judges)
    declined = {(case.x.shape, case.settings["eps"]) for case in chosen}

    def accepts(shape, settings):
        return "not these" if (shape, settings["eps"]) in declined else None

    result, seen = _run(monkeypatch, judges, accepts=accepts)
    assert (result.verdict, result.cases, len(chosen), len(seen)) == (Verdict.PASS, 1, 2, 1)


def test_what_nothing_can_judge_is_not_exercised(monkeypatch):
    """It tries a few more cases, and then stops: a check that judged nothing never passes."""
    for slow, most in ((True, 3), (False, None)):
        result, seen = _run(monkeypatch, lambda s, case, n: [Finding(case, violated=False, judged=False)], slow=slow)
        assert result.verdict is Verdict.NOT_EXERCISED
        assert most is None or len(seen) == most


def test_gradients_are_taken_on_some_cases_alone(monkeypatch):
    """In a slow framework a check of gradients runs where they are taken, and others on every case that is chosen."""
    checks = [
        Check(name, lambda s, case: [Finding(case, violated=False)], when, "error", gradient=gradient)
        for name, when, gradient in (
            ("LN-F1", lambda case: True, False),
            ("LN-F2", lambda case: "LN-F2" in case.requirements, False),
            ("LN-G1", lambda case: True, True),
        )
    ]
    monkeypatch.setattr("normspec.conformance.engine.engine.checks_of", lambda operator: checks)
    target = replace(resolve("numpy", op="layer_norm"), slow=True)
    plan = Plan((target,), ("float32",), "cpu", {}, Profile("quick", 0, 0, 32, slow=2, slow_own=2), 0)
    judged = {result.requirement: result.cases for result in Run(plan).report().results}
    chosen = select_cases(deck("layer_norm", "quick", 0), checks, 2, first=True)
    large = [one for one in chosen if one.far]
    assert judged["LN-F1"] == len(chosen)
    assert judged["LN-G1"] == 2 + len(large)
    assert judged["LN-F2"] == 2


def test_results_that_are_nan_alike_are_not_judged():
    """Two NaNs say nothing: a function of NaNs passes no law, for all that it repeats itself."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        return np.full_like(x, np.nan)

    target = resolve(layer_norm, op="layer_norm", framework="numpy")
    plan = Plan((target,), ("float32",), "cpu", {}, profile_of("quick"), 0, forward_only=True, explain=False)
    verdicts = {result.requirement: result.verdict for result in Run(plan).report().results}
    assert verdicts["LN-F1"] is Verdict.FAIL
    for law in ("CM-V1", "CM-V3", "LN-L15", "LN-L16"):
        assert verdicts[law] is Verdict.NOT_EXERCISED


def test_a_function_of_ones_own_meets_every_trait():
    """In a slow framework it gets cases of each choice of parameters, each rank and each channel axis."""
    for operator in ("layer_norm", "batch_norm"):
        library, cases = Library("float32"), deck(operator, "quick", 0)
        every = {one: traits_of(one, library.case(one)) for one in cases}
        chosen = select_cases(cases, checks_of(operator), 4, varied=True)
        assert set().union(*every.values()) == set().union(*(every[one] for one in chosen))
    given = {trait[1] for one in chosen for trait in every[one] if trait[0] == "given"}
    channels = {trait[1:] for one in chosen for trait in every[one] if trait[0] == "channels"}
    assert given == {(True, True), (True, False), (False, True), (False, False)}
    assert {axis for axis, training in channels if training} >= {0, 1, -1}
    assert {trait[1] for one in chosen for trait in every[one] if trait[0] == "momentum"} == {True, False}
