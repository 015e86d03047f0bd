"""Installed packages as text for a key: the record of every distribution, and files edited since."""

from __future__ import annotations

import csv
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

#: Files apart from distributions that affect imports.
_PATH_FILES = (".pth", ".egg-link")
_CUSTOMISATIONS = {"sitecustomize.py", "usercustomize.py"}

#: Seconds by which a file may be newer than the record of its installation.
_MTIME_SLACK = 2.0


@attrs.frozen
class _Record:
    """The RECORD file of a distribution: a line for each file, with its size."""

    path: Path
    content: bytes

    def has(self, package: str) -> bool:
        """Whether the distribution installed a package or module of this name."""
        lines = b"\n" + self.content
        return any(f"\n{package}{rest}".encode() in lines for rest in ("/__init__.py,", ".py,", "/"))


@attrs.frozen
class Installed:
    """All packages installed for this interpreter, at the time when this was made."""

    _told: tuple[str, ...]
    _records: tuple[_Record, ...]

    @classmethod
    def now(cls) -> Installed:
        """The packages installed now."""
        told, records = [f"path {entry}" for entry in sys.path], list[_Record]()
        for folder in dict.fromkeys(sys.path):
            told += _folder_texts(Path(folder or "."), records)
        return cls(tuple(told), tuple(records))

    def for_key(self, packages: Iterable[str]) -> tuple[list[str], str]:
        """
        The texts for a key: everything installed, and the files of these packages that were edited after installation.

        Also returns why one of the packages cannot be followed, or "". A package has no record if it is used where it
        was built.
        """
        told = list(self._told)
        for package in sorted(set(packages)):
            record = next((one for one in self._records if one.has(package)), None)
            if record is None:
                return told, f"{package} is used where it was built"
            place = record.path.parent.parent / package
            told += _edited_files(record, place) if place.is_dir() else [digest_of(place.with_suffix(".py"))]
        return told, ""


def _folder_texts(folder: Path, records: list[_Record]) -> Iterator[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:  # a zip file, or nothing
        return
    for name in names:
        if name.endswith((".dist-info", ".egg-info")):
            record = folder / name / "RECORD"
            try:
                content = record.read_bytes()
            except OSError:
                content = b""
            if content:
                records.append(_Record(record, content))
            yield f"{name} {_digest(content)}"
        elif name.endswith(_PATH_FILES) or name in _CUSTOMISATIONS:
            yield f"{name} {digest_of(folder / name)}"


def _edited_files(record: _Record, folder: Path) -> Iterator[str]:
    """The files of a package that changed after installation, with digests, and those that are gone."""
    home, since = folder.parent, record.path.stat().st_mtime + _MTIME_SLACK
    recorded = {row[0]: row[2] for row in csv.reader(record.content.decode("utf-8", "replace").splitlines()) if row[2:]}
    there: set[str] = set()
    for path, stat in _files(str(folder)):
        name = path[len(str(home)) + 1 :].replace(os.sep, "/")
        there.add(name)
        if recorded.get(name) != str(stat.st_size) or stat.st_mtime > since:
            yield f"{name} {digest_of(Path(path))}"
    of_it = f"{folder.name}/"
    yield from (
        f"{name} is gone"
        for name in sorted(recorded.keys() - there)
        if name.startswith(of_it) and _is_not_compiled(name)
    )


def _files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """The files below a folder in the order of their names, without files that Python compiled."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if entry.name != "__pycache__":
                yield from _files(entry.path)
        elif _is_not_compiled(entry.name):
            try:
                stat = entry.stat()
            except OSError:  # a link to nowhere, as some editors make beside an open file, or it is gone by now
                continue
            yield entry.path, stat


def _is_not_compiled(name: str) -> bool:
    return not name.endswith(".pyc")


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def digest_of(path: Path) -> str:
    """The digest of a file, or "unreadable"."""
    try:
        return _digest(path.read_bytes())
    except OSError:
        return "unreadable"
