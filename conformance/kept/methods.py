"""Caching of a truth's methods: ``once`` in memory, ``kept`` also on disk."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import attrs

from .codec import Undecodable, decoded, encoded
from .content import digest, token

if TYPE_CHECKING:  # a Python that was built without SQLite has none
    from .store import Store

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="Keeping")


@attrs.define(eq=False)
class Keeping:
    """Base of classes with cached methods."""

    #: The store on disk; None if results are kept in memory only.
    store: Store | None = attrs.field(default=None, kw_only=True)
    _found: dict[Hashable, Any] = attrs.field(factory=dict, init=False)

    @property
    def identity(self) -> Hashable:
        """All that the results depend on, apart from the arguments."""
        raise NotImplementedError


def once(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Compute a method once for the same arguments; arrays are compared by content."""

    @wraps(method)
    def found(self: S, *arguments: P.args, **named: P.kwargs) -> T:
        key = (method.__name__, token(arguments), token(named))
        if key not in self._found:
            self._found[key] = method(self, *arguments, **named)
        return self._found[key]

    return found


def kept(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """As ``once``, for a method that returns arrays; its results are also kept in the store, if there is one."""

    def recalled(self: S, *arguments: P.args, **named: P.kwargs) -> T:
        if self.store is None:
            return method(self, *arguments, **named)
        key = digest(type(self).__name__, self.identity, method.__name__, token(arguments), token(named))
        words = self.store.find(key)
        if words is not None:
            try:
                return decoded(words)
            except Undecodable:  # it is not what we wrote: compute it
                pass
        value = method(self, *arguments, **named)
        self.store.put(key, encoded(value))
        return value

    return once(wraps(method)(recalled))
