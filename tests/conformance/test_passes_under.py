"""Declared conventions: what fails without its declaration says which it needs, and conforms with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from normspec import Verdict
from normspec.adapters.numpy.operators.implementation import Implementation
from normspec.conformance.sound import DECLARED, Sound

from .runs import DTYPES, FAULT, VARIANT, function, others_at_night, result, run, specimen, variant_function

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

#: For each convention one or two requirements that depend on it, and a dtype in which it shows.
SHOWS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ln-one-pass": ("float32", ("LN-F1", "LN-F8", "LN-G1")),
    "ln-second-stage-narrow": ("float16", ("LN-F1",)),
    "ln-saved-narrow": ("bfloat16", ("LN-G1", "LN-G2")),
    "ln-single-precision-eps": ("float64", ("LN-F1", "LN-F4")),
    "bn-one-pass": ("float64", ("BN-F8", "BN-S2")),
    "bn-second-stage-narrow": ("bfloat16", ("BN-F1",)),
    "bn-saved-narrow": ("float16", ("BN-G1", "BN-G2")),
    "bn-shifted-by-maximum": ("float32", ("CM-S1",)),
    "bn-bessel": ("float32", ("BN-S2", "BN-S3")),
    "bn-old-momentum": ("float32", ("BN-S1", "BN-S4")),
    "bn-refuses-single-value": ("float32", ("BN-E1", "BN-E5")),
    "bn-single-precision-eps": ("float64", ("BN-F1", "BN-F4")),
    "pr-one-pass": ("float32", ("PR-F1",)),
    "pr-native": ("bfloat16", ("PR-F1", "CM-C2")),
    "po-one-pass": ("float32", ("PO-F1",)),
    "po-native": ("float16", ("PO-F1", "PO-G1")),
    "hw-native": ("bfloat16", ("HW-F1", "HW-G3")),
    "mh-native": ("float16", ("MH-F1", "MH-G3")),
    "mh-native-divided-last": ("float16", ("MH-F1", "MH-G3")),
    "mh-native-online": ("float16", ("MH-F1", "MH-G3")),
    "ln-float32-for-float64": ("float64", ("LN-F1", "LN-G1")),
    "bn-float32-for-float64": ("float64", ("BN-F1", "BN-G1", "BN-S2")),
    "rs-float32-for-float64": ("float64", ("RS-F1",)),
    "pr-float32-for-float64": ("float64", ("PR-F1", "CM-C2")),
    "po-float32-for-float64": ("float64", ("PO-F1",)),
    "hw-float32-for-float64": ("float64", ("HW-F1", "HW-G3")),
    "mh-float32-for-float64": ("float64", ("MH-F1", "MH-G3")),
    "ln-promoted": ("float16", ("CM-D2",)),
    "bn-promoted": ("bfloat16", ("CM-D2",)),
    "ln-one-plus-gamma": ("float32", ("LN-F1", "LN-G1")),
    "bn-one-plus-gamma": ("float16", ("BN-F1", "BN-G1")),
}
#: What each run tests of them: one for each convention, and one composed operator for each that these have.
NOW = {
    "ln-one-pass", "ln-second-stage-narrow", "bn-saved-narrow", "ln-single-precision-eps", "bn-bessel",
    "bn-old-momentum", "bn-refuses-single-value", "ln-float32-for-float64", "bn-promoted", "ln-one-plus-gamma",
    "pr-one-pass", "mh-native-divided-last", "mh-float32-for-float64",
}  # fmt: skip
#: Within the normative envelope on all of the deck: a shift by a value of the group costs at most a factor of n.
TIGHT = {"ln-shifted", "bn-shifted", "ln-shifted-by-maximum"}
#: Translated before the call, so that nothing differs in the values.
TRANSLATED = {"bn-old-momentum", "ln-one-plus-gamma", "bn-one-plus-gamma"}


def declaration(variant: Sound) -> tuple[str, ...]:
    """The variant's conventions, as they are named under a failure."""
    return tuple(f"{key}={value}" for key, value in variant.conventions.items())


def test_every_declared_variant_is_tested() -> None:
    """No declared variant is left out of these tests, except those that other operators share with these."""
    shared = {variant.name for variant in DECLARED if variant.operator in ("rms_norm", "group_norm", "instance_norm")}
    shared.add("ln-native")  # the same roundings show in pre_norm's and post_norm's
    assert {variant.name for variant in DECLARED} - shared == set(SHOWS) | TIGHT


@pytest.mark.parametrize("name", others_at_night(SHOWS, NOW))
def test_an_undeclared_variant_fails_and_its_convention_is_named(name: str) -> None:
    """Checked without its declaration a variant fails, and the report names that very declaration, once."""
    variant, (dtype, requirements) = VARIANT[name], SHOWS[name]
    report = run(specimen(variant, declared=False), dtypes=(dtype,), requirements=requirements, explain=True)
    for requirement in requirements:
        assert result(report, requirement, dtype).verdict is Verdict.FAIL
    assert report.subjects[0]["passes_under"] == declaration(variant)


#: Declared variants with few cases, each with its violations in all dtypes.
WHOLE = ("ln-second-stage-narrow", "ln-float32-for-float64", "rs-float32-for-float64")


@pytest.mark.parametrize("name", others_at_night(WHOLE, ["rs-float32-for-float64"]))
def test_one_declaration_is_named_for_all_dtypes_and_requirements(name: str) -> None:
    """For all requirements and dtypes of a run the same declaration is found, and a run confirms it."""
    report = run(specimen(VARIANT[name], declared=False), dtypes=DTYPES, explain=True)
    assert len({(found.dtype, found.requirement) for found in report.failures()}) > 5
    assert report.subjects[0]["passes_under"] == declaration(VARIANT[name])


def test_a_composed_operator_with_more_digits_than_float32_is_not_excused() -> None:
    """Parts compute in float64 whatever the operator does, so one y in float32 would tell; this one has 30 bits."""
    sound = VARIANT["rs-plain"].build()
    target = function("residual", lambda *arguments, **options: sound.call(*arguments, **options) * (1 + 2.0**-30))
    report = run(target, dtypes=("float64",), requirements={"RS-F1"}, explain=True, forward_only=True)
    assert report.failures() and report.subjects[0]["passes_under"] == ()


def test_two_declarations_are_named_where_it_takes_both() -> None:
    """The report on a function that follows two conventions at once names both."""
    narrow, wide = VARIANT["ln-second-stage-narrow"].build(), VARIANT["ln-float32-for-float64"].build()

    def of(x: Any) -> Implementation:
        return wide if x.dtype == np.float64 else narrow

    target = function(
        "layer_norm",
        lambda x, *rest, **settings: of(x).call(x, *rest, **settings),
        vjp=lambda x, *rest, **settings: of(x).vjp(x, *rest, **settings),
    )
    wanted = {"LN-F1", "LN-G1"}
    report = run(target, dtypes=("float16", "float32", "float64"), requirements=wanted, explain=True)
    assert set(report.subjects[0]["passes_under"]) == {"storage=H1", "float64=float32"}


@pytest.mark.parametrize(
    "name", others_at_night(["ln-output-truncated", "bn-output-truncated"], ["ln-output-truncated"])
)
def test_results_that_are_cut_off_are_not_excused(name: str) -> None:
    """y cut off to 16 bits lies within the envelopes of weaker classes, which round to nearest: none is named."""
    report = run(specimen(FAULT[name]), dtypes=("float16", "bfloat16"), requirements={"LN-F1", "BN-F1"}, explain=True)
    assert {one.dtype for one in report.failures()} == {"float16", "bfloat16"}
    assert report.subjects[0]["passes_under"] == ()


def test_what_is_violated_elsewhere_is_not_excused() -> None:
    """The report on a function that is right in bfloat16 under storage=native, but wrong in float32, names none."""
    narrow, wrong = VARIANT["ln-second-stage-narrow"].build(), FAULT["ln-eps-on-std"].build()
    target = function(
        "layer_norm", lambda x, *rest, **s: (narrow if x.dtype.itemsize == 2 else wrong).call(x, *rest, **s)
    )
    report = run(target, dtypes=("float16", "float32"), requirements={"LN-F1"}, explain=True)
    assert {found.dtype for found in report.failures()} == {"float16", "float32"}
    assert report.subjects[0]["passes_under"] == ()


@pytest.mark.parametrize("name", SHOWS)
def test_a_declared_variant_conforms_and_deviates(name: str) -> None:
    """With its declaration the same results conform, reported as the deviation that was declared."""
    variant, (dtype, requirements) = VARIANT[name], SHOWS[name]
    report = run(specimen(variant), dtypes=(dtype,), requirements=requirements)
    assert report.conforms
    expected = Verdict.PASS if name in TRANSLATED else Verdict.DEVIATES
    for requirement in requirements:
        found = result(report, requirement, dtype)
        assert found.verdict is expected
        assert name in TRANSLATED or declaration(variant)[0] in found.reason


@pytest.mark.parametrize("name", sorted(TIGHT))
def test_a_variant_within_the_normative_envelope_needs_no_declaration(name: str) -> None:
    """A shifted variance conforms on these cases without its declaration."""
    assert run(specimen(VARIANT[name], declared=False)).conforms


def test_the_caller_can_declare_in_place_of_the_target() -> None:
    """A convention given to the run counts like one of the target's own."""
    target = specimen(VARIANT["bn-bessel"], declared=False)
    report = run(target, requirements={"BN-S2"}, conventions={"running_variance": "bessel"})
    assert report.conforms
    assert result(report, "BN-S2").verdict is Verdict.DEVIATES
    assert "declared by the caller" in result(report, "BN-S2").reason


def test_a_wrong_declaration_does_not_help() -> None:
    """A sound function that declares something untrue violates its declaration."""
    report = run(specimen(VARIANT["bn-two-pass"]), requirements={"BN-S2"}, conventions={"running_variance": "bessel"})
    assert result(report, "BN-S2").verdict is Verdict.FAIL


def test_a_fault_that_no_convention_excuses_names_none() -> None:
    """Under a fault of eps nothing is suggested: no declaration makes it right."""
    fault = FAULT["ln-eps-on-std"]
    report = run(specimen(fault), requirements={fault.requirement}, explain=True)
    assert report.subjects[0]["passes_under"] == ()


def nan_in_single_values(x, gamma, beta, g, *, eps, axes):
    """dx is NaN in groups of one value in which the cube of a scale with eps overflows, times a deviation of zero."""
    dx, *others = VARIANT["ln-two-pass"].build().vjp(x, gamma, beta, g, eps=eps, axes=axes)
    alone = all(x.shape[axis] == 1 for axis in axes) and eps > 0
    lost = alone & (np.abs(x.astype(np.float64)) > 2.0**42 * np.sqrt(eps))
    return (np.where(lost, np.nan, dx).astype(dx.dtype), *others)


def zero_of_wide_numbers(call, x, *arguments, **settings):
    """y is zero where the mean square is beyond float32's range."""
    y = call(x, *arguments, **settings)
    return np.where(np.abs(x).max(initial=0.0) > 2.0**100, np.zeros_like(y), y)


def infinite_beyond_a_sum(call, x, *arguments, **settings):
    """y is infinite where the squares of a group have a sum beyond float16's range."""
    y = call(x, *arguments, **settings)
    squares = np.square(x.astype(np.float64)).sum(axis=-1, keepdims=True)
    return np.where((x.dtype == np.float16) & (squares > 65504), np.inf, y).astype(y.dtype)


@pytest.mark.parametrize(
    ("target", "dtype", "asked"),
    [
        (function("layer_norm", VARIANT["ln-two-pass"].build().call, vjp=nan_in_single_values), "float32", {"LN-G1"}),
        (variant_function("rm-plain", zero_of_wide_numbers), "float64", {"RM-F1"}),
        (variant_function("ln-two-pass", infinite_beyond_a_sum), "float16", {"LN-F1"}),
    ],
    ids=["one-pass", "float32", "storage"],
)
def test_a_declaration_that_says_nothing_about_the_wrong_values_is_not_named(target, dtype, asked) -> None:
    """Where a class promises nothing, anything passes: that is no reason to declare it."""
    report = run(target, dtypes=(dtype,), profile="standard", seed=1, requirements=asked, explain=True)
    assert {one.requirement for one in report.failures()} == asked
    assert report.subjects[0]["passes_under"] == () and not any(cause.convention for cause in report.causes)
