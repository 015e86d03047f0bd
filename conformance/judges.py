"""
Two judges: the units of one run, shared by two processes, each with workers of its own.

The second is normspec started anew. It receives the request and then one unit after the other, as JSON, and returns
reports by pickle: it holds no target, whose workers speak the protocol of adapters/worker, so that no target can forge
them. Where it cannot be had, or dies, the first judge does all.
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
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from ..adapters.dtypes import DTYPES
from ..adapters.remote.host import Limits
from ..adapters.remote.launching import ISOLATES
from ..adapters.target import Target
from ..adapters.targets import TARGETS
from ..adapters.worker.limits import die_with_parent
from ..spec.errors import NormspecError
from ..spec.operators import OPERATORS
from .defects import trace
from .engine import Run, Unit
from .excuse import excused
from .progress import Listener
from .report import Report
from .request import Request

#: What stands before a report: how many bytes it has.
_LENGTH = struct.Struct("<Q")

#: What runs the second judge: this interpreter.
_PYTHON = sys.executable

#: What the second judge runs, with the first one's import path as its arguments.
_CODE = f"import sys; sys.path[:] = sys.argv[1:]; from {__name__} import main; main()"


def worth_sharing(request: Request) -> bool:
    """Whether a second judge is worth its start: for frameworks, on a machine with a second core to run it on."""
    names = request.names
    if not (ISOLATES and request.device == "cpu" and all(isinstance(name, str) for name in names)):
        return False
    units = len(request.op or OPERATORS) * len(request.dtypes or DTYPES)
    return any(name in TARGETS and name != "numpy" for name in names) and units > 3 and _cores() > 1


def _cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def judged(request: Request, listener: Listener | None, *, shared: bool = True) -> Report:
    """The report on a request. Raises the NormspecError of the first target that cannot be had."""
    # It opens targets of its own meanwhile: importing a framework takes seconds.
    second = SecondJudge.started(request) if shared and worth_sharing(request) else None
    targets: Sequence[Target] = ()
    try:
        targets = request.open()
        run, started = Run(request.plan(targets), listener), time.perf_counter()
        report = run.report() if second is None else _shared(run, second)
        report = excused(run, attrs.evolve(report, seconds=time.perf_counter() - started))
        return attrs.evolve(report, seconds=time.perf_counter() - started)
    finally:
        try:
            if second is not None:
                second.finish(stop=True)
        finally:
            for target in targets:
                target.close()


def _shared(run: Run, second: SecondJudge) -> Report:
    """The report of two judges, whose first is this process."""
    waiting = deque(run.units())
    second.begin(waiting)
    report = run.report(_each(waiting))
    try:
        found = second.finish(stop=run.interrupted)
    except KeyboardInterrupt:  # while it was waited for
        run.interrupted = True
        found = second.finish(stop=True)
    if waiting and not run.interrupted:  # it died and has given back what it had
        report = run.report(_each(waiting))
    return attrs.evolve(_merged(report, found, run), defects=tuple(second.defects))


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


class SecondJudge:
    """The other process, and the thread that hands it units while there are any."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._waiting: deque[Unit] = deque()
        self._reports: list[Report] = []
        #: Tracebacks of what went wrong on our side of it.
        self.defects: list[str] = []
        self._thread = threading.Thread(target=self._hand_out, daemon=True, name="normspec: the second judge")

    @classmethod
    def started(cls, request: Request) -> SecondJudge | None:
        """Start it on a request; None where that fails."""
        try:
            process = subprocess.Popen(
                [_PYTHON, "-c", _CODE, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,  # Ctrl-C is the first judge's
            )
        except OSError:
            return None
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # that it died shows when it is handed a unit
            named = attrs.evolve(request, targets=request.names)
            process.stdin.write(json.dumps(attrs.asdict(named, recurse=False), default=vars).encode() + b"\n")
        return cls(process)

    def begin(self, waiting: deque[Unit]) -> None:
        """Have it take units, from the end, as the first judge takes them from the beginning."""
        self._waiting = waiting
        self._thread.start()

    def _hand_out(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        while self._waiting:
            try:
                unit = self._waiting.pop()
            except IndexError:
                return
            try:
                self._process.stdin.write(json.dumps(unit).encode() + b"\n")
                self._reports.append(self._received())
            except (OSError, EOFError, struct.error, pickle.UnpicklingError):  # it died: the first judge does its unit
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
    """Be the second judge: a request and then units on standard input, reports on standard output."""
    die_with_parent()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the first judge has met Ctrl-C
    answer = os.dup(1)
    os.dup2(2, 1)  # what anything prints must not get between
    with contextlib.suppress(KeyboardInterrupt, NormspecError, BrokenPipeError):  # the first judge does without
        _serve(answer)


def _serve(answer: int) -> None:
    line = sys.stdin.readline()
    if not line:
        return
    values: dict[str, Any] = json.loads(line)
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    request = Request(**{**values, "limits": Limits(**values["limits"])})
    targets = request.open()
    try:
        for line in sys.stdin:
            operator, dtype = json.loads(line)
            told = pickle.dumps(Run(request.plan(targets)).report([(operator, dtype)]))
            with os.fdopen(os.dup(answer), "wb") as out:
                out.write(_LENGTH.pack(len(told)) + told)
    finally:
        for target in targets:
            target.close()
