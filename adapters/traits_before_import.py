"""The traits of a platform as they are before a user's file is imported: what a file does to its process is its own."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterable
from pathlib import Path

from .frameworks import IMPLIED, adapter
from .imports import imported_packages
from .trait import Trait
from .traits import measured

#: The frameworks that can be imported, and make their first call, before the file: they take no setting that a file
#: can make only before that. JAX, TensorFlow and Keras fix their flags, their platform and their backend by then.
_AT_ANY_TIME = ("numpy", "torch")


def traits_before_import(place: str, framework: str | None) -> dict[str, tuple[Trait, ...]]:
    """
    The traits on the CPU of each framework that a file, or a module of dotted name, is plainly written for.

    Those that cannot be told from its own import statements, or do not import, are left out. A file can change how the
    CPU treats subnormal numbers; devices of their own it cannot.
    """
    found = {}
    for name in {framework} if framework else _implied(place):
        if name in _AT_ANY_TIME:
            with contextlib.suppress(Exception):  # the import of the file will show the error
                found[name] = measured(adapter(name).BRIDGE, "cpu")
    return found


def _implied(place: str) -> set[str]:
    packages: Iterable[str] = ()
    with contextlib.suppress(Exception):  # what cannot be read is imported, and shows its error then
        packages = {place.partition(".")[0]}
        packages = {*packages, *imported_packages(_source(place))}
    return {IMPLIED[package] for package in packages if package in IMPLIED}


def _source(place: str) -> str:
    """The text of a file, or of a module that is found without importing the packages that it is in."""
    path = Path(place).expanduser()
    if not path.is_file():
        root, *rest = place.split(".")
        spec = importlib.util.find_spec(root)
        path = Path((spec and spec.origin) or "")
        for part in rest:
            path = path.parent / part / "__init__.py"
            if not path.exists():
                path = path.parent.with_suffix(".py")
    return path.read_text(encoding="utf-8")
