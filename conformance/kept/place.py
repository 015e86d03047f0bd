"""Where truths and results are kept: the folder named, that of NORMSPEC_CACHE, or the user's cache folder."""

from __future__ import annotations

import contextlib
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...spec.errors import NormspecError

if TYPE_CHECKING:
    from .store import Store

#: The variable that names the folder where no option does.
VARIABLE = "NORMSPEC_CACHE"

#: The variable that says ``none`` where truths are kept and results are not, as whoever changes normspec wants it.
RESULTS = "NORMSPEC_RESULTS"

#: What stands for no folder, in the variables and in requests.
NOWHERE = "none"


class UnusableCache(NormspecError):
    """The folder that was named for the cache cannot be used."""


def checked_cache(cache: str | os.PathLike[str] | bool | None) -> str:
    """
    Where truths are kept, as a request has it: a folder, ``none``, or "" for the usual place.

    Raises UnusableCache where a folder is named, here or in NORMSPEC_CACHE, and nothing can be written into it.
    """
    if isinstance(cache, bool):
        return "" if cache else NOWHERE
    if cache is not None and not isinstance(cache, (str, os.PathLike)):
        raise UnusableCache(f"cache is {cache!r}: give the path of a folder, or False for none")
    named = os.fspath(cache) if cache is not None else ""
    if cache is not None and not named.strip():
        raise UnusableCache(f"{named!r} names no folder for the cache")
    for where, whose in ((named, "the cache folder"), ("" if named else os.environ.get(VARIABLE, ""), VARIABLE)):
        if where and where != NOWHERE:
            try:
                _prepare(Path(where).expanduser())
            except OSError as error:
                why = f"{whose} {where} cannot be used: {error.strerror or error}"
                raise UnusableCache(f"{why}; name another, or go without (--no-cache)") from error
    return os.path.abspath(os.path.expanduser(named)) if named and named != NOWHERE else named


def store_at(cache: str) -> Store | None:
    """The store of truths of a request's cache; None where there is none, or the usual place cannot be used."""
    return _at(cache, "truths")


def results_at(cache: str) -> Store | None:
    """The store of results, likewise; None too where NORMSPEC_RESULTS says that none are kept."""
    return None if os.environ.get(RESULTS) == NOWHERE else _at(cache, "results")


def _at(cache: str, what: str) -> Store | None:
    where = cache or os.environ.get(VARIABLE, "")
    if where == NOWHERE:
        return None
    # No such place, a user without a home, or a Python that was built without SQLite.
    with contextlib.suppress(OSError, RuntimeError, ImportError):
        return _store(Path(where).expanduser() if where else usual(), what, os.getpid())
    return None


def usual() -> Path:
    """The user's cache folder. Raises RuntimeError where there is no home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "normspec"


@cache
def _store(folder: Path, what: str, _process: int) -> Store:
    """One store a folder and process: a fork must not use its parent's."""
    from .store import LIMIT, Store

    _prepare(folder)
    return Store(folder) if what == "truths" else Store(folder, LIMIT // 4, what=what, largest=LIMIT // 16)


def _prepare(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(13, "Permission denied")
