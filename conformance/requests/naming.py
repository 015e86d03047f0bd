"""The targets that are meant, each under the name by which it is judged."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from ...adapters.frameworks import full_name
from ...adapters.in_file import names_a_file, targets_in
from ...adapters.targets import TARGETS


def named(targets: Iterable[Any], op: Sequence[str] | None = None) -> tuple[Any, ...]:
    """
    The targets, each once: a path as a text, ``keras`` by the name of its backend, and FILE.py as every function and
    class of it that says which operator it is, of those in ``op`` where it is given.

    Raises UnknownTarget where a file has none, and NotImportable where it cannot be read.
    """
    found: list[Any] = []
    for target in targets:
        one = str(os.fspath(target)) if isinstance(target, os.PathLike) else target
        if not isinstance(one, str):
            found += [] if any(one is other for other in found) else [one]  # what is called need not be hashable
            continue
        names = targets_in(one, op) if names_a_file(one) else (full_name(one) if one in TARGETS else one,)
        found += [name for name in names if name not in found]
    return tuple(found)
