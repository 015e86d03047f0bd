"""From what the user names to a target that can be called."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from . import own_function
from .binding import OPERATORS, Target
from .errors import UnknownFramework, UnknownOperator, UnknownTarget, choices
from .frameworks import FRAMEWORKS, adapter, check_framework, installed

__all__ = ["BUILTIN", "check_operators", "installed", "resolve"]

#: Targets known by name: the layers that each framework brings.
BUILTIN: tuple[str, ...] = tuple(FRAMEWORKS)

#: What a target may look like, for messages.
_FORMS = "FILE.py:NAME, package.module:NAME"


def check_operators(op: str | Sequence[str] | None) -> tuple[str, ...]:
    """The operators named, each once; all of them for None. Raises UnknownOperator."""
    if op is None:
        return OPERATORS
    names = (op,) if isinstance(op, str) else tuple(dict.fromkeys(op))
    for name in names:
        if name not in OPERATORS:
            raise UnknownOperator(f"unknown operator {name!r}{choices(name, OPERATORS)}")
    if not names:
        raise UnknownOperator(f"no operator is named; choose from {', '.join(OPERATORS)}")
    return names


def resolve(
    target: str | os.PathLike[str] | Callable[..., Any],
    *,
    op: str | Sequence[str] | None = None,
    framework: str | None = None,
) -> Target:
    """
    The target that the user means: a known name, FILE.py:NAME, package.module:NAME, or a callable.

    ``op`` restricts a known target to some operators and says which one a function implements, unless the
    function is named after it. ``framework`` says whose tensors a function takes, unless its imports do.
    Raises one of the NormspecErrors; the message says what to do.
    """
    operators = None if op is None else check_operators(op)
    if framework is not None and framework not in FRAMEWORKS:
        raise UnknownFramework(f"unknown framework {framework!r}{choices(framework, FRAMEWORKS)}")
    if isinstance(target, os.PathLike):
        target = str(os.fspath(target))
    if not isinstance(target, str):
        if not callable(target):
            kind = type(target).__name__
            names = ", ".join(BUILTIN)
            raise UnknownTarget(f"an object of type {kind} is no target: give a callable, {names}, {_FORMS}")
        return own_function.from_callable(target, operators, framework)
    if target in BUILTIN:
        if framework not in (None, target):
            raise UnknownFramework(
                f"target {target} has a framework of its own: --framework {framework} is for {_FORMS}"
            )
        return _builtin(target, operators)
    if own_function.names_a_function(target):
        if framework is not None:
            check_framework(framework)
        return own_function.from_name(target, operators, framework)
    if target.rstrip(":").endswith(".py"):
        raise UnknownTarget(f"target {target!r} names a file and no function in it: write {target.rstrip(':')}:NAME")
    raise UnknownTarget(f"unknown target {target!r}{choices(target, BUILTIN)}, {_FORMS}")


def _builtin(name: str, operators: tuple[str, ...] | None) -> Target:
    found: Target = adapter(name).target()
    if operators is None:
        return found
    return replace(found, bindings=tuple(b for b in found.bindings if b.operator in operators))
