"""
The configuration: ``[tool.normspec]`` in a project's pyproject.toml. Flags of the command override it.

A relative path in it is relative to the file, not to the working directory.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ...adapters.dtypes import check_dtype
from ...adapters.frameworks import full_name
from ...adapters.in_file import names_a_file
from ...adapters.own_function import names_a_function
from ...adapters.remote.launching import command_of
from ...adapters.targets import EXEC_PREFIX, TARGETS, check_operators, check_target
from ...spec.conventions import validate
from ...spec.errors import NormspecError, choices
from ..expected.entry import Expected, entries_of, why_missing
from .choosing import checked_words
from .limits import bytes_of, jobs_of, seconds_of
from .mode import checked_mode
from .per_target import checked_settings
from .profiles import profile_of
from .words import names_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

#: The name of the file, and of the table in it.
NAME = "pyproject.toml"
TABLE = "[tool.normspec]"

#: A file beside it with the same keys and without a table. A key may stand in only one of the two files.
OWN = "normspec.toml"


class WrongConfiguration(NormspecError):
    """The configuration cannot be read, or has a wrong key or value."""


@attrs.frozen
class Configuration:
    """The configuration of a project."""

    #: Path of the file, relative to the working directory; empty if there is none.
    file: str = ""
    #: Values by key, each in the form that the API takes.
    values: Mapping[str, Any] = attrs.field(factory=dict)

    def wrong(self, key: str, message: object) -> WrongConfiguration:
        """The error for a wrong value of this key."""
        return WrongConfiguration(f"{self.file}: {key}: {message}")


def configuration(file: str | None = None) -> Configuration:
    """
    The configuration in the given file, or in the nearest folder upwards with a normspec.toml or a pyproject.toml that
    has the table.

    Raises WrongConfiguration, which names the file and the key.
    """
    if file is not None:
        path = _expanded(file)
        if path.name == OWN:
            return _checked(path, _read(path))
        table = _table(path)
        if table is None:
            raise WrongConfiguration(f"{file} has no table {TABLE}")
        return _checked(path, table)
    here = Path(os.path.abspath(os.curdir))
    for folder in (here, *here.parents):
        path, own = folder / NAME, folder / OWN
        table = _table(path, passing=True) if os.path.isfile(path) else None
        found = [] if table is None else [_checked(path, table)]
        found += [_checked(own, _read(own))] if os.path.isfile(own) else []
        if found:
            return _together(found)
    return Configuration()


def _together(found: Sequence[Configuration]) -> Configuration:
    """The configurations of a folder's two files merged. Raises WrongConfiguration if both have the same key."""
    first, *others = found
    for other in others:
        for key in other.values.keys() & first.values.keys():
            raise WrongConfiguration(f"{other.file}: {key} is also in {first.file}: keep it in only one of the files")
        first = Configuration(f"{first.file} and {other.file}", {**first.values, **other.values})
    return first


def expected_failures(given: Any) -> tuple[Expected, ...]:
    """
    The expected failures of a file of configuration, or of a list of tables.

    Raises WrongConfiguration or WrongExpected, which name the wrong entry and say what it lacks.
    """
    if not isinstance(given, (str, os.PathLike)):
        return entries_of(given)
    found = configuration(os.fspath(given)).values.get("expected")
    if found is None:
        raise WrongConfiguration(f"{os.fspath(given)} has no [[expected]]: write one for each expected failure")
    return found


def _table(path: Path, *, passing: bool = False) -> Any:
    """The table of a file; None if it has none. With `passing`, a broken file that never names normspec is ignored."""
    tool = _read(path, passing=passing).get("tool")
    return tool.get("normspec") if isinstance(tool, dict) else None


def _read(path: Path, *, passing: bool = False) -> dict[str, Any]:
    """
    The content of a file. Raises WrongConfiguration.

    With `passing`, a broken file that never names normspec counts as empty.
    """
    name = _from_here(path)
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin a file with a byte order mark
    except OSError as error:
        raise WrongConfiguration(f"{name} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise WrongConfiguration(f"{name} is not UTF-8 text, as TOML has to be") from error
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        if passing and "normspec" not in text:
            return {}
        raise WrongConfiguration(f"{name} is not TOML: {error}") from error


def _checked(path: Path, table: Any) -> Configuration:
    name = _from_here(path)
    if not isinstance(table, dict):
        raise WrongConfiguration(f"{name}: tool.normspec is not a table: write {TABLE} and keys below it")
    values = {}
    for key, value in table.items():
        if key not in KEYS:
            where = "" if path.name == OWN else f" in {TABLE}"
            raise WrongConfiguration(f"{name}: unknown key {key!r}{where}{choices(key, KEYS)}")
        try:
            values[key] = KEYS[key](value, path.parent)
        except NormspecError as error:
            raise WrongConfiguration(f"{name}: {key}: {error}") from error
    return Configuration(name, values)


def _expanded(path: str) -> Path:
    """A path, with `~` as a user's home. Raises WrongConfiguration if there is no such home."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise WrongConfiguration(f"{path} names no user's home: {error}") from None


def _from_here(path: Path) -> str:
    """A path relative to the working directory."""
    try:
        return os.path.relpath(path)
    except (ValueError, OSError):  # another drive, or no working directory
        return str(path)


# What each key may hold -----------------------------------------------------------------------------------


def _expected(what: str, value: object) -> WrongConfiguration:
    return WrongConfiguration(f"{what} is expected, and not {value!r}")


def _texts(value: Any, what: str) -> tuple[str, ...]:
    """The texts of a list that is not empty, each once."""
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise _expected(f"a list of {what}", value)
    return tuple(dict.fromkeys(value))


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _expected(what, value)
    return value


def _targets(value: Any, folder: Path) -> tuple[str, ...]:
    names = _texts(value, 'targets, such as ["torch", "mine.py:layer_norm"],')
    return tuple(_file(name, folder) if names_a_file(name) else _target(name, folder) for name in names)


def _file(name: str, folder: Path) -> str:
    """A target FILE.py, which stands for all functions in it, relative to the working directory."""
    return _from_here(folder / _expanded(name.rstrip(":")))


def _target(name: str, folder: Path) -> str:
    """The full name of a target. Raises UnknownTarget."""
    if name in TARGETS:
        return full_name(name)
    if name.startswith(EXEC_PREFIX):
        return _command(name, folder)
    check_target(name)
    place, _, function = name.rpartition(":")
    if not place.endswith(".py") or not names_a_function(name):
        return name
    return f"{_from_here(folder / _expanded(place))}:{function}"


def _command(name: str, folder: Path) -> str:
    """
    A target exec:COMMAND, whose program is relative to the working directory if it has a slash.

    In the folder itself it stays as it is written, which is what a user writes there too.
    """
    program, *arguments = command_of(name)
    if "/" not in program or os.path.isabs(program) or os.path.abspath(folder) == os.path.abspath(os.curdir):
        return name
    place = _from_here(folder / _expanded(program))
    return EXEC_PREFIX + shlex.join([place if "/" in place else f"./{place}", *arguments])  # a bare word is looked up


def _seed(value: Any, _: Path) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _expected("a whole number from 0 on", value)
    return value


def _selection(value: Any, _: Path) -> tuple[str, ...]:
    return checked_words(_texts(value, 'requirements or bundles, such as ["LN-F3", "deterministic"],'), "")


def _conventions(value: Any, _: Path) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _expected('a table, such as { momentum = "old" },', value)
    return validate(value)


def _tables(value: Any, folder: Path) -> dict[str, dict[str, Any]]:
    if not isinstance(value, dict):
        raise WrongConfiguration(
            f"""a table for a target is expected, such as {TABLE[:-1]}.target."mine.py:layer_norm"], """
            f"and not {value!r}; did you mean 'targets'?"
        )
    tables = {_target(name, folder): checked_settings(name, about) for name, about in value.items()}
    for name in tables:
        if why := why_missing(name):
            raise WrongConfiguration(f"the table of {name} is about nothing: {why}")
    return tables


def _interpreters(value: Any, folder: Path) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _expected('a table of targets, such as { mxnet = "venvs/mxnet" },', value)
    return {
        _target(name, folder): _interpreter(_text(path, f"the path of a Python interpreter for {name}"), folder)
        for name, path in value.items()
    }


def _interpreter(path: str, folder: Path) -> str:
    """The path of an interpreter or virtual environment. A bare word is a command, unless such a file exists."""
    beside = os.path.abspath(folder / _expanded(path))
    return beside if os.path.dirname(path) or os.path.exists(beside) else path


def _cache(value: Any, folder: Path) -> str:
    """A folder, relative to that of the file."""
    return str(folder / _expanded(_text(value, "the path of a folder")))


#: The keys, each with the function that reads its value.
KEYS: Mapping[str, Callable[[Any, Path], Any]] = {
    "targets": _targets,
    "ops": lambda value, _: check_operators(names_of(_texts(value, 'operators, such as ["layer_norm"],'))),
    "profile": lambda value, _: profile_of(_text(value, 'the name of a profile, such as "quick",')).name,
    "dtypes": lambda value, _: tuple(
        map(check_dtype, names_of(_texts(value, 'dtypes, such as ["float32", "bfloat16"],')))
    ),
    "device": lambda value, _: _text(value, 'the name of a device, such as "cpu",'),
    "seed": _seed,
    "mode": lambda value, _: checked_mode(_text(value, 'a mode of batch_norm, such as "inference",')),
    "only": _selection,
    "require": _selection,
    "binding": lambda value, _: _texts(value, 'bindings, such as ["torch.nn.functional.*"],'),
    "time-limit": lambda value, _: seconds_of(value),
    "memory-limit": lambda value, _: bytes_of(value),
    "jobs": lambda value, _: jobs_of(value),
    "cache-dir": _cache,
    "cluster": lambda value, _: _text(value, 'the address of a Dask scheduler, such as "tcp://127.0.0.1:8786",'),
    "conventions": _conventions,
    "target": _tables,
    "interpreters": _interpreters,
    "expected": lambda value, folder: entries_of(value, lambda name: _target(name, folder)),
}
