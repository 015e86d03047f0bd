"""Each choice of parameters meets each place of the groups, in a case of its own."""

from __future__ import annotations

from typing import Any

import pytest

from normspec.conformance.cases.absent_parameters import absent_parameters_deck
from normspec.conformance.cases.case import Case, build
from normspec.spec.operators import OPERATORS

NORMS = ("layer_norm", "batch_norm", "rms_norm", "group_norm", "instance_norm")


def cases(operator: str, profile: str) -> list[Case]:
    """The cases of a profile."""
    return [build(one, "float32") for one in absent_parameters_deck(operator, profile)]


def place_of(case: Case) -> tuple[Any, ...]:
    """Where the groups lie, how many there are of one kind, and in which mode."""
    settings = case.settings
    if "axes" in settings:
        return case.x.ndim, len(settings["axes"])
    channels = case.x.shape[settings["channel_axis"]]
    groups = settings.get("groups")
    number = "" if groups is None else {1: "one", channels: "each"}.get(groups, "some")
    return case.x.ndim, settings["channel_axis"], number, settings.get("training")


def given(case: Case) -> tuple[bool, ...]:
    """Which parameters are given."""
    return tuple(case.inputs[name] is not None for name in ("gamma", "beta") if name in case.record.arguments)


@pytest.mark.parametrize(
    ("operator", "places"),
    [("layer_norm", 12), ("rms_norm", 12), ("batch_norm", 14), ("group_norm", 21), ("instance_norm", 6)],
)
def test_standard_has_each_choice_on_each_place(operator: str, places: int) -> None:
    """Of several samples and, without parameters, of one."""
    found = {(place_of(case), given(case)) for case in cases(operator, "standard")}
    choices = 2 ** len(given(cases(operator, "standard")[0]))
    assert len(found) == places * choices == len(cases(operator, "standard"))
    if OPERATORS[operator].has_channels:
        bare = [case for case in cases(operator, "standard") if not any(given(case)) and case.x.ndim > 2]
        assert {case.x.shape[0] for case in bare} == {1}


@pytest.mark.parametrize("operator", NORMS)
def test_quick_has_each_place_once(operator: str) -> None:
    """Not in each mode, and not with each number of groups."""
    found = [place_of(case)[:2] for case in cases(operator, "quick")]
    assert sorted(set(found)) == sorted(found)
    assert set(found) == {place_of(case)[:2] for case in cases(operator, "standard")}
