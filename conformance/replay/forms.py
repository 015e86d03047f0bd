"""The forms of values in a report's JSON: each value of a file is checked against its form before it is used."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import attrs
import numpy as np

from ...reference.formats import FORMATS
from ...spec.errors import NormspecError
from ...spec.parts import KINDS, Part
from ..results.report import SCHEMA

T = TypeVar("T")

#: Reads a value; its second argument is the value's place in the report, which a Damage names.
Form = Callable[[Any, str], T]

#: The greatest depth of nested parts, and the largest number of axes of an array.
_DEPTH, _AXES = 4, 8

#: The largest number in a part, such as a dilation or a factor.
_NUMBER = 2.0**20


class DamagedReport(NormspecError):
    """The file is not the JSON of a report, is one of a newer version, or is damaged."""


class Damage(Exception):
    """What is wrong at a place of a report."""


@contextmanager
def naming(file: str | os.PathLike[str]) -> Iterator[None]:
    """Turn Damage, raised while the file's JSON is used, into a DamagedReport that names the file."""
    try:
        yield
    except Damage as damage:
        raise DamagedReport(f"{os.fspath(file)}: {damage}; write the report again with --json") from damage


#: The largest report that is read, in bytes. One of all targets, operators and dtypes has a few megabytes; in memory
#: JSON takes some ten times its size.
LARGEST = 2**28


def document(file: str | os.PathLike[str]) -> Mapping[str, Any]:
    """
    The JSON object of a report's file.

    Raises DamagedReport if the file cannot be read, holds something else, or was written by another version.
    """
    name = os.fspath(file)
    try:
        seen = os.stat(name)
        if not stat.S_ISREG(seen.st_mode):  # a device or a pipe may never end
            raise DamagedReport(f"{name} is not a regular file: give a file that `normspec check --json` wrote")
        if seen.st_size > LARGEST:
            raise DamagedReport(f"{name} has {seen.st_size} bytes, and the largest report that is read {LARGEST}")
        with open(name, encoding="utf-8") as stream:
            found = json.load(stream, parse_constant=_no_constant)
    except OSError as error:
        raise DamagedReport(f"{name} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, too deep, a number of a thousand digits
        raise DamagedReport(
            f"{name} is not the JSON of a report ({_first_line(error)}): give a file that `normspec check --json` wrote"
        ) from error
    if not isinstance(found, dict) or "schema" not in found or "results" not in found:
        raise DamagedReport(f"{name} is JSON, but not a report: give a file that `normspec check --json` wrote")
    schema = found["schema"]
    if isinstance(schema, int) and schema > SCHEMA:
        raise DamagedReport(f"{name} has schema {schema}, and this version of normspec reads {SCHEMA}: update normspec")
    if schema != SCHEMA or isinstance(schema, bool):
        raise DamagedReport(
            f"{name} has schema {shortened(schema)}, but this version of normspec reads {SCHEMA}: write it again"
        )
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


# Values ----------------------------------------------------------------------------------------------------------


def of_kind(kind: type[T], value: Any, place: str, words: str) -> T:
    """The value, if it is of this type; ``words`` say what it must be."""
    if not isinstance(value, kind):
        raise Damage(f"{place} is {shortened(value)}, and has to be {words}")
    return value


def mapping(value: Any, place: str) -> Mapping[str, Any]:
    """A JSON object."""
    return of_kind(dict, value, place, "an object")


def items(value: Any, place: str) -> list[Any]:
    """A JSON list."""
    return of_kind(list, value, place, "a list")


def text(value: Any, place: str) -> str:
    """A text."""
    return of_kind(str, value, place, "a text")


def flag(value: Any, place: str) -> bool:
    """True or false."""
    return of_kind(bool, value, place, "true or false")


def whole(value: Any, place: str) -> int:
    """A whole number."""
    if isinstance(value, bool):
        raise Damage(f"{place} is {value}, and has to be a whole number")
    return of_kind(int, value, place, "a whole number")


def real(value: Any, place: str) -> float:
    """A number, or the text for one that JSON lacks."""
    if isinstance(value, str) and value in ("nan", "inf", "-inf"):
        return float(value)
    with suppress(OverflowError):  # a whole number of hundreds of digits
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    raise Damage(f"{place} is {shortened(value)}, and has to be a number")


def hexadecimal(value: Any, place: str) -> float:
    """A float in the form that `float.fromhex` reads."""
    try:
        return float.fromhex(text(value, place))
    except (ValueError, OverflowError) as error:
        raise Damage(f"{place} is {shortened(value)}, and has to be a float in hexadecimal, as '0x1p-10'") from error


def among(value: Any, known: tuple[str, ...], place: str) -> str:
    """One of the known texts."""
    if not isinstance(value, str) or value not in known:
        raise Damage(f"{place} is {shortened(value)}, which this version of normspec does not know")
    return value


def perhaps(form: Form[T]) -> Form[T | None]:
    """The form of a value that may be null."""
    return lambda value, place: None if value is None else form(value, place)


def each(form: Form[T]) -> Form[tuple[T, ...]]:
    """The form of a list whose values all have this form."""
    return lambda value, place: tuple(form(one, f"{place}[{at}]") for at, one in enumerate(items(value, place)))


def by_name(form: Form[T]) -> Form[dict[str, T]]:
    """The form of an object whose values all have this form."""
    return lambda value, place: {name: form(one, f"{place}.{name}") for name, one in mapping(value, place).items()}


def shortened(value: Any) -> str:
    """A value, shortened for an error message."""
    words = repr(value) if isinstance(value, (str, int, float, bool)) or value is None else f"a {type(value).__name__}"
    return words if len(words) <= 60 else f"{words[:60]}..."


# Objects ---------------------------------------------------------------------------------------------------------


def built(kind: type[T], value: Any, place: str, forms: Mapping[str, Form[Any]], **known: Any) -> T:
    """
    An object of one of our classes, made from a JSON object whose fields have these forms.

    A field without a default must be there. One with a default may be missing, since older reports lack it.
    """
    found = mapping(value, place)
    values = {name: form(found[name], f"{place}.{name}") for name, form in forms.items() if name in found}
    fields: Any = attrs.fields(kind)  # pyright: ignore[reportArgumentType]
    for field in fields:
        if field.default is attrs.NOTHING and field.name not in {**values, **known}:
            raise Damage(f"{place} has no {field.name}")
    return kind(**values, **known)


def object_of(kind: type[T], forms: Mapping[str, Form[Any]]) -> Form[T]:
    """The form of an object of one of our classes, whose fields have these forms."""
    return lambda value, place: built(kind, value, place, forms)


def part_of(value: Any, place: str, depth: int = 0) -> Any:
    """A part of a composed operator, several of them in a list, or null."""
    if value is None:
        return None
    if isinstance(value, list) and depth == 0:
        return tuple(part_of(one, place, 1) for one in value)
    found = mapping(value, place)
    if depth > _DEPTH:
        raise Damage(f"{place} holds parts more than {_DEPTH} deep")
    number = hexadecimal(found.get("number"), f"{place}.number")
    if not abs(number) <= _NUMBER:
        raise Damage(f"{place}.number is {number}")
    return Part(
        among(found.get("kind"), tuple(KINDS), f"{place}.kind"),
        tuple(text(leaf, f"{place}.leaves") for leaf in items(found.get("leaves"), f"{place}.leaves")),
        number,
        tuple(part_of(one, place, depth + 1) for one in items(found.get("inner"), f"{place}.inner")),
    )


def array_of(value: Any, place: str) -> np.ndarray | None:
    """An array, or null. Its values must be numbers of its dtype, and as many as its shape says."""
    if value is None:
        return None
    found = mapping(value, place)
    format = FORMATS[among(found.get("dtype"), tuple(FORMATS), f"{place}.dtype")]
    shape = tuple(whole(size, f"{place}.shape") for size in items(found.get("shape"), f"{place}.shape"))
    numbers = items(found.get("values"), f"{place}.values")
    if len(shape) > _AXES or any(size < 0 for size in shape) or math.prod(shape) != len(numbers):
        raise Damage(f"{place} holds {len(numbers)} values, and has shape {shape}")
    wide = np.array([hexadecimal(one, f"{place}.values") for one in numbers], np.float64).reshape(shape)
    with np.errstate(all="ignore"):
        array = wide.astype(format.dtype)
    if not np.array_equal(array.astype(np.float64), wide, equal_nan=True):
        raise Damage(f"{place} holds values that are not numbers of {found['dtype']}")
    return array
