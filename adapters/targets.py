"""Turn the user's name for a target into a target that can be called."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..spec.errors import UnknownFramework, UnknownOperator, UnknownTarget, choices
from ..spec.operators import OPERATORS, operator_spelt
from . import own_function
from .declarations import NOTHING_DECLARED, Declarations
from .frameworks import KNOWN, SLOW, adapter, check_framework, check_framework_name, full_name, installed
from .own_layer import is_layer_like
from .target import Target

__all__ = ["EXEC_PREFIX", "TARGETS", "check_operators", "check_target", "installed", "resolve"]

#: Targets known by name: the layers of each framework. ``keras`` is Keras on the backend it would choose.
TARGETS: tuple[str, ...] = (*KNOWN, "keras")

#: The forms a target's name can take, for messages.
_FORMS = "FILE.py:NAME, package.module:NAME"

#: The prefix of a target that is itself a worker, in any language.
EXEC_PREFIX = "exec:"


def check_operators(op: str | Sequence[str] | None) -> tuple[str, ...]:
    """The named operators without repeats; None means all operators. Raises UnknownOperator."""
    if op is None:
        return tuple(OPERATORS)
    names = (op,) if isinstance(op, str) else tuple(dict.fromkeys(op))
    for name in names:
        if name not in OPERATORS:
            raise UnknownOperator(f"unknown operator {name!r}{choices(operator_spelt(name) or name, OPERATORS)}")
    if not names:
        raise UnknownOperator(f"no operator is named; choose from {', '.join(OPERATORS)}")
    return names


def resolve(
    target: str | os.PathLike[str] | Callable[..., Any],
    *,
    op: str | Sequence[str] | None = None,
    framework: str | None = None,
    file: str = "",
    declared: Declarations = NOTHING_DECLARED,
) -> Target:
    """
    Find the target the user means: a known name, FILE.py:NAME, package.module:NAME, or a callable.

    ``op`` limits a known target to some operators. For a function it says which operator the function implements,
    unless the function's name says so. ``framework`` says whose tensors a function takes, unless its imports do.
    ``file`` is the real path of FILE.py, if it differs. ``declared`` is what the user declares about a layer, or about
    a function that does not take the canonical call.
    Raises one of the NormspecErrors; the message says what to do.
    """
    operators = None if op is None else check_operators(op)
    if isinstance(target, os.PathLike):
        target = str(os.fspath(target))
    if not isinstance(target, str):
        if framework is not None:
            check_framework_name(framework)
        if not (callable(target) or is_layer_like(target)):
            kind = type(target).__name__
            names = ", ".join(TARGETS)
            raise UnknownTarget(f"an object of type {kind} is not a target: give a callable, {names}, {_FORMS}")
        return own_function.from_callable(target, operators, framework, declared)
    check_target(target, framework)
    if target.startswith(EXEC_PREFIX):
        raise UnknownTarget(
            f"target {target!r} is a command, and what calls it here needs a target in Python: {', '.join(TARGETS)},"
            f" {_FORMS}"
        )
    if target in TARGETS:
        return _known_target(target, operators)
    return own_function.from_name(target, operators, framework, file, declared)


def check_target(target: str, framework: str | None = None, *, elsewhere: bool = False) -> None:
    """
    Raise the errors in a target's name that show before anything is imported.

    ``elsewhere``: the target will run in another interpreter, so packages installed in this one do not matter.
    """
    if framework is not None:
        check_framework_name(framework)
    if target.startswith(EXEC_PREFIX):
        return  # whoever starts the command shows what is wrong with it
    check_written(target)
    if target in TARGETS:
        if framework not in (None, target):
            raise UnknownFramework(
                f"target {target} has a framework of its own: --framework {framework} is for {_FORMS}"
            )
        if not elsewhere:
            check_framework(target)
    elif own_function.names_a_function(target):
        if framework is not None and not elsewhere:
            check_framework(framework)
    elif target.rstrip(":").endswith(".py"):
        raise UnknownTarget(f"target {target!r} names a file and no function in it: write {target.rstrip(':')}:NAME")
    elif os.path.isfile(f"{target}.py"):
        raise UnknownTarget(f"unknown target {target!r}: a file is named with its ending, {target}.py")
    elif os.path.isdir(target):
        raise UnknownTarget(f"{target} is a folder: name a file in it, such as {os.path.join(target, 'FILE.py')}:NAME")
    elif "." in target and all(part.isidentifier() for part in target.split(".")):
        module, _, name = target.rpartition(".")
        raise UnknownTarget(f"unknown target {target!r}: a colon parts a module from what it has, {module}:{name}")
    else:
        raise UnknownTarget(f"unknown target {target!r}{choices(target, TARGETS)}, {_FORMS}, exec:COMMAND")


def check_written(target: str) -> None:
    """Raise UnknownTarget if a target is a notebook, or a path in another system's notation."""
    file, _, name = target.rpartition(":") if own_function.names_a_function(target) else (target, "", "")
    if file.endswith(".ipynb"):
        raise UnknownTarget(
            f"{file} is a notebook, which cannot be imported: put the function into a file of Python, such as"
            f" {file[: -len('.ipynb')]}.py (jupyter nbconvert --to script {file}), and name that"
        )
    if os.sep == "/" and "\\" in file and not os.path.exists(file):
        path = file.replace("\\", "/")
        if file[1:2] == ":":
            path = f"/mnt/{file[0].lower()}{path[2:]}"
        hint = "under WSL, " if file[1:2] == ":" else ""
        written = f"{path}:{name}" if name else path
        raise UnknownTarget(f"{file} is a path as Windows writes it, and paths have / here: {hint}write {written}")


def _known_target(name: str, operators: tuple[str, ...] | None) -> Target:
    module = adapter(name)
    found: Target = getattr(module, KNOWN[full_name(name)].make)()
    if found.name != full_name(name):  # Keras chooses its backend once in a process
        raise UnknownTarget(f"in this process {name} is {found.name}: set KERAS_BACKEND before keras is imported")
    wanted = tuple(b for b in found.bindings if operators is None or b.operator in operators)
    return replace(found, slow=full_name(name) in SLOW, bindings=wanted)
