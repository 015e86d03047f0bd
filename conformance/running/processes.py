"""The executor of several processes: this one and others take units from the same list. Each has its own workers."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from queue import SimpleQueue
from typing import Any

import attrs

from ...spec.errors import NormspecError
from ..judging.defects import trace
from ..requests.request import Request
from ..results.report import Report
from .answering_process import AnsweringProcess, ProcessEnded
from .executor import Judged, UnitListener, finished
from .message import Message, question_to_judge
from .single_process import SingleProcess
from .unit import Offer, Unit
from .unit_queue import UnitQueue

#: The number of the first process in the queue of units; those of the others follow.
_FIRST = 0


@attrs.frozen
class _OwnUnit:
    """A unit for the first process."""

    unit: Unit
    #: If a defect of normspec kept another process from judging it: the traceback.
    defect: str = ""


@attrs.frozen
class _Broken:
    """The exception that the iterator of units raised."""

    error: BaseException


class Processes:
    """Judges units in several processes. If another process cannot be started or dies, the first judges its unit."""

    def __init__(self, request: Request, count: int, first: SingleProcess | None = None) -> None:
        """``first`` judges in this process. If it is given, its targets are open already, and stay open."""
        self._first, self._opens = first or SingleProcess(request), first is None
        self._told, self._count = Message.of(request), count
        self._others: list[AnsweringProcess] = []
        self._threads: list[threading.Thread] = []
        self._left = UnitQueue(())
        #: Messages from the threads of the other processes. None means that one of them is finished.
        self._done: SimpleQueue[Judged | _OwnUnit | _Broken | None] = SimpleQueue()

    def __enter__(self) -> Processes:
        # The others open their targets at the same time, because importing a framework takes seconds.
        try:
            with contextlib.suppress(OSError):  # if one cannot start, the first process judges its units
                for _ in range(self._count - 1):
                    self._others.append(AnsweringProcess.started(self._told.to_json()))
            if self._opens:
                self._first.__enter__()
        except BaseException:
            self._close_others()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._close_others()
        finally:
            if self._opens:
                self._first.__exit__()

    def units(self, seeds: Iterable[int]) -> Iterator[Unit]:
        """All units, each for all targets together."""
        return self._first.units(seeds)

    def offers(self) -> list[Offer]:
        """The operators and dtypes of each target."""
        return self._first.offers()

    def measure(self) -> Mapping[str, str]:
        """The paces of all targets."""
        return self._first.measure()

    def judged(self, units: Iterable[Unit], listener: UnitListener | None = None) -> Iterator[Judged]:
        """Each unit with its report, as soon as it is judged."""
        self._left, self._done = UnitQueue(units), SimpleQueue()
        own = self._next()  # the first unit, which this process has prepared
        back = deque[_OwnUnit]([] if own is None else [own])
        paces = self.measure()
        self._threads = [
            threading.Thread(
                target=self._hand_out,
                args=(other, number, paces, listener),
                daemon=True,
                name="normspec: another process",
            )
            for number, other in enumerate(self._others, _FIRST + 1)
        ]
        for thread in self._threads:
            thread.start()
        busy = len(self._threads)
        while True:
            given = back.popleft() if back else self._next()
            if given is not None:
                for unit, report in self._first.judged([given.unit], listener):
                    yield unit, attrs.evolve(report, defects=(given.defect,)) if given.defect else report
            elif not busy:
                return
            while not self._done.empty() or (given is None and busy and not back):
                done = self._done.get()
                if isinstance(done, _Broken):
                    raise done.error
                if isinstance(done, _OwnUnit):
                    back.append(done)
                elif done is None:
                    busy -= 1
                else:
                    yield done

    def _next(self) -> _OwnUnit | None:
        """The next unit for this process; None if none is left."""
        unit = self._left.take(_FIRST)
        return None if unit is None else _OwnUnit(unit)

    def _hand_out(
        self, other: AnsweringProcess, number: int, paces: Mapping[str, str], listener: UnitListener | None
    ) -> None:
        """Let another process judge one unit after the other until none is left."""
        try:
            while (unit := self._left.take(number)) is not None:
                try:
                    report = other.ask(question_to_judge(unit, paces))
                except (ProcessEnded, NormspecError):  # the first process judges the unit and meets the same error
                    self._done.put(_OwnUnit(unit))
                    return
                except Exception as error:
                    self._done.put(_OwnUnit(unit, trace(error)))
                    return
                self._done.put((unit, report))
                if listener is not None:
                    listener(unit, finished(unit, report))
        except BaseException as error:
            self._done.put(_Broken(error))
        finally:
            self._done.put(None)

    def stop(self) -> Sequence[Judged]:
        """The reports of all processes so far."""
        self._interrupt_others()
        found = list(self._first.stop())
        while not self._done.empty():
            done = self._done.get()
            if isinstance(done, tuple):
                found.append(done)
        return found

    def subjects(self) -> tuple[Mapping[str, Any], ...]:
        """The subjects, as they stand in a report."""
        return self._first.subjects()

    def explained(self, report: Report) -> Report:
        """The report with the causes of its violations, and the declarations under which bindings would conform."""
        return self._first.explained(report)

    def _interrupt_others(self) -> None:
        """Let the others answer at once, and wait until what they say has been received."""
        self._left.clear()
        for other in self._others:
            other.interrupt()
        for thread in self._threads:
            if thread.ident is not None:  # it was started
                thread.join()

    def _close_others(self) -> None:
        self._interrupt_others()
        others, self._others = self._others, []
        for other in others:
            other.close()
