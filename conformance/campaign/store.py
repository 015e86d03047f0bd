"""
The folder of a campaign: its request, and a line for each unit that is done.

Each line is appended in one piece and is on the disk before the next unit begins. A line that was cut off, for example
by `kill -9`, has no newline. It is removed, and its unit is done again.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ...spec.errors import NormspecError
from ...spec.whole_file import replace_file
from .campaign import SCHEMA, Key

try:
    import fcntl
except ImportError:  # not a POSIX system: two commands in one folder are not prevented
    fcntl = None

#: Fields of a campaign's identity with a plural name, for messages.
_PLURAL = ("targets", "dtypes", "conventions", "pythons")

_REQUEST, _UNITS, _LOCK = "request.json", "units.jsonl", "lock"


class WrongFolder(NormspecError):
    """The folder holds something else, or cannot be used."""


@attrs.define
class Store:
    """The folder of a campaign."""

    folder: Path
    #: The request of the campaign: identity, kinds of units, and the seeds of the last command.
    asked: dict[str, Any]
    #: The units that are done, and the number of lines that were cut off or damaged, whose units are done again. Both
    #: are known once the records have been read.
    done: set[Key] = attrs.field(factory=set)
    damaged: int = 0
    _cut_off: int = 0

    @classmethod
    def read(cls, folder: Path) -> Store:
        """Open the folder of an existing campaign. Raises WrongFolder if it holds none."""
        try:
            asked = json.loads((folder / _REQUEST).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise WrongFolder(f"{folder} holds no campaign: there is no {_REQUEST} in it") from None
        except (OSError, ValueError) as error:
            why = f"{folder / _REQUEST} cannot be read ({error})"
            raise WrongFolder(f"{why}: restore that file, or name another folder") from None
        identity = asked.get("identity") if isinstance(asked, dict) else None
        if not isinstance(identity, dict) or identity.get("schema") != SCHEMA:
            raise WrongFolder(f"{folder} holds a campaign of another version of normspec: read it with that one")
        return cls(folder, asked)

    @classmethod
    @contextlib.contextmanager
    def begun(cls, folder: Path, asked: dict[str, Any]) -> Iterator[Store]:
        """
        Open the folder of a campaign (Campaign.asked_for), or create it, and lock it against other commands.

        Raises WrongFolder if it holds another campaign, or anything else.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = (folder / _LOCK).open("ab")
        except OSError as error:
            raise _unusable(folder, error) from None
        with lock:
            if fcntl is not None:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    raise WrongFolder(f"another command is at work in {folder}: wait for it, or end it") from None
            yield cls._opened(folder, asked)

    @classmethod
    def _opened(cls, folder: Path, asked: dict[str, Any]) -> Store:
        if (folder / _REQUEST).exists():
            found = _differences(cls.read(folder).asked["identity"], asked["identity"])
            if found:
                raise WrongFolder(f"{folder} holds another campaign: {found}; name another --out")
        elif any(one.name != _LOCK and one.name[0] != "." for one in folder.iterdir()):
            raise WrongFolder(f"{folder} is not empty, and does not hold a campaign: name another --out")
        store = cls(folder, asked)
        try:
            replace(folder / _REQUEST, json.dumps(asked, indent=1) + "\n")
            store._cut()
        except OSError as error:
            raise _unusable(folder, error) from error
        return store

    def records(self) -> Iterator[dict[str, Any]]:
        """The records of all units that are done."""
        self.damaged, self.done = self._cut_off, set()
        try:
            lines = (self.folder / _UNITS).open("rb")
        except FileNotFoundError:
            return
        with lines:
            for line in lines:
                try:
                    record = json.loads(line) if line.endswith(b"\n") else None
                    key = key_in(record) if record is not None else None
                except (ValueError, TypeError, KeyError):
                    record = key = None
                if record is None or key is None:
                    self.damaged += 1
                elif key not in self.done:
                    self.done.add(key)
                    yield record

    def append(self, records: Sequence[Mapping[str, Any]]) -> None:
        """
        Write the records of a unit, one for each target; they are on the disk when this returns.

        Raises WrongFolder if the folder takes no more.
        """
        lines = (json.dumps(record, allow_nan=False, separators=(",", ":")).encode() + b"\n" for record in records)
        try:
            with (self.folder / _UNITS).open("ab") as units:
                units.write(b"".join(lines))
                units.flush()
                os.fsync(units.fileno())
        except OSError as error:
            raise WrongFolder(
                f"{self.folder} takes no further units: {error.strerror or error}; make room and give it again"
            ) from error
        self.done.update(map(key_in, records))

    def _cut(self) -> None:
        """Remove a last line without a newline, so that the next line does not continue it."""
        path = self.folder / _UNITS
        if not path.exists():
            return
        with path.open("r+b") as units:
            whole = 0
            for line in units:
                if line.endswith(b"\n"):
                    whole += len(line)
                else:
                    self._cut_off = 1
            units.truncate(whole)


def _unusable(folder: Path, error: OSError) -> WrongFolder:
    return WrongFolder(f"--out {folder} cannot be used: {error.strerror or error}; name another folder")


def key_in(record: Mapping[str, Any]) -> Key:
    """The unit that a record is about."""
    return Key(**record["unit"])


def replace(path: Path, text: str) -> None:
    """Replace a file in one step. A target's file may have any name, so that the text may not be UTF-8."""
    replace_file(path, text.encode("utf-8", "backslashreplace"))


def _differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """The differences in words: `profile is quick there and standard here`."""
    names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    return ", ".join(_difference(name, _words(there.get(name)), _words(here.get(name))) for name in names)


def _difference(name: str, there: str, here: str) -> str:
    if name.startswith("content"):
        return f"the {name} differs"
    if name.startswith("files"):
        return f"the {name} differ"
    return f"{name} {'are' if name in _PLURAL else 'is'} {there} there and {here} here"


def _words(value: Any) -> str:
    if value is None or value in ([], {}):
        return "not given"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
