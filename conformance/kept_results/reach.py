"""Decides whether a source reaches nothing outside the program: every name that it uses must be known."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Container, Iterable, Iterator, Sequence

from .allowed_names import BUILT_IN, LOOK_UPS, NAMES

#: Kernel languages, in which `load` reads memory and not a file.
_KERNEL_LANGUAGES = ("triton.language", "jax.experimental.pallas")

#: Words at the beginning of names that may reach outside; _OUTSIDE_NAME has those at the end too. If a target defines
#: such a name itself, the name still does not count as known, because an object from elsewhere may have the same name.
_OUTSIDE_WORDS = (
    "argv", "cdll", "compil", "connect", "ctypes", "dlopen", "download", "environ", "exec", "extension", "file",
    "getenv", "hub", "import", "librar", "load", "memmap", "mmap", "open", "path", "pickl", "popen", "pretrained",
    "read", "request", "session", "shelve", "socket", "spawn", "sqlite", "stdin", "subprocess", "system", "url",
)  # fmt: skip
_OUTSIDE_NAME = re.compile(rf"(?:^|_)(?:{'|'.join(_OUTSIDE_WORDS)})|(?:(?<!pro)files?|paths?|urls?|txt|csv)(?:$|_)")
_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

#: Names of Python that are never known, not even if a target binds them itself: beside a parameter `open=open`, or a
#: method called `eval`, a use of the name may still mean Python's own. `input` is not here: many layers call their
#: argument so, and a worker has nothing to read.
_NEVER_KNOWN = frozenset({
    "__builtins__", "__file__", "__import__", "__loader__", "__spec__", "breakpoint", "compile", "eval", "exec",
    "globals", "locals", "open", "vars",
})  # fmt: skip

_EXCEPTIONS = {name for name, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, BaseException)}


def own_names(tree: ast.Module) -> set[str]:
    """The names of a source's own attributes, functions, classes and values, without those that may reach outside."""
    return {name for name in {*_bound_names(tree), *_attributes_set(tree)} if not _may_reach_outside(name)}


def first_outside_use(tree: ast.Module, own: Container[str], modules: Container[str]) -> str:
    """
    The first use in a source that may reach outside the program, in words; empty if there is none.

    ``own`` holds the names that the sources of the target define. ``modules`` holds the names that this source gives to
    modules of the target, whose attributes are then names of the target's own.
    """
    return next(_NameCheck(tree, own, modules).found(), "")


class _NameCheck:
    def __init__(self, tree: ast.Module, own: Container[str], modules: Container[str]) -> None:
        self.tree, self.own = tree, own
        self.bound = set(_bound_names(tree)) | set(_imported_names(tree))
        self.foreign = {name for name in _imported_names(tree) if name not in modules}
        self.kernels = _kernel_languages(tree)
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
        self.looked_up = {id(call.func) for call in calls if self._is_known_look_up(call)}

    def found(self) -> Iterator[str]:
        """All uses of names that are not on the list of allowed names."""
        for node in ast.walk(self.tree):
            for name in self._unknown(node):
                yield f"uses {name} (line {getattr(node, 'lineno', 1)})"

    def _unknown(self, node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Attribute):
            if not self._is_known(node.attr, of=node.value):
                yield node.attr
        elif isinstance(node, ast.Name):
            if node.id in LOOK_UPS:
                is_use = isinstance(node.ctx, ast.Load) and id(node) not in self.looked_up
                yield from (f"{node.id} of a name that is not known here",) if is_use else ()
            elif not self._is_known_name(node.id):
                yield node.id
        elif isinstance(node, ast.MatchClass):
            yield from (name for name in node.kwd_attrs if not self._is_known(name))

    def _is_known_name(self, name: str) -> bool:
        return name not in _NEVER_KNOWN and (name in self.bound or name in BUILT_IN or name in _EXCEPTIONS)

    def _is_known(self, name: str, of: ast.expr | None = None) -> bool:
        """Whether an attribute reaches nothing outside. An attribute ``of`` a package must be in NAMES."""
        whose = of.id if isinstance(of, ast.Name) else ""
        return whose in self.kernels or name in NAMES or (name in self.own and whose not in self.foreign)

    def _is_known_look_up(self, node: ast.AST) -> bool:
        """Whether this is `getattr(a, "b")`, `hasattr` or `setattr` with a known name b."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in LOOK_UPS):
            return False
        name = node.args[1] if len(node.args) > 1 else None
        return (
            isinstance(name, ast.Constant) and isinstance(name.value, str) and self._is_known(name.value, node.args[0])
        )


def unknown_import(node: ast.Import | ast.ImportFrom, names: Sequence[str]) -> str:
    """The unknown name that an import takes from an installed package, or its `*`; empty if there is none."""
    if isinstance(node, ast.Import):
        return next(
            (name for name in names if name not in _KERNEL_LANGUAGES and not _all_known(name.split(".")[1:])), ""
        )
    module = node.module or "."
    if any(alias.name == "*" for alias in node.names):
        return f"* of {module}"
    if module in _KERNEL_LANGUAGES:
        return ""
    names = [name for name in names if f"{module}.{name}" not in _KERNEL_LANGUAGES]
    known = _all_known(module.split(".")[1:])
    return next((f"{name} of {module}" for name in names if not known or name not in NAMES), "")


def _all_known(names: Iterable[str]) -> bool:
    return all(name in NAMES for name in names)


def _bound_names(tree: ast.Module) -> Iterator[str]:
    """All names that a source binds, except by imports."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            yield node.name
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.rest


def _imported_names(tree: ast.Module) -> Iterator[str]:
    """The local names of a source's imports."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from map(local_name, node.names)


def local_name(alias: ast.alias) -> str:
    """The local name of one import."""
    return alias.asname or alias.name.partition(".")[0]


def _attributes_set(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def _may_reach_outside(name: str) -> bool:
    return _OUTSIDE_NAME.search(_CAMEL_CASE.sub("_", name).lower()) is not None


def _kernel_languages(tree: ast.Module) -> set[str]:
    """The local names of kernel languages in a source."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {one.asname for one in node.names if one.asname and one.name in _KERNEL_LANGUAGES}
        elif isinstance(node, ast.ImportFrom):
            whole = {f"{node.module}.{one.name}": one.asname or one.name for one in node.names}
            found |= {name for module, name in whole.items() if module in _KERNEL_LANGUAGES}
    return found
