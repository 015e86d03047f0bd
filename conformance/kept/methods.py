"""Caching of a truth's methods: ``cached_in_memory``, or ``cached_on_disk`` too."""

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
S = TypeVar("S", bound="CachedMethods")


@attrs.define(eq=False)
class CachedMethods:
    """Base of classes with cached methods."""

    #: The store on disk; None if results are kept in memory only.
    store: Store | None = attrs.field(default=None, kw_only=True)
    #: Results by method and arguments: those that ``cached_on_disk`` keeps, and the intermediate ones.
    _found: dict[Hashable, Any] = attrs.field(factory=dict, init=False)
    _intermediate: dict[Hashable, Any] = attrs.field(factory=dict, init=False)

    def forget_intermediates(self) -> None:
        """Drop what ``cached_in_memory`` keeps."""
        self._intermediate.clear()

    @property
    def identity(self) -> Hashable:
        """All that the results depend on, apart from the arguments."""
        raise NotImplementedError


def _computed_once(
    method: Callable[Concatenate[S, P], T], results: Callable[[S], dict[Hashable, Any]]
) -> Callable[Concatenate[S, P], T]:
    name = method.__name__

    @wraps(method)
    def found(self: S, *arguments: P.args, **named: P.kwargs) -> T:
        key = (name, *map(token, arguments), token(named) if named else ())
        known = results(self)
        if key not in known:
            known[key] = method(self, *arguments, **named)
        return known[key]

    return found


def cached_in_memory(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Compute a method once for the same arguments, which are compared by content, until intermediates are dropped."""
    return _computed_once(method, lambda self: self._intermediate)


def cached_on_disk(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Compute a method that returns arrays once for the same arguments; a store keeps the result for later runs."""

    @wraps(method)
    def found(self: S, *arguments: P.args, **named: P.kwargs) -> T:
        if self.store is None:
            return method(self, *arguments, **named)
        key = digest(type(self).__name__, self.identity, method.__name__, token(arguments), token(named))
        data = self.store.find(key)
        if data is not None:
            try:
                return decoded(data)
            except Undecodable:  # it is not what we wrote: compute it
                pass
        value = method(self, *arguments, **named)
        self.store.put(key, encoded(value))
        return value

    return _computed_once(found, lambda self: self._found)
