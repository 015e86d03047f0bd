"""How a fault or a sound variant of a shared step is entered for the operators that have the step."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.adapters.numpy.operators import IMPLEMENTATIONS
from normspec.conformance.faults import FAULTS
from normspec.conformance.sound import DECLARED, SOUND
from normspec.conformance.sound.registry import NORMALISATIONS, prefix_of
from normspec.spec.layout import Layout
from normspec.spec.operators import OPERATORS

NAMED = {fault.name: fault for fault in FAULTS}
#: A call of each normalisation on a small array: the shape of x, and the settings that place its groups.
PLACES = {
    "layer_norm": ((3, 4), {"axes": (-1,)}),
    "batch_norm": ((3, 4, 2), {"channel_axis": 1}),
    "rms_norm": ((3, 4), {"axes": (-1,)}),
    "group_norm": ((3, 4, 2), {"channel_axis": 1, "groups": 2}),
    "instance_norm": ((3, 2, 4), {"channel_axis": -1}),
}


def test_a_fault_of_a_shared_step_is_entered_for_every_normalisation() -> None:
    """It has each page's requirement of layer_norm's number, and the common page's where that is of one."""
    for prefix in ("rm", "gn", "in"):
        assert NAMED[f"{prefix}-eps-on-std"].requirement == f"{prefix.upper()}-F3"
        assert NAMED[f"{prefix}-strides-ignored"].requirement == "CM-V1"


def test_a_fault_is_not_entered_where_it_stands_apart_or_the_page_lacks_the_number() -> None:
    """Of a beta rms_norm knows nothing, nor of a large mean; group_norm has both."""
    for name in ("beta-ignored", "one-pass-variance"):
        assert f"rm-{name}" not in NAMED
        assert f"gn-{name}" in NAMED


def test_a_requirement_that_is_named_goes_before_that_of_the_same_number() -> None:
    """instance_norm has a requirement of its own on groups of one value."""
    assert NAMED["in-one-value-refused"].requirement == "IN-E1"
    assert NAMED["gn-one-value-refused"].requirement == "CM-T1"


@pytest.mark.parametrize("operator", NORMALISATIONS)
def test_there_are_enough_faults_and_variants_of_each_normalisation(operator: str) -> None:
    """The library holds at least 150 faults and 20 sound variants of each."""
    assert sum(fault.operator == operator for fault in FAULTS) >= 150
    assert sum(sound.operator == operator for sound in (*SOUND, *DECLARED)) >= 20


@pytest.mark.parametrize("operator", NORMALISATIONS)
def test_variants_that_form_a_mean_are_of_operators_that_take_one_out(operator: str) -> None:
    """rms_norm has no Welford's update and no variance in one pass."""
    names = {sound.name for sound in (*SOUND, *DECLARED) if sound.operator == operator}
    forms = {f"{prefix_of(operator)}-{name}" for name in ("welford", "merge-tree", "one-pass", "shifted")}
    assert names & forms == (forms if OPERATORS[operator].centred else set())


@pytest.mark.parametrize("operator", NORMALISATIONS)
def test_the_sum_of_what_shares_a_parameter_is_the_layouts(operator: str) -> None:
    """Laid out by parameter, and summed, the terms of x give one number for each gamma."""
    shape, place = PLACES[operator]
    x = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    base = IMPLEMENTATIONS[operator]()
    base.layout = layout = Layout.of(operator, shape, place)  # type: ignore[attr-defined]
    rows = layout.rows(x)
    want = layout.total(rows)
    assert base.by_parameter(rows).shape == (layout.parameters, layout.sharing)  # type: ignore[attr-defined]
    assert (base.parameter_sum(rows).reshape(-1) == want).all()  # type: ignore[attr-defined]
    assert (base.by_parameter(rows).sum(axis=1) == want).all()  # type: ignore[attr-defined]
