"""Faults, each on its own counterexample as the JSON of a report keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from normspec import Report
from normspec.adapters.numpy.operators import IMPLEMENTATIONS
from normspec.adapters.target import Target
from normspec.conformance.engine.engine import Run
from normspec.conformance.faults import Fault
from normspec.conformance.judging.library import Library
from normspec.conformance.kept.cache_folder import truths_store
from normspec.conformance.replay.reading import failed_cases
from normspec.conformance.replay.replaying import judged_again
from normspec.conformance.requests.implementation_targets import implementation_target
from normspec.conformance.requests.plan import Plan
from normspec.conformance.requests.profiles import profile_of

from .runs import specimen

#: The libraries of the current operator: its cases are built once.
_libraries: dict[str, dict[Any, Library]] = {}


def shown_in(fault: Fault) -> str:
    """The dtype that a fault is shown in where one is enough."""
    return "float32" if "float32" in fault.dtypes else fault.dtypes[0]


def plan(target: Target, dtype: str, profile: str = "quick", **rest: Any) -> Plan:
    """A plan for one target in one dtype."""
    return Plan((target,), (dtype,), "cpu", {}, profile_of(profile), 0, store=truths_store(""), **rest)


def report_on(fault: Fault, dtype: str) -> Report:
    """The report on a fault and the requirement that must kill it, its violations shrunk."""
    if fault.operator not in _libraries:
        _libraries.clear()
    asked: dict[str, Any] = {"requirements": frozenset({fault.requirement})}
    shared = _libraries.setdefault(fault.operator, {})
    report = Run(plan(specimen(fault), dtype, **asked), libraries=shared).report()
    if report.failures() or report.advice():
        return report
    return Run(plan(specimen(fault), dtype, "standard", **asked)).report()


def again(report: Report, target: Target, dtype: str, folder: Path) -> list[str]:
    """The verdicts on a target of the cases that failed in a report, by way of the report's JSON."""
    file = folder / "report.json"
    file.write_text(report.to_json())
    cases = failed_cases(str(file)).cases
    return [one.verdict.value for one in judged_again(Run(plan(target, dtype)), cases, str(file)).results]


def sound_base(operator: str) -> Target:
    """The sound function that the faults of an operator are made of."""
    return implementation_target("base", operator, IMPLEMENTATIONS[operator]().implementation())
