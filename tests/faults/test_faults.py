"""The fault library: well-formed values, each of which really differs from a sound implementation."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from normspec.conformance import faults
from normspec.conformance.faults import FAULTS, Fault
from normspec.conformance.sound import SOUND
from normspec.conformance.sound.registry import prefix_of

from .probes import DTYPES, Situation, first_difference, normal

pytestmark = pytest.mark.exhaustive

BASE = {sound.operator: sound.build for sound in SOUND if sound.name.endswith("-two-pass")}

#: Those of the operators that stand alone; test_composed_faults.py has the others.
ALONE = [fault for fault in FAULTS if fault.operator in ("layer_norm", "batch_norm")]

every_fault = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
every_fault_alone = pytest.mark.parametrize("fault", ALONE, ids=lambda fault: fault.name)


def test_names_are_kebab_case_with_the_prefix_of_the_operator() -> None:
    """Every name is lower case, words joined by hyphens, and begins with ln-, bn- or the like."""
    for fault in FAULTS:
        prefix = prefix_of(fault.operator)
        assert re.fullmatch(prefix + r"(-[a-z0-9]+)+", fault.name)


def test_there_are_enough_faults_of_each_operator() -> None:
    """The library holds at least 35 faults an operator."""
    for operator in ("layer_norm", "batch_norm"):
        assert sum(fault.operator == operator for fault in FAULTS) >= 35


def test_every_module_enters_its_faults() -> None:
    """No module of the room is left out of the themes."""
    files = {path.stem for path in Path(faults.__file__).parent.glob("*.py")} - {"__init__", "registry"} | {"composed"}
    assert {theme.__name__.rpartition(".")[2] for theme in faults.THEMES} == files


@every_fault
def test_a_fault_is_described(fault: Fault) -> None:
    """A summary is one sentence, a source an address, a dtype one of the four."""
    assert re.fullmatch(r"[A-Z][^\n]{10,}\.", fault.summary)
    assert all(source.startswith("https://") for source in fault.sources)
    assert fault.dtypes and set(fault.dtypes) <= set(DTYPES)


@every_fault_alone
def test_a_fault_differs_from_a_sound_implementation(fault: Fault) -> None:
    """In every dtype that it declares, some probe tells the fault from the sound base."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype in fault.dtypes:
            assert first_difference(fault.build, BASE[fault.operator], fault.operator, dtype), dtype


@every_fault_alone
def test_building_makes_fresh_state(fault: Fault) -> None:
    """An implementation built later answers the first call as the one built first did."""
    dtype = DTYPES[fault.dtypes[0]]

    def situation(seed: int) -> Situation:
        return Situation(fault.operator, normal(4, 6, seed=seed), dtype, seed=seed)

    first = situation(1).both(fault.build())
    situation(2).both(fault.build())
    assert repr(situation(1).both(fault.build())) == repr(first)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
def test_probes_do_not_tell_a_sound_implementation_from_itself(operator: str, dtype: str) -> None:
    """The probes are deterministic: two sound implementations of one kind agree in all of them."""
    assert first_difference(BASE[operator], BASE[operator], operator, dtype) is None


def test_memory_of_a_view_is_found() -> None:
    """A fault that misreads memory finds the buffer behind a view and the place of its first element."""
    from normspec.conformance.faults.layouts import memory

    buffer = np.arange(12.0)
    view = np.lib.stride_tricks.as_strided(buffer[3:], (2, 2), (16, 8))
    flat, start = memory(view)
    assert (flat == buffer).all()
    assert start == 3
    backwards, start = memory(buffer[::-1])
    assert (backwards == buffer).all()
    assert start == 11
