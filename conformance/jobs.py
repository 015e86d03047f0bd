"""
Jobs: the units of one run, shared by several processes, each with workers of its own.

The first is this one. Another is normspec started anew. It receives the request and then one unit after the other, as
JSON, and returns reports by pickle: it holds no target, whose workers speak the protocol of adapters/worker, so that no
target can forge them. Where it cannot be had, or dies, the first does its units.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from ..adapters.dtypes import DTYPES
from ..adapters.loading import load_operators
from ..adapters.remote.host import Limits
from ..adapters.remote.launching import ISOLATES
from ..adapters.target import Target
from ..adapters.targets import TARGETS
from ..adapters.worker.limits import die_with_parent
from ..spec.errors import NormspecError
from ..spec.operators import OPERATORS, files_of
from .defects import trace
from .engine import Run, Unit
from .excuse import excused
from .progress import Listener
from .report import Report
from .request import Request

#: What stands before a report: how many bytes it has.
_LENGTH = struct.Struct("<Q")

#: What runs another job: this interpreter.
_PYTHON = sys.executable

#: What it runs, with the first one's import path as its arguments.
_CODE = f"import sys; sys.path[:] = sys.argv[1:]; from {__name__} import main; main()"

#: The most jobs that nobody asked for: each imports the framework anew, which takes half a gigabyte.
_MOST = 8


def worth(request: Request, asked: int | None) -> int:
    """
    How many jobs a request is worth: no more than it has units, as many as are asked for, and otherwise one a core.

    Unasked, a GPU is not shared, and neither is what takes a few seconds: functions and NumPy at `quick`.
    """
    names = request.names
    if not (ISOLATES and all(isinstance(name, str) for name in names)):
        return 1
    operators = max(len(request.op or OPERATORS) if name in TARGETS else 1 for name in names)
    units = operators * len(request.dtypes or DTYPES)
    if asked is not None:
        return min(asked, units)
    frameworks = any(name in TARGETS and name != "numpy" for name in names)
    pays = units > 3 if frameworks else units > 1 and request.profile != "quick"
    return min(_cores(), units, _MOST) if pays and request.device == "cpu" else 1


def _cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def judged(request: Request, listener: Listener | None, *, jobs: int | None = None) -> Report:
    """The report on a request by so many jobs. Raises the NormspecError of the first target that cannot be had."""
    # They open targets of their own meanwhile: importing a framework takes seconds.
    started = (Job.started(request) for _ in range(worth(request, jobs) - 1))
    others = [job for job in started if job is not None]
    targets: Sequence[Target] = ()
    try:
        targets = request.open()
        run, started_at = Run(request.plan(targets), listener), time.perf_counter()
        report = _shared(run, others) if others else run.report()
        report = excused(run, attrs.evolve(report, seconds=time.perf_counter() - started_at))
        return attrs.evolve(report, seconds=time.perf_counter() - started_at)
    finally:
        try:
            for job in others:
                job.finish(stop=True)
        finally:
            for target in targets:
                target.close()


def _shared(run: Run, others: Sequence[Job]) -> Report:
    """The report of several jobs, whose first is this process."""
    waiting, paces = deque(run.units()), run.measured_paces()
    for job in others:
        job.begin(waiting, paces)
    report = run.report(_each(waiting))
    found: list[Report] = []
    try:
        for job in others:
            found += job.finish(stop=run.interrupted)
    except KeyboardInterrupt:  # while they were waited for
        run.interrupted = True
        for job in others:
            found += job.finish(stop=True)
    if waiting and not run.interrupted:  # one died and has given back what it had
        report = run.report(_each(waiting))
    return attrs.evolve(_merged(report, found, run), defects=tuple(defect for job in others for defect in job.defects))


def _each(waiting: deque[Unit]) -> Iterator[Unit]:
    while True:
        try:
            yield waiting.popleft()
        except IndexError:
            return


def _merged(report: Report, others: Sequence[Report], run: Run) -> Report:
    results = [*report.results, *(result for other in others for result in other.results)]
    return attrs.evolve(
        report,
        results=tuple(sorted(results, key=run.place)),
        taken=tuple(sorted((one for part in (report, *others) for one in part.taken), key=run.place)),
        partial=run.interrupted or report.partial or any(other.partial for other in others),
    )


class Job:
    """Another process, and the thread that hands it units while there are any."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._waiting: deque[Unit] = deque()
        self._paces: Mapping[str, str] = {}
        self._reports: list[Report] = []
        #: Tracebacks of what went wrong on our side of it.
        self.defects: list[str] = []
        self._thread = threading.Thread(target=self._hand_out, daemon=True, name="normspec: a job")

    @classmethod
    def started(cls, request: Request) -> Job | None:
        """Start it on a request; None where that fails."""
        try:
            process = subprocess.Popen(
                [_PYTHON, "-c", _CODE, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,  # Ctrl-C is the first one's
            )
        except OSError:
            return None
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # that it died shows when it is handed a unit
            named = attrs.evolve(request, targets=request.names)
            told = [files_of(request.op or ()), attrs.asdict(named, recurse=False)]
            process.stdin.write(json.dumps(told, default=vars).encode() + b"\n")
        return cls(process)

    def begin(self, waiting: deque[Unit], paces: Mapping[str, str]) -> None:
        """Have it take units, from the end, as this process takes them from the beginning; paces: Run.paces."""
        self._waiting, self._paces = waiting, paces
        self._thread.start()

    def _hand_out(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        while self._waiting:
            try:
                unit = self._waiting.pop()
            except IndexError:
                return
            try:
                self._process.stdin.write(json.dumps([unit, self._paces]).encode() + b"\n")
                self._reports.append(self._received())
            except (OSError, EOFError, struct.error, pickle.UnpicklingError):  # it died: the first job does its unit
                self._waiting.append(unit)
                return
            except Exception as error:
                self._waiting.append(unit)
                self.defects.append(trace(error))
                return

    def _received(self) -> Report:
        assert self._process.stdout is not None

        def exactly(count: int) -> bytes:
            pieces, missing = [], count
            while missing:
                piece = self._process.stdout.read(missing)  # type: ignore[union-attr]
                if not piece:
                    raise EOFError
                pieces.append(piece)
                missing -= len(piece)
            return b"".join(pieces)

        (size,) = _LENGTH.unpack(exactly(_LENGTH.size))
        return pickle.loads(exactly(size))  # what our own process wrote, on our own pipe

    def finish(self, *, stop: bool) -> list[Report]:
        """Its reports, waited for; what it has established until now if it is to stop. Nothing the second time."""
        assert self._process.stdin is not None and self._process.stdout is not None
        if stop:
            self._waiting.clear()
            self._process.terminate()
        if self._thread.ident is not None:
            self._thread.join()
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        found, self._reports = self._reports, []
        return found


def main() -> None:
    """Be a job: a request and then units on standard input, reports on standard output."""
    die_with_parent()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the first job has met Ctrl-C
    answer = os.dup(1)
    os.dup2(2, 1)  # what anything prints must not get between
    with contextlib.suppress(KeyboardInterrupt, NormspecError, BrokenPipeError):  # the first job does without
        _serve(answer)


def _serve(answer: int) -> None:
    line = sys.stdin.readline()
    if not line:
        return
    files, given = json.loads(line)
    load_operators(files)
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    request = Request(**{**values, "limits": Limits(**values["limits"])})
    targets = request.open()
    try:
        for line in sys.stdin:
            (operator, dtype), paces = json.loads(line)
            told = pickle.dumps(Run(request.plan(targets), paces=paces).report([(operator, dtype)]))
            with os.fdopen(os.dup(answer), "wb") as out:
                out.write(_LENGTH.pack(len(told)) + told)
    finally:
        for target in targets:
            target.close()
