"""The work behind the tests of one target: each operator and dtype is judged once, whatever asks for it, and when."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import attrs

from ...adapters.dtypes import DTYPES
from ...conformance.api import requested
from ...conformance.configuration import configuration
from ...conformance.diagnosis.causes import diagnosed
from ...conformance.expected.applying import applied
from ...conformance.expected.entry import Expected
from ...conformance.report import Report
from ...conformance.request import Request
from ...conformance.running.alone import Alone
from ...conformance.running.choice import worth
from ...conformance.running.executor import Judged
from ...conformance.running.judging import together
from ...conformance.running.processes import Processes
from ...conformance.running.unit import Unit
from ...spec.operators import OPERATORS

#: An operator and a dtype of one target.
Place = tuple[str, str]


def request_for(target: Any, options: Mapping[str, Any]) -> Request:
    """The request for one target, with the arguments of `normspec.check`; at `quick` unless a profile is named."""
    return requested(target, **{"profile": "quick", **options})


def expected_failures(target: Any) -> tuple[Expected, ...]:
    """
    What is expected to fail, as `normspec check` reads it where pytest runs: of pyproject.toml, or of normspec.toml.

    Of a function or class those alone that are about it, by its file and its name. Raises a NormspecError where the
    configuration cannot be read.
    """
    entries = configuration().values.get("expected", ())
    if isinstance(target, str):
        return entries
    try:
        name = f"{inspect.getsourcefile(inspect.unwrap(target))}:{target.__name__}"
    except (TypeError, AttributeError):  # an object that was called into being
        return tuple(one for one in entries if not one.target)
    return tuple(attrs.evolve(one, target="") for one in entries if one.about(name))


@attrs.define(eq=False)
class Work:
    """One target, open, and what has been found of it so far."""

    request: Request
    #: What is expected to fail, as the project's configuration says.
    entries: tuple[Expected, ...] = ()
    #: Whether other processes of this machine do the same for other tests: then this one works alone.
    shared: bool = False
    _open: ExitStack = attrs.field(factory=ExitStack)
    _alone: Alone | None = None
    #: The operators and dtypes that will be asked for, in order, and their requirements.
    _expected: dict[Place, set[str]] = attrs.field(factory=dict)
    _coming: Iterator[Judged] | None = None
    _found: dict[Place, Report | BaseException] = attrs.field(factory=dict)

    @property
    def alone(self) -> Alone:
        """The target, opened in this process. Raises the NormspecError of one that cannot be had."""
        if self._alone is None:
            self._alone = self._open.enter_context(Alone(self.request))
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
        """What is judged, with the file and line of a function of one's own."""
        return self.alone.subjects()

    def expect(self, place: Place, requirement: str) -> None:
        """Say that a requirement will be asked for: what nobody expects is not judged."""
        self._expected.setdefault(place, set()).add(requirement)

    def report(self, place: Place) -> Report:
        """What judging an operator in a dtype found, with the causes of its violations; judged when first asked for."""
        if place not in self._found:
            try:
                self._found[place] = self._judged(place)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a time limit of pytest's among them: once is enough
                self._found[place] = error
                raise
        found = self._found[place]
        if isinstance(found, BaseException):
            raise found
        return found

    def close(self) -> None:
        """End what is in progress, and let go of the target."""
        self._coming = None
        self._open.close()

    def _judged(self, place: Place) -> Report:
        if self._coming is None:
            self._coming = self._start()
        if self._coming is _ONE_BY_ONE:
            return self._with_causes([self._alone_judged(place)])
        for unit, report in self._coming:
            here = (unit.operator, unit.dtype)
            if here != place:
                self._found[here] = self._with_causes([report])
                continue
            return self._with_causes([report])
        return self._with_causes([self._alone_judged(place)])  # nobody expected it

    def _start(self) -> Iterator[Judged]:
        """Begin with all that is expected, in several processes where that pays; else each when it is asked for."""
        self.alone.request = request = self._asked()
        count = 1 if self.shared else min(worth(request, None), max(len(self._expected), 1))
        if count < 2:
            return _ONE_BY_ONE
        processes = self._open.enter_context(Processes(request, count, self.alone))
        self._open.callback(processes.stop)
        wanted = [unit for unit in processes.units([request.seed]) if (unit.operator, unit.dtype) in self._expected]
        places = list(self._expected)
        return processes.judged(sorted(wanted, key=lambda unit: places.index((unit.operator, unit.dtype))))

    def _asked(self) -> Request:
        """The request for the requirements that are expected; without an `only` where that is all of them."""
        asked = set[str]().union(*self._expected.values())
        every = {one for ids in self.places().values() for one in ids}
        return self.request if asked >= every or not asked else attrs.evolve(self.request, only=tuple(sorted(asked)))

    def _alone_judged(self, place: Place) -> Report:
        self.alone.measure()
        unit = Unit(*place, self.request.seed, tuple(offer.name for offer in self.alone.offers() if offer.has(*place)))
        report = self.alone.judge(unit)
        if self.alone.interrupted:
            raise KeyboardInterrupt
        return report

    def _with_causes(self, reports: Sequence[Report]) -> Report:
        report = together(self.alone.request, self.alone.subjects(), reports)
        report = diagnosed(self.alone.run(), report) if report.failures() else report
        return applied(report, self.entries, self.alone.request)


#: In place of the results that come by themselves.
_ONE_BY_ONE: Iterator[Judged] = iter(())


def requirements_of(operator: str, dtype: str) -> Iterable[str]:
    """The requirements that any implementation of an operator is judged by in a dtype."""
    from ...conformance.checks.catalogue import checks_of

    return (check.requirement for check in checks_of(operator) if dtype in check.dtypes)
