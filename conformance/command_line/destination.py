"""Files that a command writes, checked to be writable before a run begins, so that no run is wasted."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TextIO

import click

from ...spec.errors import NormspecError
from ...spec.whole_file import replace_file
from ..grouping import grouped
from .exit_status import EXIT_UNUSABLE

#: The name for standard output.
STDOUT = "-"


class UnwritableFile(NormspecError):
    """A file cannot be written."""


def text_stream(*files: str | None) -> TextIO:
    """Where a command prints its text: on standard error if one of its files goes to standard output."""
    return sys.stderr if STDOUT in files else sys.stdout


def ensure_writable(name: str, option: str = "--json", *, append: bool = False) -> None:
    """
    Raise `UnwritableFile` unless a file of this name can be written; no file is left behind.

    A file that is there already is replaced only if normspec wrote it. With ``append``, it will be added to.
    """
    if name == STDOUT:
        return
    if not name:
        raise UnwritableFile(f"{option} names no file; name one, such as report{_SUFFIXES.get(option, '')}")
    path, told = Path(name), f"{option} {name}"
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:  # the name is too long, or a folder on the way to it is closed to us
        raise UnwritableFile(f"{told} cannot be written: {error.strerror or error}; name another file") from error
    if path.is_dir():
        raise UnwritableFile(
            f"{told} is a folder; name a file in it, such as {path / 'report'}{_SUFFIXES.get(option, '')}"
        )
    if path.exists():
        if not os.access(path, os.W_OK):
            raise UnwritableFile(f"{told} is not writable; name another file")
        if not append and not _is_ours(path, option):
            raise UnwritableFile(f"{told} would be overwritten, and normspec did not write it; name another file")
        return
    if not path.parent.is_dir():
        raise UnwritableFile(f"the folder of {told} does not exist; create {path.parent} first")
    try:
        with tempfile.TemporaryFile(dir=path.parent):  # some folders, such as /proc, only say that they are writable
            pass
    except OSError:
        raise UnwritableFile(f"{told} is in a folder that is not writable; name another file") from None


#: Each file that normspec writes names it within this many bytes.
_HEAD = 4096


def _is_ours(path: Path, option: str) -> bool:
    """Whether nothing is lost if this file is replaced: it is empty, no regular file, or one that normspec wrote."""
    if not path.is_file():
        return True
    if path.suffix in (".py", ".toml"):  # targets and configuration, which have the name of normspec too
        return False
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:  # it can be written and not read
        return False
    if _is_markdown(path, option):  # of the user's own pages, many name normspec
        return not head or head.startswith(_MARK.encode())
    return not head or b"normspec" in head


#: The first line of each Markdown file that normspec writes; a reader does not see it.
_MARK = "<!-- normspec wrote this file and may replace it. -->\n\n"


def _is_markdown(path: Path, option: str) -> bool:
    return option in ("--markdown", "--table") and path.suffix != ".json"


#: The usual ending of the file that an option writes.
_SUFFIXES = {
    "--json": ".json",
    "--html": ".html",
    "--out": ".html",
    "--junit": ".xml",
    "--markdown": ".md",
    "--write-expected": ".toml",
    "--table": ".md",
}


def ensure_own_places(files: Iterable[tuple[str, str]]) -> None:
    """Raise a usage error if two of these options, each with the name of its file, write to the same place."""
    places = grouped((STDOUT if name == STDOUT else os.path.realpath(name), (option, name)) for option, name in files)
    for several in places.values():
        if len(several) > 1:
            options = " and ".join(option for option, _ in several)
            raise click.UsageError(f"{options} write to the same place, {several[0][1]}: give each its own")


def ensure_not_read(files: Iterable[tuple[str, str]], read: Sequence[str]) -> None:
    """Raise `UnwritableFile` if one of these options, each with the name of its file, would replace a file it reads."""
    places = [os.path.realpath(one) for one in read]
    for option, name in files:
        if name != STDOUT and os.path.realpath(name) in places:
            raise UnwritableFile(f"{option} {name} would replace a report that this command reads; name another file")


def write(name: str, text: str, option: str = "--json", *, append: bool = False) -> None:
    """
    Write the text to the file of this name, or to standard output. Raises `UnwritableFile`.

    The file is replaced in one step, so that nobody reads half a report. With ``append``, the text is added to it, or
    nothing.
    """
    if name == STDOUT:
        click.echo(text, nl=False)
        return
    if not append and _is_markdown(Path(name), option):
        text = _MARK + text
    data = text.encode("utf-8", "backslashreplace")  # a target's file may have a name that is not text
    try:
        (_append if append else replace_file)(name, data)
    except OSError as error:
        raise UnwritableFile(f"{option} {name} could not be written: {error.strerror or error}") from error


def _append(name: str, data: bytes) -> None:
    """Add the data to a file; if not all of it fits, none: half of an entry would make a configuration unreadable."""
    with Path(name).open("ab", buffering=0) as file:
        size = file.tell() if file.seekable() else None
        left = memoryview(data)
        try:
            while left:
                left = left[file.write(left) :]
        except OSError:
            if size is not None:
                file.truncate(size)
            raise


def status_after_writing(status: int, name: str | None, text: Callable[[], str], option: str = "--json") -> int:
    """
    The exit status of a command that has printed what it found, and writes it too if a file is named.

    What was printed stands if the file cannot be written: one line says so, and the status is not 0.
    """
    if name is None:
        return status
    try:
        write(name, text(), option)
    except UnwritableFile as error:
        click.echo(f"normspec: {error}", err=True)
        return status or EXIT_UNUSABLE
    return status
