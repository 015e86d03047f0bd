"""Prefetched replies: several requests go to a worker in one message, and later calls find their replies here."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import numpy as np

from ...spec.errors import CALL_FAILED, LayoutNotApplicable
from ..same_bits import same_bits


class ReplyPending(Exception):
    """Raised in place of a result: its request has been collected, and is not made yet."""


class _PendingReply:
    """Placeholder for a reply that is not there yet; to use it in any way raises ReplyPending."""

    def _use(self, *_: Any) -> Any:
        raise ReplyPending

    __getitem__ = __getattr__ = __contains__ = __iter__ = __len__ = __bool__ = _use


#: What a collected call may raise. Anything else is a defect, which shows where the call is made.
_EXPECTED = (ReplyPending, *CALL_FAILED, LayoutNotApplicable)


class Prefetched:
    """Requests made together in one message, and their replies, which later calls find here."""

    def __init__(self) -> None:
        self._plan: list[Mapping[str, Any]] | None = None
        #: Replies that calls find in this order.
        self._replies: deque[tuple[Mapping[str, Any], Any]] = deque()
        #: Replies that calls may fetch in any order, by what tells requests apart.
        self._kept: dict[Any, list[tuple[Mapping[str, Any], Any]]] = {}

    @property
    def collecting(self) -> bool:
        """Whether requests are collected rather than made."""
        return self._plan is not None

    def requests_of(self, calls: Iterable[Callable[[], object]]) -> list[Mapping[str, Any]]:
        """The requests that these calls make. The iterator may make calls too, whose results it does not read."""
        self._plan = plan = []
        waiting: Iterator[Callable[[], object]] = iter(calls)
        try:
            while True:
                try:
                    call = next(waiting, None)
                    if call is None:
                        return plan
                    call()
                except _EXPECTED:
                    continue
                except Exception:
                    return plan
        finally:
            self._plan = None

    def collect(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Collect a request."""
        assert self._plan is not None
        self._plan.append(message)
        return cast("dict[str, Any]", _PendingReply())

    def ordered(self, requests: Iterable[Mapping[str, Any]], replies: Iterable[Any]) -> None:
        """Hold replies for calls that follow in this order."""
        self._replies = deque(zip(requests, replies))

    def unordered(self, requests: Iterable[Mapping[str, Any]], replies: Iterable[Any]) -> None:
        """Hold replies for calls in any order, in place of those held so far."""
        self._kept = {}
        for asked, reply in zip(requests, replies):
            self._kept.setdefault(_key(asked), []).append((asked, reply))

    def reply_to(self, message: Mapping[str, Any]) -> Any | None:
        """
        The reply to a request, if one is held; None otherwise.

        A request that is not the next of the ordered ones ends these: what follows was planned for other calls.
        """
        if self._replies and _same_request(self._replies[0][0], message):
            return self._replies.popleft()[1]
        if self._kept:
            held = self._kept.get(_key(message), [])
            for place, (asked, reply) in enumerate(held):
                if _same_request(asked, message):
                    del held[place]
                    return reply
        self._replies.clear()
        return None

    def drop_ordered(self) -> None:
        """Drop the ordered replies that no call has taken."""
        self._replies.clear()


def _key(message: Mapping[str, Any]) -> Any:
    """A key that few requests share."""
    x = message.get("inputs", {}).get("x")
    start = None if x is None else x.reshape(-1)[:_FIRST].tobytes()
    return message["do"], message.get("mode"), None if x is None else x.shape, start


#: Number of values of x that a key holds: enough to tell nearly all cases apart.
_FIRST = 32


def _same_request(one: Any, other: Any) -> bool:
    """Whether two requests ask for the same, to the last bit."""
    if one is other:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return False
        for key, value in one.items():  # nearly all values are the same object, and need no call of this function
            if (found := other[key]) is not value and not _same_request(value, found):
                return False
        return True
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same_request, one, other))
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return same_bits(one, other)
    return one == other or (one != one and other != other)
