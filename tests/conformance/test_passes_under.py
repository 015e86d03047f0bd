"""Declared conventions: what fails without its declaration says which it needs, and conforms with it."""

from __future__ import annotations

import pytest

from normspec import Verdict
from normspec.conformance.sound import DECLARED, Sound

from .runs import FAULT, VARIANT, result, run, specimen

#: One or two requirements that each convention bears on, and a dtype in which it shows.
SHOWS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ln-one-pass": ("float32", ("LN-F1", "LN-F8", "LN-G1")),
    "ln-second-stage-narrow": ("float16", ("LN-F1", "LN-F5")),
    "ln-saved-narrow": ("bfloat16", ("LN-G1", "LN-G2")),
    "ln-single-precision-eps": ("float64", ("LN-F1", "LN-F4")),
    "bn-one-pass": ("float64", ("BN-F8", "BN-S2")),
    "bn-second-stage-narrow": ("bfloat16", ("BN-F1", "BN-F5")),
    "bn-saved-narrow": ("float16", ("BN-G1", "BN-G2")),
    "bn-bessel": ("float32", ("BN-S2", "BN-S3")),
    "bn-old-momentum": ("float32", ("BN-S1", "BN-S4")),
    "bn-refuses-single-value": ("float32", ("BN-E1",)),
    "bn-single-precision-eps": ("float64", ("BN-F1", "BN-F4")),
    "pr-one-pass": ("float32", ("PR-F1",)),
    "pr-native": ("bfloat16", ("PR-F1", "CM-C2")),
    "po-one-pass": ("float32", ("PO-F1",)),
    "po-native": ("float16", ("PO-F1", "PO-G1")),
    "hw-native": ("bfloat16", ("HW-F1", "HW-G3")),
    "mh-native": ("float16", ("MH-F1", "MH-G3")),
    "ln-float32-for-float64": ("float64", ("LN-F1", "LN-G1", "LN-F8")),
    "bn-float32-for-float64": ("float64", ("BN-F1", "BN-G1", "BN-S2")),
    "rs-float32-for-float64": ("float64", ("RS-F1",)),
    "pr-float32-for-float64": ("float64", ("PR-F1", "CM-C2")),
    "po-float32-for-float64": ("float64", ("PO-F1",)),
    "hw-float32-for-float64": ("float64", ("HW-F1", "HW-G3")),
    "mh-float32-for-float64": ("float64", ("MH-F1", "MH-G3")),
    "ln-promoted": ("float16", ("CM-D1",)),
    "bn-promoted": ("bfloat16", ("CM-D1",)),
    "ln-one-plus-gamma": ("float32", ("LN-F1", "LN-G1")),
    "bn-one-plus-gamma": ("float16", ("BN-F1", "BN-G1")),
}
#: Within the normative envelope on all of the deck: a shift by the first value costs at most a factor of n.
TIGHT = {"ln-shifted", "bn-shifted"}
#: Translated before the call, so that nothing differs in the values.
TRANSLATED = {"bn-old-momentum", "ln-one-plus-gamma", "bn-one-plus-gamma"}


def declaration(variant: Sound) -> tuple[str, ...]:
    """The variant's conventions, as they are named under a failure."""
    return tuple(f"{key}={value}" for key, value in variant.conventions.items())


def test_every_declared_variant_is_tested() -> None:
    """No declared variant is left out of these tests."""
    assert {variant.name for variant in DECLARED} == set(SHOWS) | TIGHT


@pytest.mark.parametrize("name", [name for name in SHOWS if not name.endswith(("float64", "promoted", "gamma"))])
def test_an_undeclared_variant_fails_and_its_convention_is_named(name: str) -> None:
    """Checked without its declaration a variant fails, and each failure names that very declaration."""
    variant, (dtype, requirements) = VARIANT[name], SHOWS[name]
    report = run(specimen(variant, declared=False), dtypes=(dtype,), requirements=requirements, explain=True)
    for requirement in requirements:
        found = result(report, requirement, dtype)
        assert found.verdict is Verdict.FAIL
        assert found.passes_under == declaration(variant)


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
    """A sound function that declares what it does not follow violates what it declared."""
    report = run(specimen(VARIANT["bn-two-pass"]), requirements={"BN-S2"}, conventions={"running_variance": "bessel"})
    assert result(report, "BN-S2").verdict is Verdict.FAIL


def test_a_fault_that_no_convention_excuses_names_none() -> None:
    """Under a fault of eps nothing is suggested: no declaration makes it right."""
    fault = FAULT["ln-eps-on-std"]
    report = run(specimen(fault), requirements={fault.requirement}, explain=True)
    assert result(report, fault.requirement).passes_under == ()
