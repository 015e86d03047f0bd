"""
Finds the files that a target is made of: its own, and those that they import from outside the installed packages.

The files are read and never run. If reading is not enough, that is an obstacle, and the target is always run. Only
names that are known to reach nothing outside can be followed.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import itertools
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

import attrs

from ...adapters.own_function import file_of, names_a_function
from .allowed_names import MODULES, PACKAGES
from .reach import first_outside_use, local_name, own_names, unknown_import

#: The folders in which packages are installed.
_INSTALLED = {"site-packages", "dist-packages"}

#: The folder of the standard library.
_STANDARD_LIBRARY = sysconfig.get_path("stdlib")

#: Our own package, whose sources are in every key.
_OWN_PACKAGE = __name__.partition(".")[0]


class _Obstacle(Exception):
    """Something cannot be followed. The message says what."""


@attrs.define
class TargetSources:
    """The files and packages that a target is made of."""

    #: Its source files outside the installed packages.
    files: dict[Path, None] = attrs.field(factory=dict)
    #: Each file with its syntax tree, and the names that it gives to modules of the target and to their contents.
    _sources: list[tuple[Path, ast.Module, set[str]]] = attrs.field(factory=list)
    #: Names of the installed packages that they import.
    packages: dict[str, None] = attrs.field(factory=dict)
    #: Why the target cannot be followed completely; empty if it can.
    obstacle: str = ""

    def read(self, file: Path, tree: ast.Module) -> set[str]:
        """Add a source. The caller adds the names of modules of the target to the returned set."""
        modules: set[str] = set()
        self._sources.append((file, tree, modules))
        return modules

    def outside_use(self) -> str:
        """The first use in the sources that may reach outside the program; empty if there is none."""
        own = set[str]().union(*(own_names(tree) for _, tree, _ in self._sources))
        for file, tree, modules in self._sources:
            if outward := first_outside_use(tree, own, modules):
                return f"{file.name} {outward}"
        return ""


def sources_of_target(target: str) -> TargetSources:
    """Follow the target FILE.py:NAME or package.module:NAME."""
    importlib.invalidate_caches()
    found, place = TargetSources(), target.rpartition(":")[0]
    try:
        if not names_a_function(target):
            raise _Obstacle("it is not a function")
        if file_of(target):
            file = Path(os.path.realpath(os.path.expanduser(place)))  # Path.resolve raises for a loop of links
            _follow(file, [str(file.parent), *sys.path], found)
        else:
            # The worker has the working directory first on its import path, as `python -m` does.
            _follow_module(place, [os.getcwd(), *sys.path], found)
            if not found.files and not found.packages:
                raise _Obstacle(f"{place} is not found")
        found.obstacle = found.outside_use()
    except _Obstacle as obstacle:
        found.obstacle = str(obstacle)
    return found


def _follow(file: Path, path: Sequence[str], found: TargetSources) -> None:
    if file in found.files:
        return
    found.files[file] = None
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except (OSError, SyntaxError, ValueError, RecursionError):
        raise _Obstacle(f"{file.name} cannot be read") from None
    modules = found.read(file, tree)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            own = [alias for alias in node.names if _follow_alias(node, alias, file, path, found)]
            modules.update(map(local_name, own))
            if unknown := unknown_import(node, [alias.name for alias in node.names if alias not in own]):
                raise _Obstacle(f"{file.name} imports {unknown} (line {node.lineno})")


def _follow_alias(
    node: ast.Import | ast.ImportFrom, alias: ast.alias, file: Path, path: Sequence[str], found: TargetSources
) -> bool:
    """Follow one name of an import. Returns whether it belongs to the target itself."""
    own = False
    for name in _imported_modules(node, alias, file):
        if isinstance(name, Path):
            _follow_relative(name, path, found)
            own = True
        else:
            own |= _follow_module(name, path, found)
    return own


def _imported_modules(node: ast.Import | ast.ImportFrom, alias: ast.alias, file: Path) -> Iterator[str | Path]:
    """
    The modules that a statement may import: names, or for relative imports paths without an ending.

    `from a import b` also yields a.b, which need not be a module.
    """
    if isinstance(node, ast.Import):
        yield alias.name
    elif node.level:
        folder = file.parents[node.level - 1] if len(file.parents) >= node.level else file.parent
        start = folder.joinpath(*(node.module or "").split(".")) if node.module else folder
        yield from (start, start / alias.name)
    else:
        yield from (str(node.module), f"{node.module}.{alias.name}")


def _follow_relative(place: Path, path: Sequence[str], found: TargetSources) -> None:
    """Follow a module of the same package, and the `__init__.py` of each package above it."""
    for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
        if file.is_file():
            _follow(file.resolve(), path, found)
    for folder in place.parents:
        if not (folder / "__init__.py").is_file():
            break
        _follow((folder / "__init__.py").resolve(), path, found)


def _follow_module(name: str, path: Sequence[str], found: TargetSources) -> bool:
    """Follow a module by name. Returns whether it is in a file of the target itself."""
    root = name.partition(".")[0]
    if root == _OWN_PACKAGE:
        return True
    if root in sys.stdlib_module_names and (root in sys.builtin_module_names or not _is_hidden(root, path)):
        if root not in MODULES:
            raise _Obstacle(f"imports {root}")
        return False
    within: list[str] | None = list(path)
    parts, own = name.split("."), False
    for depth in range(len(parts)):
        spec = _spec(".".join(parts[: depth + 1]), within, first=not depth)
        if spec is None:
            return own  # there is no such module now; if it appears, it is followed, and the key changes
        if spec.origin and _is_installed(spec.origin):
            _add_package(root, found)
            return own
        if spec.origin and spec.has_location:
            if not spec.origin.endswith(".py"):
                raise _Obstacle(f"imports {name}, which is compiled")
            _follow(Path(spec.origin).resolve(), path, found)
            own = True
        elif spec.submodule_search_locations is None:
            raise _Obstacle(f"imports {name}, which has no file")
        within = list(spec.submodule_search_locations or ())
        if any(map(_is_installed, within)):
            _add_package(root, found)
            return own
    return own


def _add_package(package: str, found: TargetSources) -> None:
    """Add an installed package. Raises _Obstacle if its names are not known."""
    if package not in PACKAGES:
        raise _Obstacle(f"imports {package}, and what that reaches is not known")
    found.packages[package] = None


def _is_hidden(root: str, path: Sequence[str]) -> bool:
    """Whether a module in the target's own folder, or in another on the path, hides one of the standard library."""
    library = os.path.realpath(_STANDARD_LIBRARY)
    before = itertools.takewhile(lambda entry: os.path.realpath(entry) != library, path)
    return PathFinder.find_spec(root, list(before)) is not None


def _spec(name: str, within: list[str] | None, *, first: bool) -> ModuleSpec | None:
    try:
        spec = PathFinder.find_spec(name, within)
        # A package in editable mode may have its own finder.
        return spec if spec is not None or not first else importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        raise _Obstacle(f"imports {name}, which cannot be looked for") from None


def _is_installed(place: str) -> bool:
    return not _INSTALLED.isdisjoint(Path(place).parts)
