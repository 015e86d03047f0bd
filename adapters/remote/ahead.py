"""
Requests made ahead: several go to the worker in one message, and their replies are stored.

The same requests, made one by one later, take their replies from the store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np


class Planned(Exception):
    """Raised instead of a result: the request has been noted, but not sent yet."""


class _NotYet(dict):
    """Placeholder for a reply that is not there yet; reading it raises Planned."""

    def __getitem__(self, key: Any) -> Any:
        raise Planned

    def get(self, key: Any, default: Any = None) -> Any:
        raise Planned


class Ahead:
    """Requests made ahead: first a plan of them, then their replies."""

    def __init__(self) -> None:
        self._plan: list[Mapping[str, Any]] | None = None
        self._replies: deque[tuple[Mapping[str, Any], Any]] = deque()
        #: Replies that may be taken in any order, each with its request, by the key of :func:`_of`.
        self._kept: dict[Any, tuple[Mapping[str, Any], Any]] = {}

    @property
    def planning(self) -> bool:
        """Whether requests are only noted, not sent."""
        return self._plan is not None

    def plan(self, calls: Iterable[Callable[[], object]]) -> list[Mapping[str, Any]]:
        """
        The requests that these calls make.

        ``calls`` may be a generator that makes calls itself, as long as it does not read their results yet.
        """
        self._plan = plan = []
        waiting: Iterator[Callable[[], object]] = iter(calls)
        try:
            while True:
                try:
                    call = next(waiting, None)
                    if call is None:
                        return plan
                    call()
                except Exception:  # Planned, or an error that the real call will raise again
                    continue
        finally:
            self._plan = None

    def planned(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Note a request."""
        assert self._plan is not None
        self._plan.append(message)
        return _NotYet()

    def has(self, requests: Iterable[Mapping[str, Any]], replies: Iterable[Any]) -> None:
        """Store replies that are taken in the order of their requests."""
        self._replies = deque(zip(requests, replies))

    def keeps(self, requests: Iterable[Mapping[str, Any]], replies: Iterable[Any]) -> None:
        """Store replies that may be taken at any time and in any order; earlier ones of this kind are dropped."""
        self._kept = {_of(asked): (asked, reply) for asked, reply in zip(requests, replies)}

    def reply_to(self, message: Mapping[str, Any]) -> Any | None:
        """
        The stored reply to a request, if the request is the next one planned, or one with a kept reply; else None.

        If it is neither, the replies that were to be taken in order are dropped.
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
        """Drop the replies that were to be taken in order."""
        self._replies.clear()


def _of(message: Mapping[str, Any]) -> Any:
    """A key for a request; few requests share one."""
    arrays = [*message.get("inputs", {}).values(), message.get("g")]
    return message["do"], *(None if one is None else (one.shape, one.dtype.name, one.tobytes()) for one in arrays)


def _alike(one: Any, other: Any) -> bool:
    """Whether two requests are equal, bit for bit."""
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
