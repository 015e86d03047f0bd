"""Callables by name: whether another process would import the very same one."""

from __future__ import annotations

import importlib.machinery
import inspect
import os
import sys
from typing import Any, Callable


def importable_name(function: Callable[..., Any]) -> str | None:
    """
    ``package.module:NAME`` of a function that a fresh process would find under this name; None where there is none.

    A closure, a partial, an object, and whatever __main__ or an interactive session defines, has none.
    """
    if not inspect.isfunction(function):
        return None
    module, name = function.__module__, function.__qualname__
    holder = sys.modules.get(module)
    if not isinstance(module, str) or module == "__main__" or holder is None or not name.isidentifier():
        return None
    if getattr(holder, name, None) is not function or not _found_as(module, getattr(holder, "__file__", None)):
        return None
    return f"{module}:{name}"


def _found_as(module: str, file: str | None) -> bool:
    """Whether the import system finds this module in this file."""
    if not file:
        return False
    path: list[str] | None = None
    spec = None
    parts = module.split(".")
    for depth in range(len(parts)):
        try:
            spec = importlib.machinery.PathFinder.find_spec(".".join(parts[: depth + 1]), path)
        except (ImportError, ValueError, KeyError):
            return False
        if spec is None:
            return False
        path = list(spec.submodule_search_locations or ())
    origin = getattr(spec, "origin", None)
    return bool(origin) and os.path.realpath(str(origin)) == os.path.realpath(file)
