"""
The files that a target is made of: its own, and whatever these import from outside the installed packages.

They are read, and never run. What cannot be followed by reading is told as an obstacle: the target is then always run.
Only names that are known to reach nothing outside can be followed.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

import attrs

from ...adapters.own_function import file_of, names_a_function
from .innocent import MODULES, PACKAGES
from .reach import defined, local_name, reaches, unknown_import

#: The folders in which packages are installed.
_INSTALLED = {"site-packages", "dist-packages"}

#: Our own package, whose sources are part of every key.
_OURS = __name__.partition(".")[0]


class _Obstacle(Exception):
    """Something cannot be followed; the message says what."""


@attrs.define
class Followed:
    """What a target is made of."""

    #: Its source files outside the installed packages.
    files: dict[Path, None] = attrs.field(factory=dict)
    #: Each of these as it was read, and what it calls modules of the target, and what they define.
    _sources: list[tuple[Path, ast.Module, set[str]]] = attrs.field(factory=list)
    #: The installed packages that these import, by name.
    packages: dict[str, None] = attrs.field(factory=dict)
    #: Why it cannot be followed to its end; empty where it can.
    obstacle: str = ""

    def read(self, file: Path, tree: ast.Module) -> set[str]:
        """Enter a source; the names of modules of the target are put into the set that is returned."""
        modules: set[str] = set()
        self._sources.append((file, tree, modules))
        return modules

    def reaching(self) -> str:
        """What in the sources reaches outside of the program; empty where nothing does."""
        own = set[str]().union(*(defined(tree) for _, tree, _ in self._sources))
        for file, tree, modules in self._sources:
            if outward := reaches(tree, own, modules):
                return f"{file.name} {outward}"
        return ""


def followed(target: str) -> Followed:
    """What FILE.py:NAME or package.module:NAME is made of."""
    importlib.invalidate_caches()
    found, place = Followed(), target.rpartition(":")[0]
    try:
        if not names_a_function(target):
            raise _Obstacle("it is no function")
        if file_of(target):
            file = Path(place).expanduser().resolve()
            _follow(file, [str(file.parent), *sys.path], found)
        else:
            # The worker finds it with the working directory first on its import path, as `python -m` has it.
            _import(place, [os.getcwd(), *sys.path], found)
            if not found.files and not found.packages:
                raise _Obstacle(f"{place} is not found")
        found.obstacle = found.reaching()
    except _Obstacle as obstacle:
        found.obstacle = str(obstacle)
    return found


def _follow(file: Path, path: Sequence[str], found: Followed) -> None:
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
    node: ast.Import | ast.ImportFrom, alias: ast.alias, file: Path, path: Sequence[str], found: Followed
) -> bool:
    """Follow what an import names, and tell whether that is the target's own."""
    own = False
    for name in _imports(node, alias, file):
        own |= _beside(name, path, found) if isinstance(name, Path) else _import(name, path, found)
    return own


def _imports(node: ast.Import | ast.ImportFrom, alias: ast.alias, file: Path) -> Iterator[str | Path]:
    """
    What a statement imports: modules by name, or the paths, without an ending, where those of its package would be.

    `from a import b` names a.b too, which need not be a module.
    """
    if isinstance(node, ast.Import):
        yield alias.name
    elif node.level:
        folder = file.parents[node.level - 1] if len(file.parents) >= node.level else file.parent
        start = folder.joinpath(*(node.module or "").split(".")) if node.module else folder
        yield from (start, start / alias.name)
    else:
        yield from (str(node.module), f"{node.module}.{alias.name}")


def _beside(place: Path, path: Sequence[str], found: Followed) -> bool:
    """Follow a module of the same package, and the `__init__.py` of each package on the way to it."""
    for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
        if file.is_file():
            _follow(file.resolve(), path, found)
    for folder in place.parents:
        if not (folder / "__init__.py").is_file():
            break
        _follow((folder / "__init__.py").resolve(), path, found)
    return True


def _import(name: str, path: Sequence[str], found: Followed) -> bool:
    """Follow a module by its name, and tell whether a file of the target's own holds it."""
    root = name.partition(".")[0]
    if root == _OURS:
        return True
    if root in sys.stdlib_module_names and (root in sys.builtin_module_names or _local(root, path) is None):
        if root not in MODULES:
            raise _Obstacle(f"imports {root}")
        return False
    within: list[str] | None = list(path)
    parts, own = name.split("."), False
    for depth in range(len(parts)):
        spec = _spec(".".join(parts[: depth + 1]), within, first=not depth)
        if spec is None:
            return own  # it is not there; once it is, it is found, and the target is another one
        if spec.origin and _is_installed(spec.origin):
            _enter(root, found)
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
            _enter(root, found)
            return own
    return own


def _enter(package: str, found: Followed) -> None:
    """Enter an installed package, if what it does is known."""
    if package not in PACKAGES:
        raise _Obstacle(f"imports {package}, and what that reaches is not known")
    found.packages[package] = None


def _local(root: str, path: Sequence[str]) -> ModuleSpec | None:
    """A module in the target's own folder that stands before one of the standard library."""
    return PathFinder.find_spec(root, list(path[:1]))


def _spec(name: str, within: list[str] | None, *, first: bool) -> ModuleSpec | None:
    try:
        spec = PathFinder.find_spec(name, within)
        # A package that is installed in place may have a finder of its own.
        return spec if spec is not None or not first else importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        raise _Obstacle(f"imports {name}, which cannot be looked for") from None


def _is_installed(place: str) -> bool:
    return not _INSTALLED.isdisjoint(Path(place).parts)
