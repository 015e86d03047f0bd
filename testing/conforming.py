"""The decorator that makes tests of whatever it stands on; what it was told is kept here for the plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

#: What was said of each object, with the object, which keeps its place in memory from being another's. No attribute of
#: its own: a function with one is not what another process imports by its name.
_said: dict[int, tuple[object, Mapping[str, Any]]] = {}


def conforms(op: str, **options: Any) -> Callable[[T], T]:
    """
    Make a test of each requirement and dtype for the function, class or fixture that follows.

        @normspec.conforms(op="layer_norm", framework="torch")
        def fused_layer_norm(x, gamma, beta, *, eps, axes): ...

    ``op``: which operator it is. ``options``: what `normspec.check` takes beside it, such as ``framework``, ``dtypes``,
    ``conventions``, ``profile`` ("quick" unless it is said), ``forward_only``, ``fixed``. Of a fixture, what it
    returns is checked, and it may be any callable or layer. What stands there is returned as it is: tests come of it
    where pytest collects its module, with normspec installed.
    """

    def mark(target: T) -> T:
        _said[id(target)] = (target, {"op": op, **options})
        return target

    return mark


def said_of(target: object) -> Mapping[str, Any] | None:
    """What was said of an object, or of what a fixture was made of; None for nothing."""
    for one in _layers(target):
        held, options = _said.get(id(one), (None, None))
        if options is not None and held is one:
            return options
    return None


def _layers(target: object) -> Iterator[object]:
    """An object, and what it wraps: a fixture wraps the function that it was made of."""
    seen = 0
    while target is not None and seen < 8:
        yield target
        target, seen = getattr(target, "__wrapped__", None), seen + 1
