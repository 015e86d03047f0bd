"""Import a user's file or module, and report anything that goes wrong in one line."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from ..spec.errors import FrameworkMissing, NotImportable, one_line
from ..spec.extras import how_to_add
from .frameworks import KNOWN, full_name, how_to_install
from .traceback_lines import innermost

#: Numbers the loaded files, so that two files of the same name become two modules.
_COUNT = itertools.count(1)

#: The files that add operators, each loaded once in a process.
_OPERATORS: dict[Path, ModuleType] = {}

#: The directories of loaded files that were added to the import path.
_ADDED: set[str] = set()


def load_file(path: str, *, named: str = "") -> ModuleType:
    """
    Execute a Python file as a new module, with its directory on the import path.

    ``named`` is the file's name in messages, if not its path. Raises NotImportable, or FrameworkMissing if the file
    imports a framework that is not installed.
    """
    file, path = existing_file(path, named=named), named or path
    if file in _OPERATORS:
        return _OPERATORS[file]
    name = f"normspec_target_{next(_COUNT)}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise NotImportable(f"{path} is not a Python file: its name should end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with _explained(path), _siblings_of(file):
            # Compile the source each time: cached bytecode may be stale if the file was edited within the same second.
            source = spec.loader.get_data(str(file))  # type: ignore[attr-defined]
            exec(compile(source, str(file), "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def existing_file(path: str, *, named: str = "") -> Path:
    """The absolute path of a file. Raises NotImportable if there is none; the message calls it ``named``."""
    file = Path(os.path.expanduser(path))  # Path.expanduser raises where there is no such user
    try:
        there = file.exists()
    except OSError as error:  # the name is too long, or a folder on the way to it is closed to us
        raise NotImportable(f"{named or path} cannot be read: {error.strerror or error}") from error
    if not there:
        raise NotImportable(f"{named or path} does not exist: give the path of a Python file")
    if not file.is_file():
        raise NotImportable(f"{named or path} is not a file: give the path of a Python file")
    return file.resolve()


def load_operators(files: Iterable[str]) -> None:
    """Load the files that add operators from outside normspec. Raises the errors of `load_file`."""
    for file in files:
        _OPERATORS[Path(file).resolve()] = load_file(file)


def load_module(name: str) -> ModuleType:
    """
    Import a module by its dotted name, with the working directory on the import path, as with ``python -m``.

    Raises NotImportable, or FrameworkMissing if it imports a framework that is not installed.
    """
    if not all(part.isidentifier() for part in name.split(".")):
        raise NotImportable(f"{name!r} is neither a file nor a module's dotted name: write FILE.py:NAME")
    with _explained(name, module=name), _import_path(os.getcwd()):
        return importlib.import_module(name)


def _how_to_install(package: str) -> str:
    """The command that installs a framework, or a package of layers with an extra of its own; empty for the rest."""
    if package == "transformers":
        return how_to_add(package)
    return how_to_install(package) if full_name(package) in KNOWN and package != "numpy" else ""


@contextmanager
def _explained(where: str, module: str | None = None) -> Iterator[None]:
    """Turn any error of an import into one line that says where it happened."""
    try:
        yield
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno else ""
        raise NotImportable(f"{where}{line}: SyntaxError: {error.msg}") from error
    except ModuleNotFoundError as error:
        root = (error.name or "").partition(".")[0]
        if error.name == root and (command := _how_to_install(root)):
            who = "" if module is not None and module.partition(".")[0] == root else f"{where} imports "
            raise FrameworkMissing(f"{who}{root}{', which' if who else ''} is not installed: {command}") from error
        if module is not None and os.path.isfile(module):
            raise NotImportable(f"{module} is a file whose name does not end in .py: rename it") from error
        if module is not None and error.name and (module == error.name or module.startswith(error.name + ".")):
            raise NotImportable(f"no module named {error.name!r}: install it, or run where its directory is") from error
        raise NotImportable(f"{where} does not import: {one_line(error)}") from error
    except ImportError as error:
        hint = ""
        if "no known parent package" in str(error):
            hint = "; name it package.module:NAME, from the directory that holds the package"
        raise NotImportable(f"{where} does not import: {one_line(error)}{hint}") from error
    except SystemExit as error:
        raise NotImportable(
            f"{where} exits when it is imported ({one_line(error)}): guard that with if __name__ == '__main__'"
        ) from error
    except KeyboardInterrupt as error:
        raise NotImportable(f"{where} was interrupted while it was imported") from error
    except OSError as error:
        raise NotImportable(f"{where} does not import: {one_line(error)}") from error
    except MemoryError as error:
        raise NotImportable(
            f"{where} ran out of memory while it was imported: --memory-limit is how much it may have"
        ) from error
    except BaseException as error:
        place = innermost(error)
        at = f", at {place.file}:{place.line}" if place is not None else ""
        raise NotImportable(f"{where} raises when it is imported: {one_line(error)}{at}") from error


@contextmanager
def _siblings_of(file: Path) -> Iterator[None]:
    """
    Put the file's directory first on the import path while the file is imported, and last afterwards.

    First, as for a script. Last afterwards, for imports inside functions; there it shadows nothing. Modules imported
    from the directory are dropped from sys.modules, because another file may have a sibling of the same name. They are
    kept if the directory was on the import path anyway, because others may use them.
    """
    directory = str(file.parent)
    shared = directory not in _ADDED and directory in {os.path.abspath(entry) for entry in sys.path}
    before = set(sys.modules)
    try:
        with _import_path(directory):
            yield
    finally:
        if not shared:
            _forget(set(sys.modules) - before, file.parent)
    if not shared and directory not in _ADDED:
        _ADDED.add(directory)
        sys.path.append(directory)


def _forget(names: set[str], directory: Path) -> None:
    """Drop the modules that are files or packages of the directory, including submodules."""
    for root in {name.partition(".")[0] for name in names}:
        origin = Path(getattr(sys.modules.get(root), "__file__", None) or "")
        home = origin.parent.parent if origin.name == "__init__.py" else origin.parent
        if home == directory:
            for name in names:
                if name == root or name.startswith(root + "."):
                    sys.modules.pop(name, None)


@contextmanager
def _import_path(directory: str) -> Iterator[None]:
    """Put the directory first on the import path, and remove it afterwards unless the import already did."""
    sys.path.insert(0, directory)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        if directory in sys.path:
            sys.path.remove(directory)
