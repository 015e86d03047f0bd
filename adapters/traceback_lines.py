"""Where a target raised: the innermost line of an exception's traceback in the user's own file."""

from __future__ import annotations

import linecache
import os
import sysconfig
from pathlib import Path

from ..spec.errors import SourceLine

#: Folders whose lines a user cannot change: our own code that a target's exception passes through, installed packages,
#: and the standard library. A frame names its file as it was imported, perhaps through a symbolic link.
_OWN_FOLDERS = tuple(
    str(root / room) + os.sep
    for root in dict.fromkeys(Path(find(__file__)).parent.parent for find in (os.path.abspath, os.path.realpath))
    for room in ("adapters", "spec")
)
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_STANDARD = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})

#: How many characters of a line are kept.
_MOST = 200

#: The user's names of files that were copied to this machine, by the path that each has here.
_NAMES: dict[str, str] = {}


def name_file(file: str, name: str) -> None:
    """Let a file that was copied to this machine be told by the user's name for it."""
    _NAMES[os.path.abspath(file)] = name


def innermost(error: BaseException) -> SourceLine | None:
    """
    The innermost line of an exception's traceback in the user's own file; None if there is none.

    A file below the current folder is given relative to it.
    """
    found = next((one for one in reversed(_lines(error)) if _is_own(one[0])), None)
    if found is None:
        return None
    file, line = found
    return SourceLine(short(file), line, linecache.getline(file, line).strip()[:_MOST])


def files_within(error: BaseException) -> list[str]:
    """The files of the code that the innermost line in the user's own file called; all if there is no such line."""
    files = [file for file, _ in _lines(error)]
    own = [place for place, file in enumerate(files) if _is_own(file)]
    return files[own[-1] + 1 :] if own else files


def _lines(error: BaseException) -> list[tuple[str, int]]:
    """The file and line of each frame of an exception's traceback, the outermost first."""
    found, trace = [], error.__traceback__
    while trace is not None:
        found.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return found


def _is_own(file: str) -> bool:
    if file.startswith("<"):  # no file: code generated at run time
        return False
    whole = os.path.abspath(file)
    return not whole.startswith((*_OWN_FOLDERS, *_STANDARD)) and not any(part in whole for part in _INSTALLED)


def short(file: str) -> str:
    """The path of a file: relative if it is below the current folder, else absolute; of a copy, the user's name."""
    whole, here = os.path.abspath(file), os.getcwd() + os.sep
    return _NAMES.get(whole) or (whole[len(here) :] if whole.startswith(here) else whole)
