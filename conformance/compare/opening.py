"""Opens the targets that are compared, each under a name of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import attrs

from ...adapters.declarations import NOTHING_DECLARED
from ...adapters.target import Target
from ...adapters.targets import TARGETS
from ..requests.naming import named_targets
from ..requests.request import Request


def each_named(targets: Sequence[Any], operators: tuple[str, ...] | None) -> list[Any]:
    """The targets in the order given. A file becomes its functions; an object stays as it is."""
    return [
        one
        for target in targets
        for one in (named_targets((target,), operators) if isinstance(target, str | os.PathLike) else (target,))
    ]


def opened_targets(given: Sequence[Any], request: Request) -> list[Target]:
    """
    Names and callables as targets, in this order.

    What is said of functions and layers, their framework and how they are called, does not apply to targets known by
    name, if there are others.
    """
    known = tuple(one for one in given if _is_known(one))
    others = tuple(one for one in given if not _is_known(one))
    if not others:
        return attrs.evolve(request, targets=known, framework=None).open() if known else []
    if not known or (request.framework is None and request.declared == NOTHING_DECLARED):
        return attrs.evolve(request, targets=tuple(given)).open()  # at once, so that all workers start together
    opened = attrs.evolve(request, targets=known, framework=None, declared=NOTHING_DECLARED).open()
    try:
        opened_others = attrs.evolve(request, targets=others).open()
    except BaseException:
        for target in opened:
            target.close()
        raise
    following = {True: iter(opened), False: iter(opened_others)}
    return [next(following[_is_known(one)]) for one in given]


def _is_known(one: Any) -> bool:
    return isinstance(one, str) and one in TARGETS


def told_apart(targets: Sequence[Target]) -> list[Target]:
    """The targets under different names: a second layer_norm is "layer_norm (2)"."""
    seen: dict[str, int] = {}
    found = []
    for target in targets:
        seen[target.name] = seen.get(target.name, 0) + 1
        number = seen[target.name]
        found.append(target if number == 1 else replace(target, name=f"{target.name} ({number})"))
    return found
