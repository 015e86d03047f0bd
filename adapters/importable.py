"""Importable names: whether another process could import the same callable by its name."""

from __future__ import annotations

import importlib.machinery
import inspect
import os
import sys
from types import ModuleType
from typing import Any, Callable

from .binding import DERIVATIVES


def importable_name(function: Callable[..., Any]) -> str | None:
    """
    ``package.module:NAME`` of a function, if a fresh process would find the same function under this name; else None.

    A closure, a partial, an object, or anything defined in __main__ or an interactive session has no such name. Nor has
    a function that was given attributes, or whose module was given a derivative of it: another process would not see
    them.
    """
    if not inspect.isfunction(function):
        return None
    module, name = function.__module__, function.__qualname__
    holder = sys.modules.get(module)
    if not isinstance(module, str) or module == "__main__" or holder is None or not name.isidentifier():
        return None
    if vars(function).keys() - {"__wrapped__"} or not all(_defined_in(holder, f"{name}_{one}") for one in DERIVATIVES):
        return None
    if getattr(holder, name, None) is not function or not _found_as(module, getattr(holder, "__file__", None)):
        return None
    return f"{module}:{name}"


def _defined_in(holder: ModuleType, name: str) -> bool:
    """Whether a module lacks this name, or defines it as a function of its own."""
    beside = getattr(holder, name, None)
    if beside is None:
        return True
    return getattr(beside, "__module__", None) == holder.__name__ and getattr(beside, "__name__", None) == name


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
