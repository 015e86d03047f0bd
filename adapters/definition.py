"""Where a user's own target is defined: a line of a file, found by reading the file."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from ..spec.errors import Where
from .target import Target
from .traceback_lines import short

#: Statements that hold others, under the names of the fields that do.
_HOLDING = ("body", "orelse", "finalbody", "handlers")


def defined(target: Target, function: Any, module: ModuleType | None, name: str, file: str = "") -> Target:
    """
    The target, each of its bindings with the line that defines ``name`` in the module, where one is found.

    ``file``: what the user calls the file, where it was sent to a place of another name.
    """
    where = definition_of(function, module, name)
    if where is None:
        return target
    if file:
        where = replace(where, file=file)
    return replace(target, bindings=tuple(replace(one, where=where) for one in target.bindings))


def definition_of(function: Any, module: ModuleType | None, name: str) -> Where | None:
    """
    The line that defines a function, class or object; None where there is none to be found.

    ``name``: what it is called in the module, dotted within a class. The line is that of its `def` or `class`, of the
    assignment that makes it, and of the code that runs where the module has no such name, or imports it.
    """
    file = getattr(module, "__file__", None)
    if isinstance(file, str):
        line = line_of(file, name)
        if line is not None:
            return _at(file, line)
    try:
        bare = inspect.unwrap(function.func if isinstance(function, partial) else function)
        code = bare.__code__
        return None if code.co_filename.startswith("<") else _at(code.co_filename, code.co_firstlineno)
    except Exception:  # an object of the target, which may raise whatever is asked of it
        return None


def line_of(file: str, name: str) -> int | None:
    """The line of a Python file that defines a name, the last where several do; None where none does."""
    try:
        body = ast.parse(Path(file).read_bytes()).body
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    line = None
    for part in name.split("."):
        found = [(one.lineno, one) for one in _statements(body) if part in _names(one)]
        if not found:
            return None
        line, last = found[-1]
        body = last.body if isinstance(last, ast.ClassDef) else []
    return line


def _statements(body: Sequence[ast.AST]) -> Iterator[Any]:
    """The statements of a body, and those under its conditions, but not those of its functions and classes."""
    for one in body:
        yield one
        if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for field in _HOLDING:
                yield from _statements(getattr(one, field, ()))


def _names(one: ast.AST) -> Sequence[str]:
    """The names that a statement binds, but for what it imports: that is defined elsewhere."""
    if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return (one.name,)
    targets = one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _at(file: str, line: int) -> Where:
    return Where(short(file), line, linecache.getline(file, line).strip())
