"""Targets whose sums have no fixed order conform, whatever the size at which that begins."""

from __future__ import annotations

from dataclasses import replace

import attrs
import numpy as np
import pytest

from normspec.conformance.cases.case import Case, build
from normspec.conformance.cases.deck import deck
from normspec.conformance.checks.catalogue import checks_of
from normspec.conformance.engine.tally import findings
from normspec.conformance.judging.subject import Subject
from normspec.conformance.selftest.selftest import judge_sound

from .runs import NORMALISATIONS, VARIANT, others_at_night, specimen

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

PREFIX = {"layer_norm": "ln", "batch_norm": "bn"}

#: The variants without an order.
UNORDERED = [name for name in VARIANT if "unordered" in name]


def law(operator: str, seed: int, repeat: int) -> Case:
    """The first case of the laws, with as many groups as asked."""
    first = next(one for one in deck(operator, "quick", seed) if "LN-L1" in one.requirements)
    return build(attrs.evolve(first, n=33, repeat=repeat), "float32")


def violated(subject: Subject, case: Case) -> dict[str, str]:
    """The violations that the laws find."""
    found = {}
    for check in checks_of(subject.operator):
        if check.requirement.startswith(("LN-", "BN-")) and check.when(case):
            for one in findings(check, subject, case):
                if one.violated and one.judged:
                    found[check.requirement] = one.note
    return found


@pytest.mark.parametrize("operator", NORMALISATIONS)
@pytest.mark.parametrize(("above", "groups"), [(60, 5), (1000, 37), (100_000, 3100)])
def test_laws_ask_no_bits_of_sums_without_an_order(operator: str, above: int, groups: int) -> None:
    """No law is violated, below the size at which sums lose their order or above."""
    target = specimen(VARIANT[f"{PREFIX[operator]}-unordered-above-{above}"])
    for seed in range(5 if groups < 100 else 1):
        for case in (law(operator, seed, 1), law(operator, seed, groups)):
            assert violated(Subject(target, target.bindings[0], "float32"), case) == {}


@pytest.mark.parametrize("operator", NORMALISATIONS)
def test_one_case_says_nothing_about_the_next(operator: str) -> None:
    """Whether bits repeat is found out on each case: the same target repeats them on a small one."""
    target = specimen(VARIANT[f"{PREFIX[operator]}-unordered-above-60"])
    subject = Subject(target, target.bindings[0], "float32")
    for groups, same in ((1, True), (20, False)):
        case = law(operator, 0, groups)
        gradients = subject.observe(case).gradients
        assert subject.repeats_itself(case, "y", subject.observe(case).outputs["y"], 16) is same
        assert subject.repeats_itself(case, "dx", gradients["dx"], 16) is same
        assert subject.repeats_itself(case, "dbeta", gradients["dbeta"], 16) is same


def test_an_order_that_varies_excuses_no_other_difference() -> None:
    """If bits do not repeat, the two sides still lie within the sum of their envelopes, or a law is violated."""
    variant = VARIANT["ln-unordered-above-60"]
    built = variant.build()

    def call(x: np.ndarray, *rest: object, **settings: object) -> np.ndarray:
        y = built.call(x, *rest, **settings)
        return y * np.float32(1.001) if x.reshape(-1)[0] < 0 else y

    target = specimen(attrs.evolve(variant, build=lambda: replace(built, call=call)))
    case = law("layer_norm", 0, 20)
    assert "LN-L3" in violated(Subject(target, target.bindings[0], "float32"), case)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", others_at_night(UNORDERED, ["ln-unordered-above-60"]))
def test_a_target_without_an_order_conforms(name: str) -> None:
    """It is accused of nothing over the cases of `quick`, at several seeds."""
    assert not any(judge_sound(name, ("float32",), "quick", seed).accused_by for seed in range(3))
