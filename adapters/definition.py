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

from ..spec.errors import SourceLine
from .target import Target
from .traceback_lines import short

#: The fields of a statement that hold other statements.
_HOLDING = ("body", "orelse", "finalbody", "handlers")


def with_definition(target: Target, function: Any, module: ModuleType | None, name: str) -> Target:
    """The target, with the line that defines ``name`` in the module added to each binding, if that line is found."""
    where = definition_of(function, module, name)
    if where is None:
        return target
    return replace(target, bindings=tuple(replace(one, where=where) for one in target.bindings))


def definition_of(function: Any, module: ModuleType | None, name: str) -> SourceLine | None:
    """
    The line that defines a function, class or object; None if none is found.

    ``name`` is its name in the module, dotted inside a class. The line is its `def` or `class`, or the assignment that
    makes it. If the module does not define the name, or imports it, the line is the first of the code that runs.
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
    except Exception:  # any attribute of the target's object may raise
        return None


def line_of(file: str, name: str) -> int | None:
    """The line of a Python file that defines a name (the last of several); None if none does."""
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
    """The statements of a body, including those in branches but not those inside functions and classes."""
    for one in body:
        yield one
        if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for field in _HOLDING:
                yield from _statements(getattr(one, field, ()))


def _names(one: ast.AST) -> Sequence[str]:
    """The names that a statement binds. Imports do not count: those names are defined elsewhere."""
    if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return (one.name,)
    targets = one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _at(file: str, line: int) -> SourceLine:
    return SourceLine(short(file), line, linecache.getline(file, line).strip())
