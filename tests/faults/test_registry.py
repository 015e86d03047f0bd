"""Faults and sound variants as they are entered: well-formed, each made afresh, one for each operator with the step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from normspec.adapters.numpy.operators import IMPLEMENTATIONS
from normspec.adapters.numpy.operators.staged import Staged
from normspec.conformance import faults
from normspec.conformance.faults import FAULTS, composed
from normspec.conformance.faults.layouts import memory
from normspec.conformance.sound import DECLARED, SOUND
from normspec.conformance.sound.registry import NORMALISATIONS, prefix_of
from normspec.reference.formats import ALL_DTYPES
from normspec.spec.layout import Layout
from normspec.spec.operators import OPERATORS

NAMED = {fault.name: fault for fault in FAULTS}
VARIANTS = (*SOUND, *DECLARED)
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
    """rms_norm has no beta and no large mean; group_norm has both."""
    for name in ("beta-ignored", "one-pass-variance"):
        assert f"rm-{name}" not in NAMED
        assert f"gn-{name}" in NAMED


def test_a_summary_speaks_of_a_mean_and_a_variance_only_where_there_are_any() -> None:
    """A fault that rms_norm shares is described in its own words; one that it alone has may mention a mean."""
    assert NAMED["ln-statistics-narrow"].summary == "Sums mean and variance in the 16-bit dtype of x."
    assert NAMED["rm-statistics-narrow"].summary == "Sums the mean square in the 16-bit dtype of x."
    shared = {one.name.partition("-")[2] for one in (*FAULTS, *VARIANTS) if one.operator == "layer_norm"}
    told = [one for one in (*FAULTS, *VARIANTS) if one.name.startswith("rm-") and one.name[3:] in shared]
    assert len(told) > 150
    assert [one.name for one in told if re.search(r"variance|deviation|\bvar\b|mean and", one.summary)] == []


def test_a_requirement_that_is_named_goes_before_that_of_the_same_number() -> None:
    """instance_norm has its own requirement on groups of one value."""
    assert NAMED["in-one-value-refused"].requirement == "IN-E1"
    assert NAMED["gn-one-value-refused"].requirement == "CM-T1"


@pytest.mark.parametrize("operator", OPERATORS)
def test_there_are_enough_faults_and_variants_of_each_operator(operator: str) -> None:
    """A normalisation has at least 150 faults and 20 sound variants, a composed operator 70 and 7."""
    most = (70, 7) if OPERATORS[operator].composed else (150, 20)
    assert sum(fault.operator == operator for fault in FAULTS) >= most[0]
    assert sum(sound.operator == operator for sound in VARIANTS) >= most[1]


def test_names_are_kebab_case_with_the_prefix_of_the_operator() -> None:
    """Every name is lower case, words joined by hyphens, begins with ln-, bn- or another prefix, and is unique."""
    for library in (FAULTS, VARIANTS):
        assert len({one.name for one in library}) == len(library)
        for one in library:
            assert re.fullmatch(prefix_of(one.operator) + r"(-[a-z0-9]+)+", one.name)


def test_faults_and_variants_are_described() -> None:
    """A summary is one sentence, a source an address, a dtype one of the four; a variant's declarations are listed."""
    for fault in FAULTS:
        assert re.fullmatch(r"[A-Z][^\n]{10,}\.", fault.summary), fault.name
        assert all(source.startswith("https://") for source in fault.sources), fault.name
        assert fault.dtypes and set(fault.dtypes) <= set(ALL_DTYPES), fault.name
    assert not any(sound.conventions for sound in SOUND)
    assert all(sound.conventions for sound in DECLARED)


@pytest.mark.parametrize(("room", "apart"), [(faults, {"registry"}), (composed, set())], ids=["alone", "composed"])
def test_every_module_enters_its_faults(room: ModuleType, apart: set[str]) -> None:
    """No module of the room is left out of the themes."""
    inside = Path(str(room.__file__)).parent.iterdir()
    names = {path.stem for path in inside if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert {theme.__name__.rpartition(".")[2] for theme in room.THEMES} == names - apart - {"__init__"}


def _below(step: type) -> Iterator[type]:
    for one in step.__subclasses__():
        yield one
        yield from _below(one)


def test_building_makes_fresh_state() -> None:
    """No class of a fault or sound variant holds mutable state: state belongs to the instance."""
    steps = {step for one in _below(Staged) for step in one.__mro__ if step.__module__.startswith("normspec.")}
    assert len(steps) > 1000
    kept = [(step, name) for step in steps for name, value in vars(step).items() if type(value).__hash__ is None]
    assert [(step, name) for step, name in kept if not name.startswith("__")] == []


def test_memory_of_a_view_is_found() -> None:
    """A fault that misreads memory finds the buffer behind a view and the place of its first element."""
    buffer = np.arange(12.0)
    view = np.lib.stride_tricks.as_strided(buffer[3:], (2, 2), (16, 8))
    flat, start = memory(view)
    assert (flat == buffer).all()
    assert start == 3
    backwards, start = memory(buffer[::-1])
    assert (backwards == buffer).all()
    assert start == 11


@pytest.mark.parametrize("operator", NORMALISATIONS)
def test_variants_that_form_a_mean_are_of_operators_that_take_one_out(operator: str) -> None:
    """rms_norm has no Welford's update and no variance in one pass."""
    names = {sound.name for sound in VARIANTS if sound.operator == operator}
    forms = {f"{prefix_of(operator)}-{name}" for name in ("welford", "merge-tree", "one-pass", "shifted")}
    assert names & forms == (forms if OPERATORS[operator].centred else set())


@pytest.mark.parametrize("operator", NORMALISATIONS)
def test_the_sum_of_what_shares_a_parameter_is_the_layouts(operator: str) -> None:
    """Arranged by parameter and summed, the terms of x give one number for each gamma."""
    shape, place = PLACES[operator]
    x = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    base = IMPLEMENTATIONS[operator]()
    base.layout = layout = Layout.of(operator, shape, place)  # type: ignore[attr-defined]
    rows = layout.rows(x)
    want = layout.total(rows)
    assert base.by_parameter(rows).shape == (layout.parameters, layout.sharing)  # type: ignore[attr-defined]
    assert (base.parameter_sum(rows).reshape(-1) == want).all()  # type: ignore[attr-defined]
    assert (base.by_parameter(rows).sum(axis=1) == want).all()  # type: ignore[attr-defined]
