"""Where a fault of a derivative shows: not in what that is a derivative of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from normspec.conformance.checks.catalogue import checks_of
from normspec.conformance.checks.registry import Check
from normspec.conformance.faults import FAULTS, Fault
from normspec.conformance.judging.verdicts import Verdict
from normspec.spec.operators import OPERATORS

from .aspects import forget, verdicts

#: The kinds of faults of derivatives, and whether gradients are right too.
KINDS = {"gradient": False, "tangent": True, "second-order": True}


@pytest.fixture(autouse=True, scope="module")
def _forgotten():
    yield
    forget()


def left_alone(fault: Fault) -> Iterator[Check]:
    """The check of the value's formula, and those of first-order gradients where the fault is of a higher order."""
    prefix = OPERATORS[fault.operator].prefix
    for check in checks_of(fault.operator):
        first_order = check.requirement.startswith(f"{prefix}-G") and check.raising != "unsupported"
        if check.requirement == f"{prefix}-F1" or (first_order and KINDS[fault.kind]):
            yield check


@pytest.mark.exhaustive
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.kind in KINDS], ids=lambda fault: fault.name)
def test_a_fault_of_derivatives_leaves_the_rest_alone(fault: Fault) -> None:
    """Faulty gradients come with correct values; faulty tangents and second orders with correct gradients too."""
    checks = tuple(left_alone(fault))
    found = verdicts(fault, "float32" if "float32" in fault.dtypes else fault.dtypes[0], 0, checks)
    assert set(found.values()) <= {Verdict.PASS, Verdict.NOT_EXERCISED}
    assert Verdict.PASS in found.values()
