"""Files of scripts: each is written whole or not at all, and never over a file with other content."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from ...spec.errors import NormspecError
from .spelling import CannotWrite

#: The longest word in the name of a file, in bytes.
_LONGEST = 60


class UnwritableFolder(NormspecError):
    """Scripts cannot be written to a folder."""


def ensure_folder(name: str) -> None:
    """Make the folder if there is none. Raises UnwritableFolder if nothing can be written to it."""
    path = Path(name)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableFolder(
            f"--reproduce {name} is not a folder and cannot be made one ({error.strerror or error}); name another"
        ) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise UnwritableFolder(f"--reproduce {name} is not writable; name another folder")


def file_name(words: Sequence[str]) -> str:
    """The words as the name of a Python file, whatever characters they contain."""
    return f"{'-'.join(filter(None, map(_plain, words))) or 'script'}.py"


def _plain(word: str) -> str:
    """The letters and digits of a word that the names of files may have, with hyphens between them."""
    coding = sys.getfilesystemencoding()
    known = word.encode(coding, "replace").decode(coding)
    return re.sub(r"\W+", "-", known).encode(coding)[:_LONGEST].decode(coding, "ignore").strip("-")


def free_name(name: str, taken: Collection[str]) -> str:
    """The name of a file, with -2, -3, ... if it is taken. Some file systems do not tell capitals apart."""
    names = (name, *(f"{name.removesuffix('.py')}-{number}.py" for number in range(2, len(taken) + 3)))
    there = {one.casefold() for one in taken}
    return next(one for one in names if one.casefold() not in there)


def write(folder: str, name: str, text: str) -> str:
    """
    Write a script and return its path. A file that has the same text already is left alone.

    Raises CannotWrite if the file has other content, or cannot be written.
    """
    path = Path(folder) / name
    data = text.encode("utf-8", "backslashreplace")
    try:
        handle, temporary = tempfile.mkstemp(prefix=".normspec-", dir=folder)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            os.chmod(temporary, 0o644)
            _move(temporary, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
    except FileExistsError:
        if not path.is_file() or path.read_bytes() != data:
            raise CannotWrite(f"{path} is there with other content; move it away, or name another folder") from None
    except OSError as error:
        raise CannotWrite(f"{path} could not be written: {error.strerror or error}") from error
    return str(path)


def _move(temporary: str, path: Path) -> None:
    """Rename the file in one step, unless the name is taken. Raises FileExistsError."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError(str(path)) from None
        os.replace(temporary, path)
