"""Turns the targets that a user gives into those to judge, each under its full name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from ...adapters.frameworks import full_name
from ...adapters.in_file import names_a_file, targets_in
from ...adapters.targets import TARGETS


def named_targets(targets: Iterable[Any], op: Sequence[str] | None = None) -> tuple[Any, ...]:
    """
    The targets, each once.

    A path becomes a text, and ``keras`` gets the name of its backend. FILE.py becomes every function and class in it
    whose name says its operator; with ``op``, only those of these operators.

    Raises UnknownTarget if a file has none, and NotImportable if it cannot be read.
    """
    found: list[Any] = []
    for target in targets:
        one = str(os.fspath(target)) if isinstance(target, os.PathLike) else target
        if not isinstance(one, str):
            found += [] if any(one is other for other in found) else [one]  # a callable need not be hashable
            continue
        names = targets_in(one, op) if names_a_file(one) else (full_name(one) if one in TARGETS else one,)
        found += [name for name in names if name not in found]
    return tuple(found)
