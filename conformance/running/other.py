"""
Another process that judges: normspec started anew, which is told a request and then asked one thing after the other.

It hears JSON and answers by pickle: it holds no target, whose workers speak the protocol of adapters/worker, so that no
target can forge what it says.
"""

from __future__ import annotations

import contextlib
import pickle
import signal
import struct
import subprocess
import sys
from typing import Any

from ...spec.errors import NormspecError

#: What stands before an answer: how many bytes it has.
LENGTH = struct.Struct("<Q")

#: What runs it: this interpreter.
_PYTHON = sys.executable

#: What it runs, with this process's import path as its arguments.
_CODE = f"import sys; sys.path[:] = sys.argv[1:]; from {__package__}.answering import main; main()"

#: Seconds that a process which closed its pipe may take to end.
_ENDING = 2.0


class Gone(Exception):
    """The process has died, or what it says is no answer; the message says how it ended."""


class Other:
    """Another process that judges the units of a request."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @classmethod
    def started(cls, told: str) -> Other:
        """Start it on a request (Told.to_json), and leave it to open that meanwhile. Raises OSError."""
        process = subprocess.Popen(
            [_PYTHON, "-c", _CODE, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is the first one's
        )
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # that it died shows when it is asked
            process.stdin.write(told.encode() + b"\n")
        return cls(process)

    def ask(self, question: str) -> Any:
        """The answer, waited for. Raises Gone, or the NormspecError that it is."""
        try:
            found = pickle.loads(self.answer(question))  # what our own process wrote, on our own pipe
        except pickle.UnpicklingError as error:
            raise Gone("what it wrote is no answer") from error
        if isinstance(found, NormspecError):
            raise found
        return found

    def answer(self, question: str) -> bytes:
        """The answer as it was written, or the NormspecError in its place. Raises Gone."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it may have said why before it ended
            self._process.stdin.write(question.encode() + b"\n")
        try:
            return self._received()
        except (OSError, EOFError, struct.error, MemoryError, OverflowError) as error:
            raise Gone(self._how_it_ended()) from error

    def _received(self) -> bytes:
        (size,) = LENGTH.unpack(self._exactly(LENGTH.size))
        return self._exactly(size)

    def _exactly(self, count: int) -> bytes:
        assert self._process.stdout is not None
        pieces, missing = [], count
        while missing:
            piece = self._process.stdout.read(missing)
            if not piece:
                raise EOFError
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    def _how_it_ended(self) -> str:
        try:
            status = self._process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            return "it closed its pipe"
        if status >= 0:
            return f"it ended with exit status {status}"
        try:
            return f"it was ended by {signal.Signals(-status).name}"
        except ValueError:
            return f"it was ended by signal {-status}"

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
