"""Each aspect of the formula is judged separately: a fault fails its own aspect and the formula, and no other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import pytest

from normspec.conformance.faults import FAULTS, Fault
from normspec.conformance.judging.verdicts import Verdict
from normspec.conformance.sound import DECLARED, SOUND, Sound

from .aspects import PREFIX, aspects_of, failed, forget, verdicts

DTYPES = ("float16", "bfloat16", "float32", "float64")
OPERATORS = tuple(PREFIX)
#: The faults of one aspect, and those of the formula as a whole.
OF_AN_ASPECT = [
    fault for fault in FAULTS if fault.operator in OPERATORS and fault.requirement in aspects_of(fault.operator)
]
OF_THE_WHOLE = [
    fault
    for fault in FAULTS
    if fault.requirement in {f"{prefix}-F1" for prefix in PREFIX.values()} and fault.kind == "value"
]
VARIANTS = [sound for sound in (*SOUND, *DECLARED) if sound.operator in OPERATORS]

#: Aspects that a fault of the whole formula fails, and why. (Kind "dtype" loses digits, which may show anywhere.)
BESIDE = {
    "divides-by-reciprocal-root": {"F3", "F4"},  # the divisor of y falls as var + eps grows, by another amount
    "reciprocal-root-twelve-bits": {"F3", "F4"},  # the root has fewer digits than var + eps needs
    "reciprocal-root-single-precision": {"F3", "F4"},  # likewise
    "halves-merged-as-moments": {"F2"},  # (x, x) has other halves than x
    "one-pass-up-to-a-hundred": {"F8"},  # it loses digits only under a mean
    "result-clipped-at-65504": {"F5"},  # a case of the affine map has results beyond that
}
#: What a fault of an aspect fails besides that aspect and the formula, and why.
BOTH = {
    # eps is scaled too.
    "rm-scaled-by-root-of-n-inverted": {"F4"},
    # Cases of eps have a gamma of another size than the calls before them.
    "rm-stale-gamma": {"F4"},
    # Some cases of gamma have as many channels as positions, and gamma is read along the other axis too.
    **{f"{prefix}-channel-axis-{what}": {"F5"} for prefix in ("gn", "in") for what in ("found-by-size", "always-one")},
    **{f"{prefix}-negative-channel-axis-misread": {"F5"} for prefix in ("gn", "in")},
}
#: Aspects that a fault fails in some dtypes or at some seeds only, and why.
AT_SOME_SEEDS = {
    # Which call came before a case of eps depends on the cases.
    "rm-stale-gamma": {"F4"},
    # In bfloat16 the root that eps limits grows by less than its envelope.
    "rm-eps-bounds-root": {"F4"},
    # In float16 an eps with eight digits is near enough to the given one at two of twenty seeds.
    **{f"{prefix.lower()}-eps-bfloat16": {"F4"} for prefix in PREFIX.values()},
}
#: Seeds of the campaign.
SEEDS = range(20)
Specimen = TypeVar("Specimen", Fault, Sound)


def expected(fault: Fault) -> set[str]:
    """What a fault of an aspect must fail: the aspect, the formula, and the exceptions named with their reasons."""
    prefix = PREFIX[fault.operator]
    return {f"{prefix}-F1", fault.requirement} | {f"{prefix}-{other}" for other in BOTH.get(fault.name, ())}


def shown_in(fault: Fault) -> str:
    """The dtype that a fault is shown in where one is enough."""
    return "float32" if "float32" in fault.dtypes else fault.dtypes[0]


@pytest.fixture(autouse=True, scope="module")
def _forgotten():
    yield
    forget()


@pytest.mark.exhaustive
@pytest.mark.parametrize("fault", OF_AN_ASPECT, ids=lambda fault: fault.name)
def test_a_fault_fails_its_aspect_and_the_formula_alone(fault: Fault):
    """Of F1 to F8 it fails these two."""
    assert failed(fault, shown_in(fault), 0) == expected(fault)


@pytest.mark.exhaustive
@pytest.mark.parametrize("fault", OF_THE_WHOLE, ids=lambda fault: fault.name)
def test_a_fault_of_the_whole_formula_fails_no_aspect(fault: Fault):
    """Of F1 to F8 it fails only F1, apart from the exceptions named with their reasons."""
    allowed = BESIDE.get(fault.name.partition("-")[2], set())
    found = {requirement.partition("-")[2] for requirement in failed(fault, shown_in(fault), 0)}
    assert {"F1"} <= found <= {"F1"} | allowed


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_aspect_of_a_sound_function_passes_in_every_dtype(operator: str, dtype: str):
    """All of them are exercised: no bound is so wide that nothing is judged."""
    plain = next(sound for sound in SOUND if sound.name == f"{PREFIX[operator].lower()}-two-pass")
    assert set(verdicts(plain, dtype, 0).values()) == {Verdict.PASS}


def on_every_seed(specimens: Sequence[Specimen], dtype: str) -> Iterator[tuple[int, Specimen, set[str]]]:
    """The requirements of F1 to F8 that each specimen fails, seed by seed."""
    for seed in SEEDS:
        forget()
        for specimen in specimens:
            yield seed, specimen, failed(specimen, dtype, seed)


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", OPERATORS)
def test_the_table_of_faults_on_many_seeds(operator: str, dtype: str):
    """On every seed each fault of an aspect fails its aspect and the formula, and no other."""
    faults = [fault for fault in OF_AN_ASPECT if fault.operator == operator and dtype in fault.dtypes]
    found = on_every_seed(faults, dtype)
    others = {fault: {f"{PREFIX[operator]}-{one}" for one in AT_SOME_SEEDS.get(fault.name, ())} for fault in faults}
    assert [(seed, fault.name, ids) for seed, fault, ids in found if not ids ^ expected(fault) <= others[fault]] == []


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", OPERATORS)
def test_no_sound_variant_fails_on_many_seeds(operator: str, dtype: str):
    """On every seed each sound variant passes all aspects, declared or not."""
    variants = [sound for sound in VARIANTS if sound.operator == operator]
    assert [(seed, sound.name, ids) for seed, sound, ids in on_every_seed(variants, dtype) if ids] == []
