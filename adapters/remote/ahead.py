"""Requests that are made ahead, all in one, and the replies that whoever makes them one by one finds there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np


class Planned(Exception):
    """In place of a result: the request for it is noted, and not made yet."""


class _NotYet(dict):
    """In place of a reply: to read anything of it raises Planned."""

    def __getitem__(self, key: Any) -> Any:
        raise Planned

    def get(self, key: Any, default: Any = None) -> Any:
        raise Planned


class Ahead:
    """What is asked ahead: a plan while it is made, and then the replies."""

    def __init__(self) -> None:
        self._plan: list[Mapping[str, Any]] | None = None
        self._replies: deque[tuple[Mapping[str, Any], Any]] = deque()
        #: Those to calls that others may be made before, by what they are of.
        self._kept: dict[Any, tuple[Mapping[str, Any], Any]] = {}

    @property
    def planning(self) -> bool:
        """Whether requests are noted, and not made."""
        return self._plan is not None

    def plan(self, calls: Iterable[Callable[[], object]]) -> list[Mapping[str, Any]]:
        """The requests that these calls make; who yields them may make calls, too, whose results are read later."""
        self._plan = plan = []
        waiting: Iterator[Callable[[], object]] = iter(calls)
        try:
            while True:
                try:
                    call = next(waiting, None)
                    if call is None:
                        return plan
                    call()
                except Exception:  # Planned; and what cannot be asked for shows where it is asked for in earnest
                    continue
        finally:
            self._plan = None

    def planned(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Note a request."""
        assert self._plan is not None
        self._plan.append(message)
        return _NotYet()

    def has(self, requests: Iterable[Mapping[str, Any]], replies: Iterable[Any]) -> None:
        """These are the replies."""
        self._replies = deque(zip(requests, replies))

    def keeps(self, requests: Iterable[Mapping[str, Any]], replies: Iterable[Any]) -> None:
        """These are the replies to calls that may be made at any time, in the place of all such."""
        self._kept = {_of(asked): (asked, reply) for asked, reply in zip(requests, replies)}

    def reply_to(self, message: Mapping[str, Any]) -> Any | None:
        """
        The reply to a request, if it is the next of those that were made ahead, or one that was kept.

        Where it is neither, what was to follow next counts no more.
        """
        if self._replies:
            asked, reply = self._replies.popleft()
            if _alike(asked, message):
                return reply
        if self._kept:
            kept = self._kept.pop(_of(message), None)
            if kept is not None and _alike(kept[0], message):
                return kept[1]
        self._replies.clear()
        return None

    def forget(self) -> None:
        """Let go of replies that nobody has asked for."""
        self._replies.clear()


def _of(message: Mapping[str, Any]) -> Any:
    """What tells a call from nearly all others."""
    arrays = [*message.get("inputs", {}).values(), message.get("g")]
    return message["do"], *(None if one is None else (one.shape, one.dtype.name, one.tobytes()) for one in arrays)


def _alike(one: Any, other: Any) -> bool:
    """Whether two requests ask for the same, to the last bit."""
    if one is other:
        return True
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
            return False
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(value, other[key]) for key, value in one.items())
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_alike, one, other))
    return type(one) is type(other) and (one == other or (one != one and other != other))
