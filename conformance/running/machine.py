"""
Code that runs in a worker of a Dask cluster: it keeps judging processes, and sends them questions.

Each question has its own process, because a worker has several threads, and the targets of a process serve only one at
a time. Also, a target that harms the process that judges it then does no harm to the cluster.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..reporting.versions import versions
from ..sources import sources
from .answering_process import AnsweringProcess, ProcessEnded

#: Seconds after the last question until a request is dropped, because the program that made it must be gone.
FORGOTTEN = 600.0

#: How many idle processes are kept when one for another target is added. Thus two targets are opened and then judged
#: without opening the first again. Each process may hold a framework, which takes half a gigabyte.
KEPT = 2


def state(dask_worker: Any = None) -> dict[str, Any]:
    """The versions that a machine must share with the one that asks, and the worker's name."""
    from ... import __version__

    return {
        "name": str(getattr(dask_worker, "name", "") or ""),
        "versions": {**versions(), "normspec": f"{__version__} ({sources()})"},
    }


class _HeldRequest:
    """The files and processes of one request."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._folder = tempfile.TemporaryDirectory(prefix="normspec-", ignore_cleanup_errors=True)
        self._changing = threading.Lock()
        self._idle: list[tuple[str, AnsweringProcess]] = []
        self._busy: list[AnsweringProcess] = []
        self._over = False
        self._timer: threading.Timer | None = None

    def answer(self, message: str, files: Mapping[str, bytes], question: str) -> bytes | str:
        with self._changing:
            other = self._taken(message) or AnsweringProcess.started(self._placed(message, files))
            self._busy.append(other)
            self._wait()
        ended = False
        try:
            return other.answer(question)
        except ProcessEnded as gone:
            ended = True
            return str(gone)
        finally:
            self._give_back(message, other, ended=ended)

    def _taken(self, message: str) -> AnsweringProcess | None:
        """An idle process that opened this request."""
        for place, (other_message, other) in enumerate(self._idle):
            if other_message == message:
                del self._idle[place]
                return other
        return None

    def _give_back(self, message: str, other: AnsweringProcess, *, ended: bool) -> None:
        with self._changing:
            self._busy.remove(other)
            closing = [other] if ended or self._over else []
            if not closing:
                self._idle.append((message, other))
                while len(self._idle) > KEPT and self._idle[0][0] != message:  # an earlier target is finished
                    closing.append(self._idle.pop(0)[1])
            self._wait()
        for one in closing:
            one.close()

    def _wait(self) -> None:
        """Start the timer that drops the request, unless a question is being answered."""
        if self._timer is not None:
            self._timer.cancel()
        if not (self._busy or self._over):
            self._timer = threading.Timer(FORGOTTEN, forget, [self._key])
            self._timer.daemon = True
            self._timer.start()

    def _placed(self, message: str, files: Mapping[str, bytes]) -> str:
        """Write the files into the folder, and return the message with their places."""
        places = {}
        for number, (name, content) in enumerate(sorted(files.items())):
            place = Path(self._folder.name, str(number), Path(name.replace("\\", "/")).name)
            if not place.exists():
                place.parent.mkdir(exist_ok=True)
                place.write_bytes(content)
            places[name] = str(place)
        return json.dumps({**json.loads(message), "places": places})

    def interrupt(self) -> None:
        """Make all busy processes answer at once."""
        for other in list(self._busy):
            other.interrupt()

    def close(self) -> None:
        """End all processes and delete the files."""
        with self._changing:
            self._over, idle, self._idle = True, self._idle, []
            self._wait()
        self.interrupt()
        for _, other in idle:
            other.close()
        self._folder.cleanup()


_HELD_REQUESTS: dict[str, _HeldRequest] = {}
_HELD_LOCK = threading.Lock()


def answer(key: str, message: str, files: Mapping[str, bytes], question: str) -> bytes | str:
    """
    The answer of a process that opened the request, as bytes; or, if the process ended, a text that says how.

    The request is kept under ``key``. ``files`` holds the files that it names, with their contents.
    """
    with _HELD_LOCK:
        if key not in _HELD_REQUESTS:
            _HELD_REQUESTS[key] = _HeldRequest(key)
        held = _HELD_REQUESTS[key]
    return held.answer(message, files, question)


def interrupt(key: str) -> None:
    """Make all processes of a request answer at once with their partial reports."""
    held = _HELD_REQUESTS.get(key)
    if held is not None:
        held.interrupt()


def forget(key: str) -> None:
    """Drop a request; no more questions will come."""
    with _HELD_LOCK:
        held = _HELD_REQUESTS.pop(key, None)
    if held is not None:
        threading.Thread(target=held.close, daemon=True, name="normspec: letting go").start()
