"""
A process that answers: a new normspec that receives a request and then one question after the other.

It reads JSON and answers with pickles. That is safe: it holds no target itself, and its workers use the protocol of
adapters/worker, so no target can forge an answer.
"""

from __future__ import annotations

import contextlib
import pickle
import struct
import subprocess
import sys
from typing import Any

from ...adapters.remote.process import signal_name
from ...spec.errors import NormspecError

#: Header of an answer: its number of bytes.
LENGTH = struct.Struct("<Q")

#: The interpreter that runs it: the current one.
_PYTHON = sys.executable

#: The code that it runs; its arguments are this process's import path.
_CODE = f"import sys; sys.path[:] = sys.argv[1:]; from {__package__}.answering import main; main()"

#: Seconds to wait for a process to end after it closed its pipe.
_ENDING = 2.0


class ProcessEnded(Exception):
    """The process died, or wrote something that is not an answer. The message says how it ended."""


class AnsweringProcess:
    """Another process that judges the units of a request."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @classmethod
    def started(cls, message: str) -> AnsweringProcess:
        """Start a process on a request (Message.to_json), which it opens in the background. Raises OSError."""
        process = subprocess.Popen(
            [_PYTHON, "-c", _CODE, *(entry for entry in sys.path if isinstance(entry, str))],  # Python ignores others
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # so that only the first process receives Ctrl-C
        )
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # if it died, the first question shows it
            process.stdin.write(message.encode() + b"\n")
            process.stdin.flush()
        return cls(process)

    def ask(self, question: str) -> Any:
        """Wait for the answer. Raises ProcessEnded, or the answer if it is a NormspecError."""
        try:
            found = pickle.loads(self.answer(question))  # written by our own process on our own pipe
        except pickle.UnpicklingError as error:
            raise ProcessEnded("what it wrote is not an answer") from error
        if isinstance(found, NormspecError):
            raise found
        return found

    def answer(self, question: str) -> bytes:
        """The bytes of the answer, which may be a NormspecError. Raises ProcessEnded."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it may have written the reason before it ended
            self._process.stdin.write(question.encode() + b"\n")
            self._process.stdin.flush()
        try:
            return self._received()
        except (OSError, EOFError, struct.error, MemoryError, OverflowError) as error:
            raise ProcessEnded(self._how_it_ended()) from error

    def _received(self) -> bytes:
        (size,) = LENGTH.unpack(self._exactly(LENGTH.size))
        return self._exactly(size)

    def _exactly(self, count: int) -> bytes:
        assert self._process.stdout is not None
        found = self._process.stdout.read(count)
        if len(found) < count:
            raise EOFError
        return found

    def _how_it_ended(self) -> str:
        try:
            status = self._process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            return "it closed its pipe"
        return f"it ended with exit status {status}" if status >= 0 else f"it was ended by {signal_name(-status)}"

    def interrupt(self) -> None:
        """Make a busy process answer at once with a partial report; an idle one ends."""
        self._process.terminate()

    def close(self) -> None:
        """End the process; no question may be waiting for an answer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.terminate()
        with contextlib.suppress(OSError):  # it may have ended before it read everything
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
