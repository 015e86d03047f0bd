"""MH-L7 on centred and on causal branches: the positions that they read move y, and no others do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from normspec.adapters.numpy.operators.mhc import Mhc
from normspec.conformance.cases.case import Case, build
from normspec.conformance.cases.composed_deck import composed_deck
from normspec.conformance.checks.mhc import receptive_field
from normspec.conformance.faults import FAULTS
from normspec.conformance.judging.subject import Subject
from normspec.conformance.requests.implementation_targets import implementation_target

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

#: From the later positions to the earlier ones, and the other way.
DIRECTIONS = {"the position after": -1, "the position before": 1}


def sequence(recipe: str) -> Case:
    """The longest sequence of a recipe."""
    cases = [one for one in composed_deck("mhc") if "MH-L7" in one.requirements and one.recipe == recipe]
    return build(max(cases, key=lambda one: one.leading), "float32")


def violated(made: type[Mhc], case: Case) -> bool:
    """Whether the law finds a violation."""
    target = implementation_target("own", "mhc", made().implementation())
    return any(found.violated for found in receptive_field(Subject(target, target.bindings[0], "float32"), case))


def mixing(shift: int) -> type[Mhc]:
    """An mhc that adds a little of a neighbouring position to the fused result."""

    class Mixing(Mhc):
        def combine(self, skip: np.ndarray, outputs: list[np.ndarray], w: np.ndarray) -> np.ndarray:
            y = super().combine(skip, outputs, w)
            if y.ndim < 2:
                return y
            beside = np.roll(y, shift, axis=-2)
            beside[..., 0 if shift > 0 else -1, :] = 0  # the first and the last position are no neighbours
            return y + beside / 8

    return Mixing


@pytest.mark.parametrize("recipe", ["convolutions", "causal"])
def test_branches_move_what_they_read_and_nothing_else(recipe: str) -> None:
    """A sound function satisfies the law on centred branches and on causal ones."""
    assert not violated(Mhc, sequence(recipe))


@pytest.mark.parametrize("recipe", ["convolutions", "causal"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_one_position_more_is_too_many(recipe: str, direction: str) -> None:
    """A function that reads one position further, to either side, moves y where it has to stay, bit for bit."""
    target = implementation_target("own", "mhc", mixing(DIRECTIONS[direction])().implementation())
    stays, _ = receptive_field(Subject(target, target.bindings[0], "float32"), sequence(recipe))
    assert stays.violated and stays.note.startswith("x changed at position")


@pytest.mark.parametrize("recipe", ["convolutions", "causal"])
def test_every_fault_shows_on_either(recipe: str) -> None:
    """The faults that the law must find show on centred branches and on causal ones."""
    made: list[Callable[[], object]] = [fault.build for fault in FAULTS if fault.requirement == "MH-L7"]
    for build_fault in made:
        target = implementation_target("fault", "mhc", build_fault())
        subject = Subject(target, target.bindings[0], "float32")
        assert any(found.violated for found in receptive_field(subject, sequence(recipe)))
