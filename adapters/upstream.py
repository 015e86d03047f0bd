"""A framework's own layers, for a function on its tensors: what a layer violates, a function that calls it violates."""

from __future__ import annotations

from functools import lru_cache

from .binding import Binding
from .frameworks import adapter


@lru_cache(maxsize=None)
def upstream_bindings(framework: str, operator: str) -> tuple[Binding, ...]:
    """
    The bindings of the framework for this operator that have known violations, functions before layers.

    There are none if the framework cannot be imported.
    """
    try:
        found = adapter(framework).target().bindings
    except Exception:  # a layer of the framework that its target names, and this version lacks
        return ()
    known = (one for one in found if one.operator == operator and one.known_violations)
    return tuple(sorted(known, key=lambda one: one.has_modes))
