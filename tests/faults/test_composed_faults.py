"""The faults of the composed operators: each differs from a sound implementation, where its kind says."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from normspec.conformance.faults import FAULTS, Fault, composed
from normspec.conformance.sound import SOUND

from .composed_probes import first_difference, gradients, tangents, values
from .probes import DTYPES, same
from .situations import PARAMETERS, composition

pytestmark = pytest.mark.exhaustive

OPERATORS = tuple(PARAMETERS)
BASE = {s.operator: s.build for s in SOUND if s.name.endswith(("-plain", "-two-pass")) and s.operator in OPERATORS}
COMPOSED = [fault for fault in FAULTS if fault.operator in OPERATORS]

every_fault = pytest.mark.parametrize("fault", COMPOSED, ids=lambda fault: fault.name)


def test_there_are_enough_faults_of_each_operator() -> None:
    """The library holds at least 40 faults an operator."""
    for operator in OPERATORS:
        assert sum(fault.operator == operator for fault in COMPOSED) >= 40


def test_every_module_enters_its_faults() -> None:
    """No module of the room is left out of the themes."""
    files = {path.stem for path in Path(composed.__file__).parent.glob("*.py")} - {"__init__"}
    assert {theme.__name__.rpartition(".")[2] for theme in composed.THEMES} == files


@every_fault
def test_a_fault_differs_from_a_sound_implementation(fault: Fault) -> None:
    """In every dtype that it declares, some probe tells the fault from the sound base."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype in fault.dtypes:
            assert first_difference(fault.build, BASE[fault.operator], fault.operator, dtype), dtype


@pytest.mark.parametrize(
    "fault",
    [fault for fault in COMPOSED if fault.kind in ("gradient", "tangent", "second-order")],
    ids=lambda fault: fault.name,
)
def test_a_fault_of_derivatives_leaves_the_rest_alone(fault: Fault) -> None:
    """Faulty gradients stand over correct values, faulty tangents and second orders over correct gradients too."""
    untouched = {"gradient": (values,), "tangent": (values, gradients), "second-order": (values, gradients, tangents)}
    for probe in untouched[fault.kind]:
        builds = (fault.build, BASE[fault.operator])
        seen, expected = (list(probe(build(), fault.operator, DTYPES["float32"])) for build in builds)
        assert same(seen, expected), probe.__name__


@every_fault
def test_building_makes_fresh_state(fault: Fault) -> None:
    """An implementation built later answers the first call as the one built first did."""
    dtype = DTYPES[fault.dtypes[0]]

    def first() -> str:
        return repr(composition(fault.operator, dtype).both(fault.build()))

    before = first()
    composition(fault.operator, dtype, seed=2).both(fault.build())
    assert first() == before


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", OPERATORS)
def test_probes_do_not_tell_a_sound_implementation_from_itself(operator: str, dtype: str) -> None:
    """The probes are deterministic: two sound implementations of one kind agree in all of them."""
    assert first_difference(BASE[operator], BASE[operator], operator, dtype) is None
