"""
What runs in a worker of a Dask cluster: it keeps processes that judge (other.py), and hands them questions.

A process of its own for each, because a worker has several threads, and the targets of a process serve one at a time;
and so that what a target does to the process that judges it does nothing to the cluster.
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
from .other import Gone, Other

#: Seconds after which a request that nothing more has been asked of is let go of: whoever made it is gone.
FORGOTTEN = 600.0

#: How many idle processes are kept where those of another target come: two targets are opened, and then judged, without
#: opening the first again. Each may hold a framework, which takes half a gigabyte.
KEPT = 2


def state(dask_worker: Any = None) -> dict[str, Any]:
    """What a machine has to have in common with the one that asks, by what it is; and the worker's name."""
    from ... import __version__

    return {
        "name": str(getattr(dask_worker, "name", "") or ""),
        "versions": {**versions(), "normspec": f"{__version__} ({sources()})"},
    }


class _Held:
    """What is kept of one request: its files, and the processes that are told of it."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._folder = tempfile.TemporaryDirectory(prefix="normspec-", ignore_cleanup_errors=True)
        self._changing = threading.Lock()
        self._idle: list[tuple[str, Other]] = []
        self._busy: list[Other] = []
        self._over = False
        self._timer: threading.Timer | None = None

    def answer(self, told: str, files: Mapping[str, bytes], question: str) -> bytes | str:
        with self._changing:
            other = self._taken(told) or Other.started(self._placed(told, files))
            self._busy.append(other)
            self._wait()
        ended = ""
        try:
            return other.answer(question)
        except Gone as gone:
            ended = str(gone)
            return ended
        finally:
            self._give_back(told, other, ended=bool(ended))

    def _taken(self, told: str) -> Other | None:
        """An idle process that was told this."""
        for place, (other_told, other) in enumerate(self._idle):
            if other_told == told:
                del self._idle[place]
                return other
        return None

    def _give_back(self, told: str, other: Other, *, ended: bool) -> None:
        with self._changing:
            self._busy.remove(other)
            closing = [other] if ended or self._over else []
            if not closing:
                self._idle.append((told, other))
                while len(self._idle) > KEPT and self._idle[0][0] != told:  # it is done with the target before
                    closing.append(self._idle.pop(0)[1])
            self._wait()
        for one in closing:
            one.close()

    def _wait(self) -> None:
        """Let go in a while, unless something is asked."""
        if self._timer is not None:
            self._timer.cancel()
        if not (self._busy or self._over):
            self._timer = threading.Timer(FORGOTTEN, forget, [self._key])
            self._timer.daemon = True
            self._timer.start()

    def _placed(self, told: str, files: Mapping[str, bytes]) -> str:
        """What to tell, once its files lie in the folder."""
        places = {}
        for number, (name, content) in enumerate(sorted(files.items())):
            place = Path(self._folder.name, str(number), Path(name.replace("\\", "/")).name)
            if not place.exists():
                place.parent.mkdir(exist_ok=True)
                place.write_bytes(content)
            places[name] = str(place)
        return json.dumps({**json.loads(told), "places": places})

    def interrupt(self) -> None:
        """Have what is being judged answer at once."""
        for other in list(self._busy):
            other.interrupt()

    def close(self) -> None:
        """End all of it."""
        with self._changing:
            self._over, idle, self._idle = True, self._idle, []
            self._wait()
        self.interrupt()
        for _, other in idle:
            other.close()
        self._folder.cleanup()


_HELD: dict[str, _Held] = {}
_HOLDING = threading.Lock()


def answer(key: str, told: str, files: Mapping[str, bytes], question: str) -> bytes | str:
    """
    The answer of a process that was told a request, as it was written; in words how it ended, where it did.

    ``key``: under which the request is kept. ``files``: those that it names, and what is in them.
    """
    with _HOLDING:
        held = _HELD.setdefault(key, _HELD.get(key) or _Held(key))
    return held.answer(told, files, question)


def interrupt(key: str) -> None:
    """Have what is being judged of a request answer at once with what has been established."""
    held = _HELD.get(key)
    if held is not None:
        held.interrupt()


def forget(key: str) -> None:
    """Let go of a request: nothing more will be asked."""
    with _HOLDING:
        held = _HELD.pop(key, None)
    if held is not None:
        threading.Thread(target=held.close, daemon=True, name="normspec: letting go").start()
