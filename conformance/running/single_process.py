"""The executor of a single process: it opens the targets of a request and judges the units one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from ...adapters.memory import return_free_memory
from ...adapters.target import Target
from ..diagnosis.explained import explained
from ..engine.engine import Run
from ..engine.progress import Listener
from ..requests.plan import Plan
from ..requests.request import Request
from ..results.report import Report
from .executor import Judged, UnitListener, finished
from .preparation import Preparation
from .target_description import TargetDescription
from .unit import Offer, Unit, units


class SingleProcess:
    """Judges units in this process. Other processes use it too, for the units that they are sent."""

    def __init__(self, request: Request, *, prepares: bool = True) -> None:
        """``prepares``: whether the first units are prepared while the targets import."""
        self.request = request
        self._targets: dict[str, Target] = {}
        #: Why fewer cases run on a target, by its name. Measured once here, unless another process sent it.
        self.paces: dict[str, str] = {}
        #: Whether the last unit was interrupted.
        self.interrupted = False
        self._partial: list[Judged] = []
        self._preparation = Preparation(request)
        self._prepares = prepares

    def __enter__(self) -> SingleProcess:
        steps = self._preparation.steps() if self._prepares else iter(())
        for target in self.request.open(steps, derivatives=not self.request.forward_only):
            self._targets[target.name] = target
        return self

    def __exit__(self, *_: object) -> None:
        for target in self._targets.values():
            target.close()

    def units(self, seeds: Iterable[int]) -> Iterator[Unit]:
        """All units, each for all targets together."""
        return units(self.offers(), seeds, together=True)

    def offers(self) -> list[Offer]:
        """The operators and dtypes of each target."""
        return [
            Offer(
                name,
                frozenset(binding.operator for binding in target.bindings),
                self.request.dtypes or target.dtypes,
            )
            for name, target in self._targets.items()
        ]

    def judged(self, units: Iterable[Unit], listener: UnitListener | None = None) -> Iterator[Judged]:
        """Each unit with its report, in the order given."""
        self.measure()
        for unit in units:
            report = self.judge(unit, None if listener is None else partial(listener, unit))
            if self.interrupted:
                self._partial.append((unit, report))
                raise KeyboardInterrupt
            yield unit, report  # first, so that it is kept if Ctrl-C meets the listener
            if listener is not None:
                listener(unit, finished(unit, report))

    def judge(self, unit: Unit, listener: Listener | None = None) -> Report:
        """The report on a unit; a partial one if it is interrupted. The listener receives its progress."""
        libraries = self._preparation.taken(unit)
        run = Run(self._plan(unit.targets, unit.seed), listener, libraries, paces=self.paces)
        report = run.report([(unit.operator, unit.dtype)])
        self.interrupted = run.interrupted
        for library in libraries.values():  # no other unit needs it, and the next is about to fill its own
            library.forget()
        return_free_memory()
        return report

    def measure(self) -> Mapping[str, str]:
        """The paces of all targets, measured once, so that a target has the same cases in every process."""
        self.run().measure_paces()
        return self.paces

    def stop(self) -> Sequence[Judged]:
        """The partial report on the unit that was interrupted."""
        left, self._partial = self._partial, []
        return left

    def subjects(self) -> tuple[Mapping[str, Any], ...]:
        """The subjects, as they stand in a report."""
        return self.run().report([]).subjects

    def described(self) -> TargetDescription:
        """The single target of the request, as this machine has it, without its pace, which one machine measures."""
        (name,), (offer,) = self._targets, self.offers()
        run = Run(self._plan((name,), self.request.seed), paces={name: ""})
        (target,) = run.plan.targets
        found = {
            (binding.operator, dtype, binding.name): run.requirements(target, binding, dtype)
            for binding in target.bindings
            for dtype in offer.dtypes
        }
        return TargetDescription(offer, target.framework, target.version, run.report([]).subjects, found)

    def explained(self, report: Report) -> Report:
        """The report with the causes of its violations, and the declarations under which bindings would conform."""
        run = Run(self._plan(tuple(self._targets), report.seed), paces=self.paces)
        return explained(run, report)

    def run(self) -> Run:
        """A new run on all targets."""
        return Run(self._plan(tuple(self._targets), self.request.seed), paces=self.paces)

    def _plan(self, names: Sequence[str], seed: int) -> Plan:
        return attrs.evolve(self.request.plan([self._targets[name] for name in names]), seed=seed)
