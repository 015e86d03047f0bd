"""
Another process: normspec started anew, which is told a request and then one unit after the other.

It hears them as JSON and returns reports by pickle: it holds no target, whose workers speak the protocol of
adapters/worker, so that no target can forge them.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import struct
import subprocess
import sys
from collections.abc import Mapping

from ...adapters.worker.limits import die_with_parent
from ...spec.errors import NormspecError
from ..report import Report
from .alone import Alone
from .told import Told, unit_from_json, unit_to_json
from .unit import Unit

#: What stands before a report: how many bytes it has.
_LENGTH = struct.Struct("<Q")

#: What runs it: this interpreter.
_PYTHON = sys.executable

#: What it runs, with the first one's import path as its arguments.
_CODE = f"import sys; sys.path[:] = sys.argv[1:]; from {__name__} import main; main()"


class Gone(Exception):
    """The process has died, or what it says is no report."""


class Other:
    """Another process that judges the units of a request."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @classmethod
    def started(cls, told: Told) -> Other | None:
        """Start it, and leave it to open the request meanwhile; None where that fails."""
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
            process.stdin.write(told.to_json().encode() + b"\n")
        return cls(process)

    def judge(self, unit: Unit, paces: Mapping[str, str]) -> Report:
        """The report on a unit, waited for. Raises Gone."""
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(unit_to_json(unit, paces).encode() + b"\n")
            return pickle.loads(self._received())  # what our own process wrote, on our own pipe
        except (OSError, EOFError, struct.error, pickle.UnpicklingError) as error:
            raise Gone from error

    def _received(self) -> bytes:
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
        return exactly(size)

    def interrupt(self) -> None:
        """Have it answer at once with what it has established, and end."""
        self._process.terminate()

    def close(self) -> None:
        """End it, once nobody waits for it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.terminate()
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def main() -> None:
    """Be another process: a request and then units on standard input, reports on standard output."""
    die_with_parent()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the first one has met Ctrl-C
    answer = os.dup(1)
    os.dup2(2, 1)  # what anything prints must not get between
    with contextlib.suppress(KeyboardInterrupt, NormspecError, BrokenPipeError):  # the first one does without
        _serve(answer)


def _serve(answer: int) -> None:
    line = sys.stdin.readline()
    if not line:
        return
    with Alone(Told.from_json(line).heard()) as alone:
        for line in sys.stdin:
            unit, alone.paces = unit_from_json(line)
            told = pickle.dumps(alone.judge(unit))
            with os.fdopen(os.dup(answer), "wb") as out:
                out.write(_LENGTH.pack(len(told)) + told)
