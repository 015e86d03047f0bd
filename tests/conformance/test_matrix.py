"""Requirements, checks and faults match: no id without a check, no check without a fault that it kills."""

from __future__ import annotations

from collections import Counter

from normspec.conformance.checks.catalogue import checks_of
from normspec.conformance.checks.registry import is_about
from normspec.conformance.faults import FAULTS
from normspec.spec import requirements
from normspec.spec.operators import OPERATORS

from .runs import DTYPES

#: (operator, requirement), for every operator that a requirement is about.
PAIRS = [(operator, name) for name in requirements() for operator in OPERATORS if is_about(name, operator)]


def test_every_requirement_is_checked_for_each_operator_it_is_about() -> None:
    """There is a check for each operator and requirement of the pages, and no other."""
    checks = [(operator, check.requirement) for operator in OPERATORS for check in checks_of(operator)]
    assert sorted(checks) == sorted(PAIRS)


def test_a_check_is_about_dtypes_that_exist() -> None:
    """Every check runs in at least one of the four dtypes, and in no other."""
    for operator in OPERATORS:
        for check in checks_of(operator):
            assert check.dtypes and set(check.dtypes) <= set(DTYPES), check.requirement


def test_no_two_faults_share_a_name() -> None:
    """A name belongs to one fault."""
    assert [name for name, count in Counter(fault.name for fault in FAULTS).items() if count > 1] == []


def test_every_fault_names_a_requirement_of_its_operator() -> None:
    """The requirement that must kill a fault is on a page, and applies to the fault's operator."""
    assert {fault.name for fault in FAULTS if (fault.operator, fault.requirement) not in PAIRS} == set()


def test_every_check_has_a_fault() -> None:
    """Each requirement, MUST or SHOULD, has a fault of each of its operators; `selftest` sees it killed."""
    assert set(PAIRS) - {(fault.operator, fault.requirement) for fault in FAULTS} == set()
