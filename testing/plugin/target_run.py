"""The work behind the tests of one target: each operator and dtype is judged once, for all tests that need it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import attrs

from ...adapters.dtypes import DTYPES
from ...conformance.api import requested
from ...conformance.diagnosis.causes import diagnosed
from ...conformance.expected.applying import apply_expected
from ...conformance.expected.entry import Expected
from ...conformance.kept_results.keeping import results_of
from ...conformance.kept_results.result_store import ResultStore
from ...conformance.requests.configuration import configuration
from ...conformance.requests.profiles import foremost
from ...conformance.requests.request import Request
from ...conformance.results.report import Report
from ...conformance.running.choice import process_count
from ...conformance.running.executor import Judged
from ...conformance.running.merging import merged_report
from ...conformance.running.processes import Processes
from ...conformance.running.single_process import SingleProcess
from ...conformance.running.unit import Unit
from ...spec.errors import NormspecError, choices
from ...spec.operators import OPERATORS


class UnknownOption(NormspecError, TypeError):
    """`normspec.conforms` was given an argument that tests do not take."""


#: An operator and a dtype of one target.
OperatorDtype = tuple[str, str]


def request_for(target: Any, options: Mapping[str, Any]) -> Request:
    """
    The request for one target, with the arguments of `normspec.check`; the profile is `quick` unless given.

    Raises the NormspecError of an argument that cannot be used, or that tests do not take.
    """
    known = [name for name in inspect.signature(requested).parameters if name != "target"]
    for name in options:
        if name not in known:
            raise UnknownOption(f"tests of a target take no argument {name!r}{choices(name, known)}")
    return requested(target, **{"profile": "quick", **options})


def expected_failures(target: Any) -> tuple[Expected, ...]:
    """
    The expected failures, read from pyproject.toml or normspec.toml where pytest runs, as `normspec check` does.

    For a function or class only the entries that match its file and name. Raises a NormspecError if the configuration
    cannot be read.
    """
    entries = configuration().values.get("expected", ())
    if isinstance(target, str):
        return entries
    try:
        name = f"{inspect.getsourcefile(inspect.unwrap(target))}:{target.__name__}"
    except (TypeError, AttributeError):  # an instance, which has no source or name
        return tuple(one for one in entries if not one.target)
    return tuple(attrs.evolve(one, target="") for one in entries if one.about(name))


@attrs.define(eq=False, repr=False)
class TargetRun:
    """One target, open, and its results so far."""

    request: Request
    #: The expected failures of the project's configuration.
    entries: tuple[Expected, ...] = ()
    #: Whether other processes of this machine run other tests of the target; if so, this one starts no processes.
    shared: bool = False
    _open: ExitStack = attrs.field(factory=ExitStack)
    _single_process: SingleProcess | None = None
    #: The operators and dtypes that tests will ask for, in order, and their requirements.
    _expected: dict[OperatorDtype, set[str]] = attrs.field(factory=dict)
    _in_progress: Iterator[Judged] | None = None
    #: Where results are kept, and results kept earlier.
    _store: ResultStore | None = None
    _kept: dict[OperatorDtype, Report] = attrs.field(factory=dict)
    _found: dict[OperatorDtype, Report | BaseException] = attrs.field(factory=dict)

    @classmethod
    def of(cls, target: Any, options: Mapping[str, Any], *, shared: bool) -> TargetRun:
        """The work on a target with these options. Raises a NormspecError, as request_for and expected_failures do."""
        return cls(request_for(target, options), expected_failures(target), shared)

    @property
    def single_process(self) -> SingleProcess:
        """The target, opened in this process. Raises the NormspecError of a target that cannot be opened."""
        if self._single_process is None:
            self._single_process = self._open.enter_context(SingleProcess(self.request))
        return self._single_process

    def requirements(self) -> dict[OperatorDtype, tuple[str, ...]]:
        """Every operator and dtype that is judged, with its requirements in the order of the report."""
        run, found = self.single_process.run(), {}
        offers = self.single_process.offers()
        for operator in OPERATORS:
            for dtype in DTYPES:
                ids = [
                    one
                    for target, offer in zip(run.plan.targets, offers, strict=True)
                    if offer.has(operator, dtype)
                    for binding in target.bindings
                    if binding.operator == operator
                    for one in run.requirements(target, binding, dtype)
                ]
                if ids:
                    found[operator, dtype] = tuple(dict.fromkeys(ids))
        return found

    def subjects(self) -> Sequence[Mapping[str, Any]]:
        """The judged subjects, with the file and line of a user's own function."""
        return self.single_process.subjects()

    def expect(self, operator_dtype: OperatorDtype, requirement: str) -> None:
        """Announce that a test needs this requirement; only announced requirements are judged."""
        self._expected.setdefault(operator_dtype, set()).add(requirement)

    def report(self, operator_dtype: OperatorDtype) -> Report:
        """The report of an operator in a dtype, with the causes of its violations; judged on the first call."""
        if operator_dtype not in self._found:
            try:
                self._found[operator_dtype] = self._judged(operator_dtype)
            except KeyboardInterrupt:
                # A new one: of the first, pytest would spend seconds on the text of every argument on the way, whole
                # libraries of cases among them.
                raise KeyboardInterrupt from None
            except BaseException as error:  # also a time limit of pytest: it is raised again, not run again
                self._found[operator_dtype] = error
                raise
        found = self._found[operator_dtype]
        if isinstance(found, BaseException):
            raise found
        return found

    def close(self) -> None:
        """Stop the work in progress, and close the target."""
        self._in_progress = None
        self._open.close()

    def _judged(self, operator_dtype: OperatorDtype) -> Report:
        if self._in_progress is None:
            self._in_progress = self._start()
        if operator_dtype in self._kept:
            return self._with_causes(self._kept.pop(operator_dtype))
        for unit, report in self._in_progress:
            self._keep(unit, report)
            if (here := (unit.operator, unit.dtype)) == operator_dtype:
                return self._with_causes(report)
            self._found[here] = self._with_causes(report)
        unit = self._unit(operator_dtype)  # work goes one by one, or this was not announced
        report = self.single_process.judge(unit)
        if self.single_process.interrupted:
            raise KeyboardInterrupt
        self._keep(unit, report)
        return self._with_causes(report)

    def _start(self) -> Iterator[Judged]:
        """
        Find the kept results among all that is expected, and start on the rest, in several processes if that pays.

        Otherwise each operator is judged in each dtype when a test asks for it.
        """
        self.single_process.request = request = self._request_for_expected()
        self.single_process.measure()
        self._store, left = results_of(request), list[Unit]()
        for operator_dtype in self._expected:
            unit = self._unit(operator_dtype)
            report = None if self._store is None else self._store.unit(*self._store_key(unit))
            if report is None:
                left.append(unit)
            else:
                self._kept[operator_dtype] = report
        count = 1 if self.shared else min(process_count(request, None), len(left))
        if count < 2:
            return iter(())
        processes = self._open.enter_context(Processes(request, count, self.single_process))
        self._open.callback(processes.stop)
        return processes.judged(left)

    def _unit(self, operator_dtype: OperatorDtype) -> Unit:
        return Unit(
            *operator_dtype,
            self.request.seed,
            tuple(offer.name for offer in self.single_process.offers() if offer.has(*operator_dtype)),
        )

    def _keep(self, unit: Unit, report: Report) -> None:
        if self._store is not None:
            self._store.keep_unit(*self._store_key(unit), report)

    def _store_key(self, unit: Unit) -> tuple[str, Unit, str, str]:
        """The key of a kept unit: target, unit, how the target is judged, and its most thoroughly checked dtype."""
        (offer,) = self.single_process.offers()
        return offer.name, unit, self.single_process.paces.get(offer.name, ""), foremost(offer.dtypes)

    def _request_for_expected(self) -> Request:
        """The request for the announced requirements; without `only` if those are all."""
        asked = set[str]().union(*self._expected.values())
        every = {one for ids in self.requirements().values() for one in ids}
        return self.request if asked >= every or not asked else attrs.evolve(self.request, only=tuple(sorted(asked)))

    def _with_causes(self, report: Report) -> Report:
        report = merged_report(self.single_process.request, self.single_process.subjects(), [report])
        report = diagnosed(self.single_process.run(), report) if report.failures() else report
        return apply_expected(report, self.entries, self.single_process.request)


def requirements_of(operator: str, dtype: str) -> Iterable[str]:
    """The requirements that apply to any implementation of an operator in a dtype."""
    from ...conformance.checks.catalogue import checks_of

    return (check.requirement for check in checks_of(operator) if dtype in check.dtypes)
