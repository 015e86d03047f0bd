"""Which frameworks a function is written for, judged by its module's imports."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from .frameworks import IMPLIED


def implied_frameworks(function: Any, module: ModuleType | None) -> set[str]:
    """
    The frameworks that the function's module uses: it imports them at the top or in a function, or holds their objects.

    Nothing is imported to find out.
    """
    roots = set(_packages_held(vars(module))) if module is not None else set()
    bare = inspect.unwrap(function) if inspect.isfunction(function) else function
    bare = getattr(bare, "func", bare)
    roots.update(_packages_held(getattr(bare, "__globals__", {})))
    if not inspect.isroutine(bare):
        roots.update(base.__module__.partition(".")[0] for base in type(bare).__mro__)
    if module is not None:
        roots.update(_imported(module))
    return {IMPLIED[root] for root in roots if root in IMPLIED}


def _packages_held(names: dict[str, Any]) -> Iterator[str]:
    """The packages of the modules, classes and functions that a namespace holds."""
    for value in list(names.values()):
        if isinstance(value, ModuleType):
            yield value.__name__.partition(".")[0]
        elif inspect.isclass(value) or inspect.isroutine(value):
            # Some callables, and hostile objects, have a __module__ that is not a string.
            holder = getattr(value, "__module__", None)
            if isinstance(holder, str):
                yield holder.partition(".")[0]


def _imported(module: ModuleType) -> Iterator[str]:
    """The packages in the import statements of a module's source, at any level."""
    try:
        yield from imported_packages(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError, ValueError, RecursionError):
        return


def imported_packages(source: str) -> Iterator[str]:
    """The packages in the import statements of a source text, at any level. Raises SyntaxError and its like."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]
