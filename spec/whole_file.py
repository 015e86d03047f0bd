"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path


def replace_file(path: str | os.PathLike[str], data: bytes) -> None:
    """
    Write a file in one step: a reader, or whoever comes after a crash, finds the old file or the new one.

    A link stays, and what it points to is replaced. Raises OSError; then the old file is as it was. Two kinds of places
    are written directly, because there is no other way: what is not a plain file, such as /dev/stdout or a pipe, and a
    file that no other may take the place of, because its folder is not writable, or it is mounted, owned by somebody
    else, or has a second name.
    """
    place = Path(os.path.realpath(path))
    mode = _mode_of(place)
    if mode is not None:
        with contextlib.suppress(_CannotReplace), _beside(place, mode) as file:
            with open(file, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            try:
                os.replace(file, place)
            except OSError as error:  # it is mounted, or the folder lets nobody take the file away
                raise _CannotReplace from error
            return
    with open(path, "wb") as stream:
        stream.write(data)


class _CannotReplace(Exception):
    """No other file can take the place of this one."""


def _mode_of(place: Path) -> int | None:
    """The permissions that a new file at this place must have; -1 for the usual ones, None if it must stay."""
    try:
        there = place.stat()
    except FileNotFoundError:
        return -1
    plain = stat.S_ISREG(there.st_mode) and there.st_nlink == 1
    own = not hasattr(os, "geteuid") or there.st_uid == os.geteuid()
    writable = os.access(place, os.W_OK)  # else it would be replaced all the same: only its folder decides that
    return stat.S_IMODE(there.st_mode) if plain and own and writable else None


@contextlib.contextmanager
def _beside(place: Path, mode: int) -> Iterator[Path]:
    """A new, empty file in the same folder, which is gone at the end. Raises _CannotReplace if there can be none."""
    file = place.with_name(f".normspec-{secrets.token_hex(8)}")
    try:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except OSError as error:
        raise _CannotReplace from error
    try:
        if mode >= 0:
            os.chmod(file, mode)
        yield file
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file)
