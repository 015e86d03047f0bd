"""An expected failure, from `[[expected]]` of normspec.toml or `check(expected=...)`."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import attrs

from ...adapters.dtypes import check_dtype
from ...adapters.frameworks import full_name
from ...adapters.own_function import file_of
from ...adapters.targets import TARGETS, check_operators, check_target
from ...spec.errors import NormspecError, choices
from ..judging.verdicts import Result
from ..requests.choosing import matches, operators_of, selected


class WrongExpected(NormspecError, ValueError):
    """An entry of expected failures cannot be used."""


@attrs.frozen
class Expected:
    """A requirement that a target is expected to violate, and why."""

    #: An id, or a pattern of ids such as "LN-G*": each requirement that it selects is expected to fail.
    requirement: str
    reason: str
    #: Limits; an empty one does not limit. A binding may be a pattern.
    target: str = ""
    operator: str = ""
    binding: str = ""
    dtypes: tuple[str, ...] = ()
    #: Where to read more about it.
    link: str = ""
    #: The last day on which it is expected ("2027-03-31"), or the framework's version from which on it no longer is.
    until: str = ""

    @property
    def requirements(self) -> tuple[str, ...]:
        """The ids that it is about."""
        return selected((self.requirement,), "")

    def label(self) -> str:
        """The entry in a few words: `LN-F3 of mine.py:f in float16`."""
        words = f"{self.requirement} of {self.target or self.operator or 'every target'}"
        return f"{words} in {', '.join(self.dtypes)}" if self.dtypes else words

    def about(self, target: str) -> bool:
        """Whether it is about a target. Paths that lead to the same file are equal."""
        return self.target in ("", target) or (bool(file_of(target)) and _file(self.target) == _file(target))

    def covers(self, result: Result) -> bool:
        """Whether it is about a result."""
        return (
            self.about(result.target)
            and self.operator in ("", result.op)
            and (not self.binding or matches(result.binding, (self.binding,)))
            and (not self.dtypes or result.dtype in self.dtypes)
            and result.requirement in self.requirements
        )

    def has_ended(self, version: str) -> bool:
        """Whether the framework has reached the version until which it is expected."""
        return bool(self.until) and not _DATE.fullmatch(self.until) and _numbers(version) >= _numbers(self.until)


@cache
def _file(target: str) -> tuple[str, str]:
    """The file of a target, and the target's name in it."""
    return os.path.realpath(os.path.expanduser(file_of(target))), target.rpartition(":")[2]


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_VERSION = re.compile(r"\d+(\.\d+)*")

#: A day in another form than TOML's, which would be read as a version: 2027-3-31, 31/3/2027, 31.3.2027.
_DAY = re.compile(r"\d+([-/])\d+\1\d+|\d\d?\.\d\d?\.\d{4}")


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers at the start of a version: for 2.14.0rc1+cpu, 2, 14 and 0."""
    found = _VERSION.match(version)
    return tuple(map(int, found[0].split("."))) if found else ()


def today() -> datetime.date:
    """The date against which entries are checked."""
    return datetime.date.today()


def entries_of(value: Any, named: Callable[[str], str] | None = None) -> tuple[Expected, ...]:
    """
    The expected failures from a list of tables.

    ``named`` turns a target's name into the name under which it is checked. Raises WrongExpected, which says which
    entry is wrong, and what it lacks.
    """
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise WrongExpected(f"a list of tables is expected, each with requirement and reason, and not {value!r}")
    return tuple(_entry(one, place, named or _target) for place, one in enumerate(value, 1))


def _target(name: str) -> str:
    """A target's name, in full for a framework, which need not be installed here. Raises UnknownTarget."""
    check_target(name, elsewhere=True)
    return full_name(name) if name in TARGETS else name


def _entry(value: Any, place: int, named: Callable[[str], str]) -> Expected:
    if isinstance(value, Expected):
        value = {name: one for name, one in attrs.asdict(value).items() if one}
    if not isinstance(value, Mapping):
        raise WrongExpected(f"entry {place} is {value!r}: write a table with requirement and reason")
    about = f"entry {place} ({value.get('requirement') or 'no requirement'} of {value.get('target') or 'every target'})"
    for key in value:
        if key not in _READ:
            raise WrongExpected(f"{about} has an unknown key {key!r}{choices(str(key), _READ)}")
    if "requirement" not in value:
        raise WrongExpected(f'{about} lacks requirement: name one, such as requirement = "LN-F3"')
    reason = value.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise WrongExpected(f"{about} has no reason: say in `reason` why it is expected to fail")
    try:
        read: dict[str, Any] = {
            key: named(_text(one)) if key == "target" else _READ[key](one) for key, one in value.items()
        }
    except NormspecError as error:
        raise WrongExpected(f"{about}: {error}") from error
    entry = Expected(**read)
    if why := why_missing(entry.target):
        raise WrongExpected(f"{about} matches nothing: {why}")
    operators = operators_of(entry.requirements)
    if entry.operator and entry.operator not in operators:
        raise WrongExpected(f"{about} matches nothing: it is about {', '.join(operators)}, and not {entry.operator}")
    if _DATE.fullmatch(entry.until) and datetime.date.fromisoformat(entry.until) < today():
        raise WrongExpected(
            f"{about} was expected until {entry.until}, which is past: fix the failure, or give a later date"
        )
    return entry


def why_missing(target: str) -> str:
    """Why there can be no such target: its file cannot be read, or never names it; empty if there may be one."""
    file = file_of(target)
    if not file:
        return ""
    path, name = _file(target)
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            text = stream.read()
    except OSError as error:
        return f"{file} cannot be read: {error.strerror or error}"
    last = name.rpartition(".")[2]
    return "" if re.search(rf"\b{re.escape(last)}\b", text) else f"{file} has no {last}"


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise WrongExpected(f"a text is expected, and not {value!r}")
    return value


def _requirement(value: Any) -> str:
    selected((_text(value),), "")
    return value.strip()


def _operator(value: Any) -> str:
    return check_operators(_text(value))[0]


def _dtypes(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, (list, tuple)) or not value:
        raise WrongExpected(f'dtypes is {value!r}: write a list, such as ["float16"]')
    return tuple(dict.fromkeys(map(check_dtype, value)))


def _until(value: Any) -> str:
    """A date, for which TOML has a type, or a version."""
    if isinstance(value, datetime.datetime):
        value = value.date()
    if isinstance(value, datetime.date):
        return value.isoformat()
    words = _text(value).strip()
    try:
        if _DATE.fullmatch(words):
            return datetime.date.fromisoformat(words).isoformat()
    except ValueError as error:
        raise WrongExpected(f"until is {words!r}, which is not a date: {error}") from error
    if not _VERSION.match(words) or _DAY.fullmatch(words):
        raise WrongExpected(f"until is {words!r}: give a date such as 2027-03-31, or the framework's version")
    return words


#: The keys, and the reader for the value of each.
_READ: Mapping[str, Callable[[Any], Any]] = {
    "requirement": _requirement,
    "target": _text,
    "operator": _operator,
    "binding": _text,
    "dtypes": _dtypes,
    "reason": lambda value: value.strip(),
    "link": _text,
    "until": _until,
}
