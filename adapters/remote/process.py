"""A worker's process, seen from the judge: start it, send requests with a deadline, and end it whatever it does."""

from __future__ import annotations

import codecs
import contextlib
import math
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...spec.errors import NotImportable, TargetLost
from ..worker.codec import Frames, NotAFrame, encode
from ..worker.failures import error_from_plain

#: Seconds between two looks at a worker while waiting for it: is it alive, and how much memory does it use?
_POLL_SECONDS = 0.1

#: Seconds that a process may take to end after it closed its pipes.
_EXIT_SECONDS = 2.0

#: Seconds that a killed process may take to go: gigabytes of memory take some; one that waits for a device may stay.
_KILL_SECONDS = 30.0

#: How many characters of each line that a target prints are passed on. A flood without line ends is one line.
_MOST_LINE_LENGTH = 500

#: No work to do while waiting for a reply.
NO_STEPS: Iterator[object] = iter(())

#: How many bytes of a target's output are passed on to the user, and how many are kept to say why it died.
_BYTES_PASSED_ON, _BYTES_KEPT = 1 << 16, 1 << 13


@dataclass(frozen=True)
class Limits:
    """The limits on a target's time and memory."""

    #: Seconds for one requirement on one case.
    seconds: float = 60.0
    #: Bytes of private memory; None means no limit.
    memory: int | None = 8 << 30


class Worker:
    """
    One worker process, started by a command. Raises NotImportable if that fails.

    Every request ends in a reply, in TimeoutError, in one of a session's exceptions, or in TargetLost. After
    TargetLost the process is gone, with every process that it started.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        memory: int | None,
        environment: Mapping[str, str],
        prints: bool,
    ) -> None:
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        except OSError as error:
            why = error.strerror or error
            raise NotImportable(
                f"{command[0]} does not start ({why}): name a command that runs, such as a Python interpreter"
            ) from error
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._polls = {self._in: select.poll(), self._out: select.poll()}
        self._polls[self._in].register(self._in, select.POLLOUT)
        self._polls[self._out].register(self._out, select.POLLIN)
        self._memory = memory
        self._printed = _OutputReader(self._process.stderr, prints=prints)
        self._asked = 0
        self._replies = Frames(self._read)
        self._deadline = math.inf
        self._meanwhile = NO_STEPS

    @property
    def alive(self) -> bool:
        """Whether the process is still running."""
        return self._process.poll() is None

    def send(self, message: Mapping[str, Any], seconds: float) -> None:
        """
        Send a request; :meth:`reply` waits for its reply. Raises TimeoutError.

        If the worker is dead, that shows only in :meth:`reply`.
        """
        self._asked += 1
        with contextlib.suppress(BrokenPipeError):
            self._send(encode({**message, "id": self._asked}), time.monotonic() + seconds)

    def reply(
        self, seconds: float, answers: Callable[[dict[str, Any]], bool], meanwhile: Iterator[object] = NO_STEPS
    ) -> dict[str, Any]:
        """
        The reply to the last request, within this many seconds; steps of ``meanwhile`` run while it waits.

        Raises TimeoutError, TargetLost, or the exception in which the target's call ended. Output that breaks the
        protocol, or does not answer the request, was written by the target, so the worker is ended.
        """
        try:
            self._meanwhile = meanwhile
            found = self._receive(time.monotonic() + seconds)
            if type(found) is not dict or found.get("id") != self._asked:
                raise NotAFrame("the reply is to no request")
            if type(found.get("raised")) is dict:
                failure = error_from_plain(found["raised"])
            elif type(found.get("ok")) is dict and answers(found["ok"]):
                return found["ok"]
            else:
                raise NotAFrame("the reply is not an answer to the request")
        except TimeoutError:
            raise
        except (OSError, EOFError):
            raise TargetLost(self._how_it_ended()) from None
        except NotAFrame as error:
            self.end()
            raise TargetLost(f"disturbed its worker ({error})") from None
        finally:
            self._meanwhile = NO_STEPS
        raise failure

    def end(self) -> None:
        """End the process and every process that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_KILL_SECONDS)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        self._printed.join()

    # -- bytes -------------------------------------------------------------------------------------------------

    def _send(self, frame: bytes, deadline: float) -> None:
        left = memoryview(frame)
        while left:
            try:
                left = left[os.write(self._in, left) :]
            except BlockingIOError:
                self._wait(self._in, deadline)

    def _receive(self, deadline: float) -> Any:
        self._deadline = deadline
        return self._replies.next()

    def _read(self, most: int) -> bytes:
        self._wait(self._out, self._deadline)
        return os.read(self._out, most)

    def _wait(self, descriptor: int, deadline: float) -> None:
        """Wait until a pipe is ready. Raises TimeoutError, BrokenPipeError for a dead worker, and TargetLost."""
        poll = self._polls[descriptor]
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            look = time.monotonic() + min(left, _POLL_SECONDS)
            while not (ready := poll.poll(0)) and time.monotonic() < look and next(self._meanwhile, None) is not None:
                pass
            if ready or poll.poll(max(look - time.monotonic(), 0) * 1000):
                return
            if not self.alive:  # and another process holds the other end open
                if poll.poll(0):
                    return
                raise BrokenPipeError
            if self._memory is not None and resident(self._process.pid) > self._memory:
                self.end()
                raise TargetLost(f"ran out of memory: it took more than {self._memory >> 20} MiB and was stopped")

    def _how_it_ended(self) -> str:
        """How a process that closed its pipe ended, in words."""
        try:
            status = self._process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            status = None
        self.end()
        if status is None:
            return "closed its worker's pipe"
        place = self._printed.place()
        if status >= 0:
            return f"ended its process with exit status {status}{place}"
        name = signal_name(-status)
        hint = ", perhaps for want of memory" if name == "SIGKILL" else ""
        return f"ended its process by {name}{hint}{place}"


def signal_name(number: int) -> str:
    """The name of a signal: ``SIGKILL``, or ``signal 99`` for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def resident(process: int) -> int:
    """The bytes of memory that a process uses, without mapped files; 0 if the system does not say."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    return sum(1024 * int(size) for size in re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+) kB", status, re.MULTILINE))


class _OutputReader:
    """A worker's printed output: a limited amount is passed on if the user wants it, and the end of it is kept."""

    def __init__(self, pipe: Any, *, prints: bool) -> None:
        self._pipe = pipe
        self._passing = _BYTES_PASSED_ON if prints else 0
        #: How many characters of the current line have been read.
        self._column = 0
        #: A character may come in two pieces, and so may _CRASH: what may be the beginning of it waits for the next.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = b""
        self._kept: deque[bytes] = deque()
        self._size = 0
        self._thread = threading.Thread(target=self._drain, daemon=True, name="normspec: what a worker prints")
        self._thread.start()

    def _drain(self) -> None:
        with self._pipe:
            while True:
                try:
                    piece = os.read(self._pipe.fileno(), 1 << 16)
                except OSError:
                    piece = b""
                self._pass_on(piece)
                if not piece:
                    return
                self._kept.append(piece)
                self._size += len(piece)
                while self._size - len(self._kept[0]) > _BYTES_KEPT:
                    self._size -= len(self._kept.popleft())

    def _pass_on(self, piece: bytes) -> None:
        """Show the next piece; an empty one is the end."""
        if not self._passing:
            return
        known, crashed, _ = (self._held + piece).partition(_CRASH)  # the rest is kept, and reported in one line
        waits = piece and not crashed
        held = next(size for size in range(len(_CRASH) - 1, -1, -1) if known.endswith(_CRASH[:size])) if waits else 0
        known, self._held = known[: len(known) - held], known[len(known) - held :]
        passed = known[: self._passing]
        self._passing = 0 if crashed else self._passing - len(passed)
        text = self._cut(self._decoder.decode(passed, not piece))
        if not self._passing and not crashed:
            text += "\nnormspec: what else the target prints is left out\n"
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()

    def _cut(self, text: str) -> str:
        """The text with each line cut to _MOST_LINE_LENGTH characters, even if a line is read in several pieces."""
        lines = []
        for place, line in enumerate(text.split("\n")):
            before = 0 if place else self._column
            self._column = before + len(line)
            if self._column > _MOST_LINE_LENGTH:
                line = line[: max(0, _MOST_LINE_LENGTH - before)]
                line += " ..." if before <= _MOST_LINE_LENGTH else ""
            lines.append(line)
        return "\n".join(lines)

    def join(self) -> None:
        """Wait until the pipe is empty, for at most a second: a process that outlived its worker may hold it open."""
        self._thread.join(1)

    def place(self) -> str:
        """The line of the target's own code that crashed, or else the last line printed before the crash."""
        self.join()
        text = b"".join(self._kept).decode(errors="replace")
        crashed = _CURRENT_THREAD.findall(text)  # none if a thread crashed that Python does not know
        frames = re.findall(r'File "(.*?)", line (\d+) in (.*)', crashed[-1] if crashed else text)  # innermost first
        for file, line, function in frames:
            if not any(part in file for part in _NOT_THE_TARGETS):
                return f", in {function} ({Path(file).name}, line {line})"
        last = [line.strip() for line in text.splitlines() if line.strip()]
        return f": {last[-1][:200]}" if last and "Extension modules" not in last[-1] else ""


#: How faulthandler begins to tell of a crash.
_CRASH = b"Fatal Python error"

#: The thread that crashed, as faulthandler prints it among all threads, which come in the order of their age.
_CURRENT_THREAD = re.compile(r"^Current thread 0x.*?(?=^Thread 0x|\Z)", re.MULTILINE | re.DOTALL)

#: Parts of the paths of files that are not the target's own.
_NOT_THE_TARGETS = (str(Path(__file__).parent.parent), f"{os.sep}lib{os.sep}python", "<")


def seconds_in_words(seconds: float) -> str:
    """``1 second``, ``60 seconds``, ``0.5 seconds``."""
    return f"{seconds:g} second{'' if seconds == 1 else 's'}"
