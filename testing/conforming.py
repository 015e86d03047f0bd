"""The decorator that makes tests for a function, class or fixture; its options are kept here for the plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from ..spec.errors import UnknownOperator

T = TypeVar("T")

#: The options of each decorated object, by id. The object itself is kept too, so that no other gets its id. The
#: options are not an attribute of the object: with one, a function would differ from what another process imports.
_options: dict[int, tuple[object, Mapping[str, Any]]] = {}


def conforms(op: str, **options: Any) -> Callable[[T], T]:
    """
    Make a test of each requirement and dtype for the function, class or fixture that follows.

        @normspec.conforms(op="layer_norm", framework="torch")
        def fused_layer_norm(x, gamma, beta, *, eps, axes): ...

    ``op``: which operator it is. ``options``: other arguments of `normspec.check`, such as ``framework``, ``dtypes``,
    ``conventions``, ``profile`` (default "quick"), ``forward_only``, ``fixed``. For a fixture, its value is checked,
    which may be any callable or layer. The decorated object is returned unchanged: pytest makes the tests when it
    collects its module, if normspec is installed.

    Raises UnknownOperator if ``op`` is no text, as in ``@normspec.conforms`` without brackets: there, no test would be
    made, and nobody would be told.
    """
    if not isinstance(op, str):
        raise UnknownOperator('@normspec.conforms needs the operator: write @normspec.conforms(op="layer_norm")')

    def mark(target: T) -> T:
        _options[id(target)] = (target, {"op": op, **options})
        return target

    return mark


def options_of(target: object) -> Mapping[str, Any] | None:
    """The options of a decorated object, or of the function in a fixture; None if it is not decorated."""
    for one in _with_wrapped(target):
        held, options = _options.get(id(one), (None, None))
        if options is not None and held is one:
            return options
    return None


def _with_wrapped(target: object) -> Iterator[object]:
    """An object, and what it wraps: a fixture wraps its function."""
    seen = 0
    while target is not None and seen < 8:
        yield target
        try:
            target, seen = getattr(target, "__wrapped__", None), seen + 1
        except Exception:  # any object of a test module may come here, and its attributes may raise
            return
