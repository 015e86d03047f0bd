"""The folder where truths and results are kept: a given one, that of NORMSPEC_CACHE, or the user's cache folder."""

from __future__ import annotations

import contextlib
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...spec.errors import NormspecError

if TYPE_CHECKING:
    from .store import Store

#: The variable that names the folder if no option does.
CACHE_VARIABLE = "NORMSPEC_CACHE"

#: If this variable is ``none``, truths are kept but results are not. Set it when you change normspec itself.
RESULTS_VARIABLE = "NORMSPEC_RESULTS"

#: The word for no folder, in the variables and in requests.
NO_CACHE = "none"


class UnusableCache(NormspecError):
    """The given cache folder cannot be used."""


def checked_cache(cache: str | os.PathLike[str] | bool | None) -> str:
    """
    The value of Request.cache: a folder, ``none``, or "" for the usual place.

    Raises UnusableCache if a folder is named, here or in NORMSPEC_CACHE, and nothing can be written into it.
    """
    if isinstance(cache, bool):
        return "" if cache else NO_CACHE
    if cache is not None and not isinstance(cache, (str, os.PathLike)):
        raise UnusableCache(f"cache is {cache!r}: give the path of a folder, or False for none")
    named = os.fspath(cache) if cache is not None else ""
    if cache is not None and not named.strip():
        raise UnusableCache(f"{named!r} names no folder for the cache")
    for where, whose in (
        (named, "the cache folder"),
        ("" if named else os.environ.get(CACHE_VARIABLE, ""), CACHE_VARIABLE),
    ):
        if where and where != NO_CACHE:
            try:
                _prepare(Path(where).expanduser())
            except (OSError, RuntimeError) as error:  # the latter: ~USER, and there is no such user
                why = f"{whose} {where} cannot be used: {getattr(error, 'strerror', None) or error}"
                raise UnusableCache(f"{why}; name another, or go without (--no-cache)") from error
    return os.path.abspath(os.path.expanduser(named)) if named and named != NO_CACHE else named


def truths_store(cache: str) -> Store | None:
    """The store of truths of a request's cache; None if there is none, or the usual place cannot be used."""
    return _store_in(cache, "truths")


def results_store(cache: str) -> Store | None:
    """The store of results of a request's cache; also None if NORMSPEC_RESULTS says that no results are kept."""
    return None if os.environ.get(RESULTS_VARIABLE) == NO_CACHE else _store_in(cache, "results")


def _store_in(cache: str, what: str) -> Store | None:
    where = cache or os.environ.get(CACHE_VARIABLE, "")
    if where == NO_CACHE:
        return None
    # The place may not exist, the user may have no home, or Python may be built without SQLite.
    with contextlib.suppress(OSError, RuntimeError, ImportError):
        return _store(Path(where).expanduser() if where else default_folder(), what, os.getpid())
    return None


def default_folder() -> Path:
    """The user's cache folder. Raises RuntimeError if there is no home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "normspec"


@cache
def _store(folder: Path, what: str, _process: int) -> Store:
    """One store for each folder and process, because a fork must not use its parent's."""
    from .store import LIMIT, Store

    _prepare(folder)
    return Store(folder) if what == "truths" else Store(folder, LIMIT // 4, what=what, largest=LIMIT // 16)


def _prepare(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(13, "Permission denied")
