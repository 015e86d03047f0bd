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
from ...conformance.expected.applying import applied
from ...conformance.expected.entry import Expected
from ...conformance.kept_results.keeping import results_of
from ...conformance.kept_results.result_store import ResultStore
from ...conformance.requests.configuration import configuration
from ...conformance.requests.request import Request
from ...conformance.results.report import Report
from ...conformance.running.choice import process_count
from ...conformance.running.executor import Judged
from ...conformance.running.judging import together
from ...conformance.running.processes import Processes
from ...conformance.running.single_process import SingleProcess
from ...conformance.running.unit import Unit
from ...spec.operators import OPERATORS

#: An operator and a dtype of one target.
Place = tuple[str, str]


def request_for(target: Any, options: Mapping[str, Any]) -> Request:
    """The request for one target, with the arguments of `normspec.check`; the profile is `quick` unless given."""
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


@attrs.define(eq=False)
class Work:
    """One target, open, and its results so far."""

    request: Request
    #: The expected failures of the project's configuration.
    entries: tuple[Expected, ...] = ()
    #: Whether other processes of this machine run other tests of the target; if so, this one starts no processes.
    shared: bool = False
    _open: ExitStack = attrs.field(factory=ExitStack)
    _alone: SingleProcess | None = None
    #: The operators and dtypes that tests will ask for, in order, and their requirements.
    _expected: dict[Place, set[str]] = attrs.field(factory=dict)
    _coming: Iterator[Judged] | None = None
    #: Where results are kept, and results kept earlier.
    _store: ResultStore | None = None
    _kept: dict[Place, Report] = attrs.field(factory=dict)
    _found: dict[Place, Report | BaseException] = attrs.field(factory=dict)

    @property
    def alone(self) -> SingleProcess:
        """The target, opened in this process. Raises the NormspecError of a target that cannot be opened."""
        if self._alone is None:
            self._alone = self._open.enter_context(SingleProcess(self.request))
        return self._alone

    def places(self) -> dict[Place, tuple[str, ...]]:
        """Every operator and dtype that is judged, with its requirements in the order of the report."""
        run, found = self.alone.run(), {}
        offers = self.alone.offers()
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
        return self.alone.subjects()

    def expect(self, place: Place, requirement: str) -> None:
        """Announce that a test needs this requirement; only announced requirements are judged."""
        self._expected.setdefault(place, set()).add(requirement)

    def report(self, place: Place) -> Report:
        """The report of an operator in a dtype, with the causes of its violations; judged on the first call."""
        if place not in self._found:
            try:
                self._found[place] = self._judged(place)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # also a time limit of pytest: it is raised again, not run again
                self._found[place] = error
                raise
        found = self._found[place]
        if isinstance(found, BaseException):
            raise found
        return found

    def close(self) -> None:
        """Stop the work in progress, and close the target."""
        self._coming = None
        self._open.close()

    def _judged(self, place: Place) -> Report:
        if self._coming is None:
            self._coming = self._start()
        if place in self._kept:
            return self._with_causes(self._kept.pop(place))
        for unit, report in self._coming:
            self._keep(unit, report)
            if (here := (unit.operator, unit.dtype)) == place:
                return self._with_causes(report)
            self._found[here] = self._with_causes(report)
        unit = self._unit(place)  # work goes one by one, or the place was not announced
        report = self.alone.judge(unit)
        if self.alone.interrupted:
            raise KeyboardInterrupt
        self._keep(unit, report)
        return self._with_causes(report)

    def _start(self) -> Iterator[Judged]:
        """
        Find the kept results among all that is expected, and start on the rest, in several processes if that pays.

        Otherwise each place is judged when it is asked for.
        """
        self.alone.request = request = self._asked()
        self.alone.measure()
        self._store, left = results_of(request), list[Unit]()
        for place in self._expected:
            unit = self._unit(place)
            report = None if self._store is None else self._store.unit(*self._way(unit))
            if report is None:
                left.append(unit)
            else:
                self._kept[place] = report
        count = 1 if self.shared else min(process_count(request, None), len(left))
        if count < 2:
            return iter(())
        processes = self._open.enter_context(Processes(request, count, self.alone))
        self._open.callback(processes.stop)
        return processes.judged(left)

    def _unit(self, place: Place) -> Unit:
        return Unit(*place, self.request.seed, tuple(offer.name for offer in self.alone.offers() if offer.has(*place)))

    def _keep(self, unit: Unit, report: Report) -> None:
        if self._store is not None:
            self._store.keep_unit(*self._way(unit), report)

    def _way(self, unit: Unit) -> tuple[str, Unit, str, str]:
        """The key of a kept unit: target, unit, how the target is judged, and its most thoroughly checked dtype."""
        (offer,) = self.alone.offers()
        return offer.name, unit, self.alone.paces.get(offer.name, ""), offer.foremost

    def _asked(self) -> Request:
        """The request for the announced requirements; without `only` if those are all."""
        asked = set[str]().union(*self._expected.values())
        every = {one for ids in self.places().values() for one in ids}
        return self.request if asked >= every or not asked else attrs.evolve(self.request, only=tuple(sorted(asked)))

    def _with_causes(self, report: Report) -> Report:
        report = together(self.alone.request, self.alone.subjects(), [report])
        report = diagnosed(self.alone.run(), report) if report.failures() else report
        return applied(report, self.entries, self.alone.request)


def requirements_of(operator: str, dtype: str) -> Iterable[str]:
    """The requirements that apply to any implementation of an operator in a dtype."""
    from ...conformance.checks.catalogue import checks_of

    return (check.requirement for check in checks_of(operator) if dtype in check.dtypes)
