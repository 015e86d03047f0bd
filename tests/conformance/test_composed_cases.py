"""What the cases of the composed operators cover: every recipe, every kind of part, logits over their range."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
import pytest

from normspec.adapters.binding import idle
from normspec.conformance.cases.case import Case, build
from normspec.conformance.cases.composed_deck import DERIVATIVES, LAWS
from normspec.conformance.cases.deck import deck
from normspec.conformance.cases.description import Description
from normspec.conformance.cases.generate import generate
from normspec.conformance.cases.logits import FUSIONS, GATES
from normspec.conformance.cases.recipes import ALONG_SEQUENCE, RECIPES
from normspec.conformance.checks.catalogue import checks_of
from normspec.conformance.engine.tally import findings
from normspec.conformance.judging.subject import Subject
from normspec.conformance.requests.profiles import PROFILES
from normspec.spec.operators import COMPOSED, OPERATORS
from normspec.spec.parts import KINDS, Part, every_part

from .runs import DTYPES, VARIANT, specimen

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

of_every_operator = pytest.mark.parametrize("operator", COMPOSED)

#: The parts with which checks replace others, and the one that plays back a layer's recordings.
OF_CHECKS = {
    "buffered",
    "transposed",
    "strided",
    "common",
    "misshapen",
    "flattened",
    "broadcasting",
    "raising",
    "itself",
    "replayed",
}


def quick(operator: str) -> list[Description]:
    """The quick deck."""
    return deck(operator, "quick", 0)


def parts_of(case: Case) -> Iterator[Part]:
    """Every part of a case, those inside others included."""
    waiting = [*every_part(case.parts)]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += part.inner


@of_every_operator
def test_every_recipe_is_in_the_quick_deck_and_is_generated(operator):
    """The fixed cases hold every recipe, and the generated ones of `standard` most of them."""
    assert {description.recipe for description in quick(operator)} == set(RECIPES[operator])
    drawn = {description.recipe for description in generate(operator, 0, PROFILES["standard"].free)}
    assert len(drawn) > len(RECIPES[operator]) / 2


@of_every_operator
@pytest.mark.parametrize("dtype", DTYPES)
def test_parts_close_over_leaves_that_are_there(operator, dtype):
    """Each leaf that a part names is an input of the case's dtype, and no leaf is there for nothing."""
    for description in quick(operator):
        case = build(description, dtype)
        named = {leaf for part in parts_of(case) for leaf in part.leaves}
        assert named == {name for name in case.inputs if "." in name}
        assert all(case.inputs[name].dtype == case.x.dtype for name in named)
        assert set(case.parts) <= set(OPERATORS[operator].roles)


def test_every_kind_of_part_is_handed_to_some_operator():
    """Each kind is in a recipe, or is one that a check uses as a replacement."""
    met = {part.kind for op in COMPOSED for d in quick(op) for part in parts_of(build(d, "float32"))}
    assert met | OF_CHECKS == set(KINDS)


@of_every_operator
def test_every_check_has_a_case_in_the_quick_deck(operator):
    """Each check runs on some case of the quick deck."""
    cases = [build(description, "float32") for description in quick(operator)]
    for check in checks_of(operator):
        assert any(check.when(case) for case in cases), check.requirement


@pytest.mark.parametrize("dtype", DTYPES)
def test_gate_logits_are_saturated_on_both_sides(dtype):
    """The highway cases reach logits of 30, 100, 10^4 and infinity of either sign, together and alone."""
    kinds = {description.logits for description in quick("highway")}
    assert kinds >= set(GATES)
    values = np.concatenate(
        [build(d, dtype).inputs["gate.z"].astype(np.float64).ravel() for d in quick("highway") if d.recipe == "leaf"]
    )
    for magnitude in (30.0, 100.0, 1e4, np.inf):
        near = values[np.isclose(np.abs(values), magnitude, rtol=0.01)]  # bfloat16 has steps of 1/128
        assert set(np.signbit(near)) == {True, False}, magnitude


@pytest.mark.parametrize("dtype", DTYPES)
def test_fusion_logits_are_tied_spread_and_closed(dtype):
    """The mhc cases reach ties, spreads of 8, 100 and 10^4, one logit of -inf, and 1, 2 and 12 branches."""
    cases = [build(d, dtype) for d in quick("mhc")]
    logits = [case.inputs["logits"].astype(np.float64) for case in cases if case.inputs["logits"] is not None]
    assert {description.logits for description in quick("mhc")} >= set(FUSIONS)
    assert {len(case.parts["branches"]) for case in cases} >= {1, 2, 12}
    spreads = [np.ptp(values) for values in logits if np.isfinite(values).all()]
    for spread in (8.0, 100.0, 1e4):
        assert any(np.isclose(found, spread, rtol=0.01) for found in spreads), spread
    assert any(np.sum(values == values.max()) > 1 and np.ptp(values) > 0 for values in logits)
    assert any(np.isneginf(values).sum() == 1 for values in logits)


@of_every_operator
def test_leaves_differ_from_x_and_from_one_another(operator):
    """No two inputs of x's shape hold the same values, so that taking one for the other shows."""
    for description in quick(operator):
        case = build(description, "float64")
        shaped = [v for n, v in case.inputs.items() if v is not None and v.shape == case.x.shape and v.size > 3]
        saturated = description.logits in ("closed", "open", "zero")
        for place, one in enumerate(shaped):
            for another in shaped[:place]:
                assert saturated or not np.array_equal(one, another), description


def test_what_y_does_not_depend_on_needs_no_gradient():
    """gamma and beta have no effect with a constant sublayer, and the logits none with one branch."""
    by_recipe = {description.recipe: build(description, "float32") for description in quick("pre_norm")}
    for recipe, names in (("leaf", ("gamma", "beta")), ("zero", ("gamma", "beta")), ("tanh_linear", ())):
        assert idle("pre_norm", by_recipe[recipe].parts) == names
    for case in (build(description, "float32") for description in quick("mhc")):
        assert idle("mhc", case.parts) == (("logits",) if len(case.parts["branches"]) == 1 else ())


#: A sound variant of every composed operator, in float32.
PLAIN = {
    "residual": "rs-plain",
    "pre_norm": "pr-two-pass",
    "post_norm": "po-two-pass",
    "highway": "hw-plain",
    "mhc": "mh-plain",
}


@of_every_operator
def test_a_sound_function_passes_the_laws_with_every_recipe(operator):
    """Free cases give the laws and the derivatives to any recipe that reads each group by itself."""
    target = specimen(VARIANT[PLAIN[operator]])
    subject = Subject(target, target.bindings[0], "float32")
    violated = set()
    for recipe in RECIPES[operator]:
        if recipe in ALONG_SEQUENCE:
            continue
        plain = Description(operator, 2, (("witness", 0), ("normal", 1)), eps=2.0**-10, recipe=recipe, count=2)
        case = build(attrs.evolve(plain, requirements=LAWS | DERIVATIVES), "float32")
        for check in checks_of(operator):
            if check.when(case):
                violated |= {(recipe, check.requirement) for one in findings(check, subject, case) if one.violated}
    assert not violated
