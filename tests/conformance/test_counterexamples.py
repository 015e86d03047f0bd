"""A counterexample is as telling as possible: an ordinary case, the call that shows it, and why it is a violation."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import numpy as np
import pytest

import normspec
from normspec import Report, Result
from normspec.adapters.numpy.operators.layer_norm import LayerNorm
from normspec.adapters.target import Target
from normspec.conformance.cases.description import Description
from normspec.conformance.cases.plain import oddness, plainer, plainest
from normspec.conformance.engine.folding import folded, priority
from normspec.conformance.engine.shrink import Shrinker
from normspec.conformance.judging.verdicts import Counterexample, Verdict
from normspec.conformance.reporting.counterexample_rows import wrong_rows

from .runs import FAULT, function, others_at_night, result, run, specimen

SOUND = LayerNorm().implementation()


def explained(target: Target, *requirements: str, dtype: str = "float32", **rest: Any) -> Report:
    """The report on a target and some requirements, its violations shrunk."""
    return run(target, dtypes=(dtype,), requirements=requirements or None, explain=True, **rest)


def shown(name: str, requirement: str = "", dtype: str = "float32") -> Counterexample:
    """The counterexample of a fault's requirement."""
    requirement = requirement or FAULT[name].requirement
    found = result(explained(specimen(FAULT[name]), requirement, dtype=dtype), requirement, dtype).counterexample
    assert found is not None
    return found


# Which case ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "requirement", "dtype"),
    [
        ("ln-gamma-after-reduction", "LN-G1", "float32"),
        ("ln-float64-in-float32", "LN-F1", "float64"),
        ("ln-fix-gamma", "LN-F5", "float32"),
        ("bn-running-var-bessel", "BN-S2", "float32"),
        ("gn-eps-on-std", "GN-F3", "float32"),
        *others_at_night(
            [("ln-gamma-after-reduction", "LN-G1", "bfloat16"), ("ln-dx-no-mean", "LN-G1", "float16")], ()
        ),
    ],
)
def test_eps_and_magnitudes_are_ordinary(name: str, requirement: str, dtype: str) -> None:
    """A mistake that shows with an ordinary eps, on numbers of order one, is shown there."""
    found = shown(name, requirement, dtype)
    assert 1e-6 <= found.settings["eps"] <= 1
    x = np.abs(np.asarray(found.inputs["x"]).astype(np.float64))
    assert ((x == 0) | ((x >= 2.0**-10) & (x <= 2.0**10))).all()
    assert found.got is not None and found.expected is not None
    assert max(abs(found.got), abs(found.expected)) > 2.0**-12  # not -1.3e-30, which nobody can place


def test_what_float32_loses_is_shown_on_a_plain_pair() -> None:
    """float64 that is computed in float32 shows on (-1, 1), and needs no 2^98 for it."""
    found = shown("ln-float64-in-float32", "LN-F1", "float64")
    np.testing.assert_array_equal(found.inputs["x"], [[-1.0, 1.0]])
    assert found.inputs["gamma"] is None and found.inputs["beta"] is None


def test_a_requirement_about_one_value_is_shown_on_one() -> None:
    """BN-E1 is about one value per channel: a smaller case of two would be about something else."""
    found = shown("bn-single-value-nan", "BN-E1")
    assert np.asarray(found.inputs["x"]).shape == (1, 1)


def test_a_mistake_is_seen_in_the_first_digits() -> None:
    """Among the smallest ordinary cases, one with a visible error is chosen."""
    found = shown("ln-eps-on-std", "LN-F1")
    assert found.expected is not None and found.got is not None
    assert abs(found.got - found.expected) > 1e-3 * abs(found.expected)
    assert np.asarray(found.inputs["x"]).size == 2


def test_the_smallest_case_is_what_is_named_for_it() -> None:
    """``violated_on`` describes the case that is shown."""
    found = result(explained(specimen(FAULT["ln-eps-on-std"]), "LN-F1"), "LN-F1")
    assert found.counterexample is not None and found.counterexample.case is not None
    assert found.violated_on == found.counterexample.case.description
    assert found.violated_on.n == 2


def test_the_plainest_cases_come_first() -> None:
    """(-1, 1) with no parameters and eps = 2^-10 is the first of them, and none of them is large."""
    tried = list(plainest(Description("layer_norm", 64, (("offset", 3),) * 7, eps=2.0**-100, gamma="mixed")))
    first = tried[0]
    assert (first.n, first.groups, first.gamma, first.beta, first.eps) == (2, (("witness", 0),), "none", "none", 2**-10)
    assert all(one.n <= 4 and len(one.groups) <= 3 for one in tried)
    assert min(tried, key=oddness) == first


@pytest.mark.parametrize(
    "odder",
    [
        {"eps": 2.0**-100},
        {"groups": (("offset", 0),)},
        {"groups": (("subnormal", 0),)},
        {"n": 3},
        {"groups": (("witness", 0), ("witness", 0))},
        {"groups": (("normal", 0),)},
        {"gamma": "mixed"},
        {"cotangent": "mixed"},
    ],
)
def test_one_description_is_plainer_than_another(odder: dict[str, Any]) -> None:
    """The plain one comes first in each respect; eps and magnitudes count more than sizes."""
    plain = next(plainest(Description("layer_norm", 2, (("witness", 0),))))
    assert oddness(plain) < oddness(attrs.evolve(plain, **odder))
    assert oddness(attrs.evolve(plain, n=4, gamma="mixed")) < oddness(attrs.evolve(plain, eps=2.0**-100))


def test_steps_to_plainer_cases_are_cases() -> None:
    """From a case with several axes each step leads to as many groups as its shape has."""
    groups = tuple(("normal", place) for place in range(6))
    case = Description("layer_norm", 12, groups, features=(3, 4), leading=(2, 3))
    for one in plainer(case):
        assert one.n >= 2
        if one.leading is not None:
            assert int(np.prod(one.leading)) == len(one.groups)
        if one.features is not None:
            assert int(np.prod(one.features)) == one.n


# Exceptions ------------------------------------------------------------------------------------------------------


def _refuses_views(x: Any, gamma: Any, beta: Any, **settings: Any) -> Any:
    if x.ndim > 2 and not x.flags.c_contiguous:
        raise ValueError("a view\nof several lines")
    return SOUND.call(x, gamma, beta, **settings)


def test_an_exception_shrinks_as_a_value_does() -> None:
    """A function that raises on views with three axes is shown on eight values or fewer, with three axes."""
    found = result(explained(function("layer_norm", _refuses_views), "CM-V1"), "CM-V1").counterexample
    assert found is not None
    x = np.asarray(found.inputs["x"])
    assert x.ndim == 3 and x.size <= 8
    assert 1e-6 <= found.settings["eps"] <= 1


def test_an_exception_is_told_with_the_line_that_raised() -> None:
    """Its type, its message, and the innermost line of the user's file."""
    found = result(explained(function("layer_norm", _refuses_views), "CM-V1"), "CM-V1").counterexample
    assert found is not None and found.raised is not None and found.raised.where is not None
    assert (found.raised.type, found.raised.words) == ("ValueError", "ValueError: a view")
    assert found.raised.where.file.endswith("test_counterexamples.py")
    assert found.raised.where.source.startswith("raise ValueError")
    assert found.call is not None and found.call.layouts
    assert found.why == "the call raised, and must return"


# Why -------------------------------------------------------------------------------------------------------------


def _drops_dtype(x: Any, gamma: Any, beta: Any, **settings: Any) -> Any:
    return SOUND.call(x, gamma, beta, **settings).astype(np.float64)


def test_a_violation_shows_no_ratio_below_one() -> None:
    """If a result fails by its dtype or by an exception, errors within the envelope are not given as its ratio."""
    report = explained(function("layer_norm", _drops_dtype), "CM-T2", "LN-F1", "LN-L1", "CM-V1")
    violated = [one for one in report.results if one.verdict.is_violation]
    assert violated
    for one in violated:
        assert one.ratio is None or one.ratio > 1
        assert one.counterexample is not None and one.counterexample.why


@pytest.mark.parametrize(
    "name",
    others_at_night(
        ["ln-eps-on-std", "ln-nan-to-zero", "ln-x-overwritten", "ln-strides-ignored"],
        ["ln-nan-to-zero"],
    ),
)
def test_every_violation_says_why(name: str) -> None:
    """The reason for any violation of a fault is one sentence."""
    report = explained(specimen(FAULT[name]))
    violated = [one for one in report.results if one.verdict.is_violation]
    assert violated
    assert all(one.counterexample is not None and one.counterexample.why for one in violated)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"expected": 1.0, "got": 2.0, "envelope": 0.25}, "the error is 4 times the largest"),
        ({"expected": 1.0, "got": 1.5, "envelope": 0.0}, "it must be this value itself"),
        ({"expected": 1.0, "got": 1.5}, "to the last bit"),
        ({"expected": 1.0, "got": float("nan"), "envelope": 0.5}, "it is nan, and must be finite"),
        ({"expected": float("nan"), "got": 1.5}, "it is finite, and must not be"),
        ({"failure": "accepts"}, "the call returned, and must raise"),
        ({"failure": "shape", "note": "y has shape (2,) in place of (3,)"}, "y has shape (2,)"),
        ({"note": "the list of branches was changed"}, "the list of branches was changed"),
    ],
)
def test_why_is_a_sentence(numbers: dict[str, Any], words: str) -> None:
    """The sentence uses the numbers if there are any, and the observation otherwise."""
    assert words in Counterexample({}, {}, "y", **numbers).why


# One case, one reason --------------------------------------------------------------------------------------------


def test_what_fails_on_one_case_for_one_reason_stands_together() -> None:
    """A wrong gradient is LN-G1's, and CM-S1's on the same numbers: one of them says it."""
    report = explained(specimen(FAULT["ln-gamma-after-reduction"]), "LN-G1", "CM-S1", "LN-G4")
    assert result(report, "CM-S1").same_case_as == "LN-G1"
    assert result(report, "LN-G1").same_case_as == result(report, "LN-G4").same_case_as == ""


def _violated(requirement: str, verdict: Verdict = Verdict.FAIL, **changes: Any) -> Result:
    case = {"inputs": {"x": np.ones((1, 2), np.float32)}, "settings": {"eps": 1.0}, "output": "y", "index": (0, 0)}
    found = Counterexample(**{**case, "expected": 1.0, "got": 2.0, "envelope": 0.5, **changes})
    level = "MUST" if verdict is Verdict.FAIL else "SHOULD"
    return Result("t", "t", "layer_norm", requirement, level, "float32", "cpu", "", verdict, counterexample=found)


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": {"x": np.zeros((1, 2), np.float32)}},
        {"settings": {"eps": 0.5}},
        {"output": "dx"},
        {"index": (0, 1)},
        {"got": 3.0},
        {"got": None, "failure": "raises"},
    ],
)
def test_another_case_or_another_reason_stands_by_itself(change: dict[str, Any]) -> None:
    """A different value, setting, place or received number is reported."""
    same, other = folded([_violated("LN-F1"), _violated("LN-L1", **change)])
    assert (same.same_case_as, other.same_case_as) == ("", "")


def test_a_must_is_not_told_under_a_should() -> None:
    """The most telling violation leads, except advice, which never leads a requirement."""
    first, second = folded([_violated("LN-L2", Verdict.ADVICE), _violated("CM-S1")])
    assert (first.same_case_as, second.same_case_as) == ("CM-S1", "")


def test_the_more_telling_requirement_leads() -> None:
    """The contract before values, then gradients, laws, and the rest that operators have in common."""
    telling = ["CM-C1", "LN-F1", "LN-G1", "LN-L1", "CM-P3"]
    for first, second in itertools.combinations(telling, 2):
        assert priority(first) < priority(second)
        lesser, leading = folded([_violated(second), _violated(first)])
        assert (lesser.same_case_as, leading.same_case_as) == (first, "")


def test_of_cases_as_plain_as_each_other_the_one_that_breaks_less_is_tried_first() -> None:
    """Among those that others were shown on; eps, magnitude and the number of values come before."""
    plain = next(plainest(Description("layer_norm", 2, (("witness", 0),))))
    other = attrs.evolve(plain, gamma="powers")  # odder, with as many values
    larger = attrs.evolve(plain, n=3)
    pool = {plain: {"LN-F1", "LN-F3"}, other: {"LN-G1"}, larger: set()}
    assert Shrinker(pool).adapted_cases(plain) == [other, plain, larger]


def test_a_law_shows_the_exact_value_too() -> None:
    """Where the expected value comes from another call, which may be wrong itself, the exact value stands with it."""
    found = shown("ln-unbiased-variance", "LN-F2")
    assert found.exact is not None and found.expected is not None
    x, eps = np.asarray(found.inputs["x"]), found.settings["eps"]
    exact = np.asarray(normspec.reference.layer_norm(x, None, None, eps=eps, axes=found.settings["axes"]))
    assert found.exact == pytest.approx(float(exact[found.index]), rel=1e-12)
    assert abs(found.expected - found.exact) > 1e-3
    assert [label for label, _ in wrong_rows(found)] == ["wrong", "exact", "implied", "got", "envelope", "error"]


def test_what_another_group_implies_is_shown_with_the_exact_value() -> None:
    """LN-F3 compares groups of one function, all of them wrong: var + eps grows by 3 eps where eps stands inside."""
    found = shown("ln-eps-on-std", "LN-F3")
    assert found.expected is not None and found.exact == 0.75 * found.settings["eps"]  # eps has grown by 4
    assert [label for label, _ in wrong_rows(found)] == ["wrong", "exact", "implied", "got", "envelope", "error"]


def test_the_formula_shows_one_right_value() -> None:
    """The value that the formula gives is the expected one."""
    found = shown("ln-unbiased-variance", "LN-F1")
    assert found.exact is None
    assert "expected" in dict(wrong_rows(found))
