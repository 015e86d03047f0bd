"""The single steps between a check and its verdict: a comparison, a count, a case that is passed."""

from __future__ import annotations

from typing import Any, cast

import attrs
import numpy as np
import pytest

from normspec.adapters.binding import Binding
from normspec.adapters.target import Target
from normspec.conformance.cases.case import Case, build
from normspec.conformance.cases.description import Description
from normspec.conformance.cases.sizes import extents
from normspec.conformance.checks.catalogue import checks_of
from normspec.conformance.checks.later_calls import one_value_changed
from normspec.conformance.checks.mhc import permuted
from normspec.conformance.checks.non_finite import _poisoned
from normspec.conformance.engine.engine import Run
from normspec.conformance.engine.tally import Tally
from normspec.conformance.judging.findings import Finding, WorstElement
from normspec.conformance.judging.subject import Subject
from normspec.conformance.judging.truth import Truth
from normspec.conformance.requests.plan import Plan
from normspec.conformance.requests.profiles import profile_of
from normspec.conformance.selftest import selftest
from normspec.reference.formats import FORMATS
from normspec.spec.errors import Unsupported
from normspec.spec.operators import OPERATORS

from .runs import VARIANT, function, result, run, specimen

ROW = build(Description("layer_norm", 3, (("normal", 0), ("normal", 1))), "float32")


def sound(dtype: str = "float32", **conventions: str) -> Subject:
    """A sound layer_norm that declares these conventions."""
    target = specimen(VARIANT["ln-two-pass"])
    return Subject(target, target.bindings[0], dtype, conventions=conventions)


def compared(ratio: float, judged: int = 1) -> WorstElement:
    """A comparison with this worst ratio."""
    return WorstElement(ratio, judged, (0,), 1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("declared", "normative", "violated", "deviates"),
    [
        (0.5, 0.5, False, ()),
        (1.0, 1.0, False, ()),
        (1.0, 1.5, False, ("variance_algorithm",)),
        (1.5, 1.5, True, ()),
    ],
)
def test_a_finding_deviates_where_it_holds_as_declared_alone(declared, normative, violated, deviates) -> None:
    """A ratio of 1 is within the envelope; one above it is a violation, but where declared conventions allow it."""
    subject = sound(variance_algorithm="one-pass")
    found = subject.finding(ROW, "y", lambda strict: compared(normative if strict else declared), "")
    assert (found.violated, found.deviates, found.ratio) == (violated, deviates, declared)


def test_nothing_judged_is_no_violation() -> None:
    """Where no element was judged, there is no ratio either."""
    found = sound().finding(ROW, "y", lambda strict: compared(9.0, 0), "")
    assert (found.violated, found.judged, found.ratio) == (False, False, None)


@pytest.mark.parametrize("dtype", FORMATS)
def test_float32_stands_for_float64_alone(dtype: str) -> None:
    """A function declared to compute float64 in float32 gets float32 cases there, and each other dtype's own cases."""
    assert sound(dtype, float64="float32").format == ("float32" if dtype == "float64" else dtype)
    assert sound(dtype).format == dtype
    assert sound(dtype).narrow == (dtype in ("float16", "bfloat16"))


def test_a_case_that_was_judged_is_counted_once() -> None:
    """Findings that hold, one that was not judged, and the violation that ends the check: one case, the worst ratio."""
    found = [
        Finding(ROW, violated=False, ratio=0.25),
        Finding(ROW, violated=False, ratio=0.125),
        Finding(ROW, violated=False, judged=False, ratio=7.0),
        Finding(ROW, violated=True, ratio=3.0),
        Finding(ROW, violated=True, ratio=5.0),
    ]
    (check,) = (one for one in checks_of("layer_norm") if one.requirement == "LN-F1")
    for several, judged, ratio, verdict in (
        (found, 1, 3.0, "fail"),
        (found[:3], 1, 0.25, "pass"),
        (found[2:3], 0, None, None),
        ([], 0, None, None),
    ):
        tally = Tally(attrs.evolve(check, body=lambda subject, case, several=several: iter(several)))
        assert ROW.description is not None
        tally.run(sound(), ROW, ROW.description)
        assert (tally.judged, tally.ratio) == (judged, ratio)
        assert tally.verdict.value == (verdict or "not-exercised")
        assert tally.tried == {ROW.description}


#: Checks that use gradients though their ids do not say so.
GRADIENTS_TOO = {
    "CM-P5",
    "CM-P6",
    "CM-T3",
    "CM-N7",
    "CM-V2",
    "CM-C8",
    "LN-R2",
    "BN-R2",
    "RM-R2",
    "GN-R2",
    "IN-R2",
    "BN-E4",
}


def test_what_takes_gradients_says_so() -> None:
    """A target without gradients is unsupported in each requirement on gradients, and judged in the others."""
    for operator in OPERATORS:
        for check in checks_of(operator):
            of_gradients = check.requirement[3] == "G" or check.requirement in GRADIENTS_TOO
            assert check.gradient == of_gradients, check.requirement


@pytest.mark.parametrize("dtype", FORMATS)
def test_float64_alone_needs_more_digits(dtype: str) -> None:
    """The truth about narrower data is worked out in float64; that of float64 data is not."""
    plain = Description("layer_norm", 3, (("normal", 0),), gamma="none", beta="none")
    assert Truth(build(plain, dtype))._narrower == (dtype != "float64")


@pytest.mark.parametrize(("values", "bulky"), [(8191, False), (8192, True)])
def test_truths_about_large_cases_are_not_kept(values: int, bulky: bool) -> None:
    """From 8192 values on."""
    assert ROW.replace(x=np.zeros((1, values), np.float32)).bulky == bulky


def test_an_extent_says_its_mode() -> None:
    """batch_norm's extents are swept in training and in inference, each under the name of its mode."""
    for extent in extents("batch_norm"):
        described = cast("dict[str, Any]", extent.case(9, 0))
        assert extent.name.endswith(", training") == described["training"]
        assert extent.name.endswith(", inference") == (not described["training"])


@pytest.mark.parametrize("last", [2.0, 3.0, 0.5])
def test_a_call_that_differs_in_the_last_value_alone_is_made(last: float) -> None:
    """A function that ignores the last value of x, and returns an earlier result, is exposed by that call."""
    case = ROW.replace(x=np.array([[1.0, 4.0, last]], np.float32), gamma=None, beta=None, g=np.ones((1, 3), np.float32))
    honest = VARIANT["ln-two-pass"].build().call
    seen: dict[bytes, Any] = {}

    def remembering(x, *arguments, **settings):
        return seen.setdefault(x.reshape(-1)[:-1].tobytes(), honest(x, *arguments, **settings))

    target = function("layer_norm", remembering)
    subject = Subject(target, target.bindings[0], "float32", forward_only=True)
    assert any(found.violated for found in one_value_changed(subject, case))


def poisoned(operator: str, **described: Any) -> Any:
    """A case of three groups of three values with a NaN in the middle of the middle one."""
    groups = (("normal", 0), ("normal", 1), ("normal", 2))
    return build(Description(operator, 3, groups, **described), "float32")


OWN = [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
ITS_ROW = [[0, 0, 0], [1, 1, 1], [0, 0, 0]]
NOWHERE = [[0, 0, 0], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("operator", "recipe", "y", "dx", "surely"),
    [
        ("layer_norm", "", ITS_ROW, ITS_ROW, ITS_ROW),
        ("residual", "leaf", OWN, NOWHERE, OWN),
        ("mhc", "leaf", OWN, NOWHERE, OWN),
        ("highway", "leaf", OWN, OWN, OWN),
        ("pre_norm", "leaf", OWN, ITS_ROW, OWN),
        ("residual", "scaled", ITS_ROW, ITS_ROW, OWN),
    ],
)
def test_where_a_nan_may_show(operator: str, recipe: str, y: list, dx: list, surely: list) -> None:
    """If parts read nothing, dx of residual and mhc does not depend on x; that of highway does."""
    found = _poisoned(poisoned(operator, **({"recipe": recipe} if recipe else {})), np.nan)
    for mask, expected in ((found.y, y), (found.dx, dx), (found.surely, surely)):
        np.testing.assert_array_equal(np.broadcast_to(mask, (3, 3)), np.array(expected, bool))


def test_a_gain_of_zero_may_hide_a_nan() -> None:
    """y must show it in the whole group, but not where gamma is 0."""
    case = poisoned("layer_norm")
    gained = case.replace(gamma=np.array([1.0, 1.0, 0.0], np.float32))
    np.testing.assert_array_equal(_poisoned(gained, np.nan).shown, np.array([[0, 0, 0], [1, 1, 0], [0, 0, 0]], bool))
    plain = case.replace(gamma=None, beta=None)
    np.testing.assert_array_equal(_poisoned(plain, np.nan).shown, np.array(ITS_ROW, bool))


def test_one_branch_is_not_permuted() -> None:
    """Only several branches can be put in another order; of one the law says nothing."""
    target = specimen(VARIANT["mh-plain"])
    subject = Subject(target, target.bindings[0], "float32")
    for count, findings in ((1, 0), (2, 1), (3, 1)):
        case = build(Description("mhc", 3, (("normal", 0),), recipe="leaf", count=count), "float32")
        assert len(list(permuted(subject, case))) == findings


def test_batch_norm_without_its_plain_form_is_the_dual_of_layer_norm_too() -> None:
    """A function that requires gamma and beta gets ones and zeros."""
    made = VARIANT["bn-two-pass"].build()

    def with_parameters(x, gamma, beta, *arguments, **settings):
        if gamma is None or beta is None:
            raise Unsupported("gamma and beta must be given")
        return made.call(x, gamma, beta, *arguments, **settings)

    report = run(function("batch_norm", with_parameters), requirements={"BN-L12"})
    assert result(report, "BN-L12").verdict.value == "pass"


def test_the_self_test_has_a_seed_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one it takes 0, as a run does; the one that is passed goes to every fault and sound variant."""
    asked: list[Any] = []
    monkeypatch.setattr(selftest, "_in_parallel", lambda jobs, *_: (asked.extend(jobs), ([], False))[1])
    for seed in (None, 0, 7):
        asked.clear()
        assert selftest.selftest(op="layer_norm", seed=seed).seed == (seed or 0)
        assert asked and {arguments[3] for _, arguments in asked} == {seed or 0}


def test_large_calls_are_repeated_in_one_dtype_of_one_binding() -> None:
    """In float32, or the first dtype requested, for the first binding of an operator; elsewhere 64 times."""
    call = VARIANT["ln-two-pass"].build().call
    one = function("layer_norm", call)
    first, second = one.bindings[0], Binding("layer_norm", "second", call, {})
    target = Target("own", "numpy", one.version, one.bridge, (first, second))

    def large(binding: Any, dtype: str, dtypes: tuple[str, ...] | None) -> int:
        plan = Plan((target,), dtypes, "cpu", {}, profile_of("standard"), 0, slow=False)
        return Run(plan).subject(target, binding, dtype).large_repeats

    assert large(first, "float32", None) == 512
    assert large(first, "float16", None) == 64
    assert large(second, "float32", None) == 64
    asked = ("float16", "float64")
    assert [large(first, dtype, asked) for dtype in asked] == [512, 64]


def test_a_stream_without_a_description_starts_from_0() -> None:
    """A case made by hand gets everything else that a check needs from seed 0."""
    own = Case(ROW.operator, ROW.inputs, ROW.settings, ROW.g)
    np.testing.assert_array_equal(own.random("a").integers(0, 99, 9), ROW.random("a").integers(0, 99, 9))


def test_a_subject_anew_has_asked_nothing():
    """It has a session of its own, and no result of the other one."""
    subject = sound()
    subject.outputs(ROW)
    subject.observe(ROW)
    subject.repeated[ROW], subject.by_tracking[ROW], subject.recorded[ROW] = {}, True, {}
    other = subject.anew(in_inference=True)
    assert other.in_inference
    assert other.target is subject.target
    assert other.session is not subject.session
    assert [other.log, other.repeated, other.by_tracking, other.recorded, dict(other._observed)] == [[], {}, {}, {}, {}]
