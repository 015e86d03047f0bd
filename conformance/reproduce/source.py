"""Where a script gets the target from: a file, or a module that can be imported."""

from __future__ import annotations

import ast
import importlib.machinery
from collections.abc import Sequence
from pathlib import Path

import attrs

from ...adapters.binding import DERIVATIVES
from ...adapters.in_file import bound
from ...adapters.own_function import file_of, names_a_function
from ...adapters.targets import EXEC_PREFIX
from ..requests.library_names import is_in_library
from .spelling import CannotWrite


def can_be_imported(target: str) -> bool:
    """Whether a target is a function that a file or a module has under a name."""
    return names_a_function(target) and not target.startswith(EXEC_PREFIX) and not is_in_library(target)


@attrs.frozen
class Source:
    """A function by name, in a file or in a module."""

    #: The target, as it was named.
    target: str
    #: The file's absolute path; empty for a module.
    file: str
    module: str
    name: str

    @classmethod
    def of(cls, target: str, file: str = "") -> Source:
        """The source of a target with this name; ``file``: where its file is, if not there. Raises CannotWrite."""
        if not can_be_imported(target):
            raise CannotWrite("it is not a function that a file or a module has under a name")
        place, _, name = target.rpartition(":")
        path = file_of(target)
        if path:
            return cls(target, str(Path(file or path).expanduser().resolve()), "", name)
        return cls(target, "", place, name)

    @property
    def imports(self) -> tuple[str, ...]:
        """The modules of the standard library that are needed to load it."""
        return ("os", "runpy", "sys") if self.file else ("importlib", "os", "sys")

    def lines(self, function: str, derivatives: Sequence[str]) -> list[str]:
        """The lines that assign it, and the derivatives that are needed, to variables."""
        first, *rest = self.name.split(".")
        if not all(part.isidentifier() for part in (first, *rest)):
            raise CannotWrite(f"{self.name!r} is not a name that Python code can have")
        names = {function: self.name, **{f"{function}_{one}": f"{self.name}_{one}" for one in derivatives}}
        if not self.file:
            taken = [f"{variable} = module.{name}" for variable, name in names.items()]
            return ["sys.path.insert(0, os.getcwd())", f"module = importlib.import_module({self.module!r})", *taken]
        dotted = {variable: (first if "." in name else name, rest) for variable, name in names.items()}
        return [
            f"path = sys.argv[1] if len(sys.argv) > 1 else {self.file!r}",
            "sys.path.insert(0, os.path.dirname(os.path.abspath(path)))",
            "module = runpy.run_path(path)",
            *(f"{variable} = {'.'.join([f'module[{name!r}]', *more])}" for variable, (name, more) in dotted.items()),
        ]

    def beside(self) -> frozenset[str]:
        """The derivatives defined beside it in its file, which is parsed and not run."""
        names = set(bound(self._body))
        return frozenset(one for one in DERIVATIVES if f"{self.name}_{one}" in names)

    @property
    def is_class(self) -> bool:
        """Whether its file says that it is a class of layers."""
        return any(isinstance(one, ast.ClassDef) and one.name == self.name for one in self._body)

    @property
    def _body(self) -> list[ast.stmt]:
        try:
            return ast.parse(Path(self.file or _file_of_module(self.module)).read_bytes()).body
        except (OSError, SyntaxError, ValueError):
            return []


def _file_of_module(name: str) -> str:
    path = spec = None
    for depth in range(1, name.count(".") + 2):
        try:
            spec = importlib.machinery.PathFinder.find_spec(".".join(name.split(".")[:depth]), path)
        except (ImportError, ValueError):
            return ""
        if spec is None:
            return ""
        path = list(spec.submodule_search_locations or ())
    return str(spec.origin or "") if spec is not None else ""
