"""Reads limits: ``60`` seconds, ``8GiB`` of memory, or ``none``; and ``2`` jobs."""

from __future__ import annotations

import math
import re
from typing import Any

from ...spec.errors import NormspecError

#: The word for no limit.
NONE = "none"

#: Units of sizes in lower case, and their bytes.
_UNITS = {"": 1, "b": 1}
_UNITS |= {f"{letter}ib": 1 << 10 * power for power, letter in enumerate("kmgt", start=1)}
_UNITS |= {f"{letter}b": 10 ** (3 * power) for power, letter in enumerate("kmgt", start=1)}

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")

#: No interpreter that has imported NumPy fits in less. So 8 for "8GiB" is a slip, and is reported as one.
LEAST_MEMORY = 16 << 20


class WrongLimit(NormspecError, ValueError):
    """The value is not a limit of that kind."""


def seconds_of(value: Any) -> float | None:
    """Seconds from a text or a number; None for no limit. Raises WrongLimit."""
    if _is_none(value):
        return None
    try:
        seconds = float(value) if _is_number(value) or isinstance(value, str) else math.nan
    except (ValueError, OverflowError):
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise WrongLimit(f"{value!r} is not a time limit: give seconds above 0, such as 60, or {NONE}")
    return seconds


def bytes_of(value: Any) -> int | None:
    """Bytes from a text or a number; None for no limit. Raises WrongLimit."""
    if _is_none(value):
        return None
    size = value if isinstance(value, int) and _is_number(value) else _size_in(value)
    if size is None:
        raise WrongLimit(f"{value!r} is not a size: give one such as 8GiB or 512MiB, a number of bytes, or {NONE}")
    if size < LEAST_MEMORY:
        raise WrongLimit(f"{value!r} is too little memory for any target: give 16MiB or more, such as 8GiB, or {NONE}")
    return size


def _size_in(value: Any) -> int | None:
    """The bytes that a text says; None if it says no size, or is no text."""
    match = _SIZE.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    if match is None or match[2] not in _UNITS:
        return None
    try:
        return round(float(match[1]) * _UNITS[match[2]]) if "." in match[1] else int(match[1]) * _UNITS[match[2]]
    except (OverflowError, ValueError):  # more digits than a float holds, or than Python reads
        return None


def jobs_of(value: Any) -> int:
    """The number of jobs, checked. Raises WrongLimit."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise WrongLimit(f"{value!r} is not a number of jobs: give a whole number from 1 on")
    return value


def seconds_in_words(seconds: float) -> str:
    """A time as a text that :func:`seconds_of` reads."""
    return f"{seconds:g}" if math.isfinite(seconds) else NONE


def size_in_words(size: int | None) -> str:
    """A size as a text that :func:`bytes_of` reads."""
    if size is None:
        return NONE
    for unit, power in (("GiB", 30), ("MiB", 20)):
        if size % (1 << power) == 0:
            return f"{size >> power}{unit}"
    return str(size)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_none(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() == NONE
