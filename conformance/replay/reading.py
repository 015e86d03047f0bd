"""
The failed cases of a report's JSON, read back.

A report may come from anywhere, and may be damaged: nothing in it is evaluated, imported or unpickled, every field is
held to its form, and every array to the shape and the numbers that it says it has.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs
import numpy as np

from ...reference.formats import FORMATS
from ...spec.errors import NormspecError
from ...spec.layout import Layout
from ...spec.operators import OPERATORS, Groups
from ...spec.parts import KINDS, Part
from ..cases.case import Case
from ..cases.description import Description
from ..cases.regimes import REGIMES
from ..checks.catalogue import checks_of
from ..report import SCHEMA
from ..verdicts import Verdict
from .writing import AS_ABOVE

T = TypeVar("T")

#: Parts within parts that are read, and axes of an array.
_DEPTH, _AXES = 4, 8

#: The largest number of a part: a dilation, a factor.
_NUMBER = 2.0**20


class DamagedReport(NormspecError):
    """The file is not the JSON of a report, or not one that a case can be built from."""


class _Damage(Exception):
    """What is wrong at a place of a report."""


@attrs.frozen
class Failed:
    """A case on which a requirement was found to be violated."""

    target: str
    binding: str
    requirement: str
    dtype: str
    case: Case


@attrs.frozen
class Kept:
    """What a report keeps of what failed."""

    cases: tuple[Failed, ...]
    #: How many violations it keeps no case of.
    without: int

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators of the cases, each once."""
        return tuple(dict.fromkeys(one.case.operator for one in self.cases))


def failed_cases(file: str) -> Kept:
    """
    The failed cases that a report keeps, and how many violations it keeps none of.

    Raises DamagedReport where the file cannot be read, is no report, or describes a case that cannot be.
    """
    try:
        with open(file, encoding="utf-8") as stream:
            document = json.load(stream, parse_constant=_no_constant)
    except OSError as error:
        raise DamagedReport(f"{file} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, too deep, a number of a thousand digits
        raise DamagedReport(f"{file} is not the JSON of a report: {_first_line(error)}") from error
    try:
        return _kept(document)
    except _Damage as damage:
        raise DamagedReport(f"{file}: {damage}; write the report anew with --json") from damage


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _kept(document: Any) -> Kept:
    found = _mapping(document, "the report")
    schema = found.get("schema")
    if schema != SCHEMA:
        raise _Damage(f"it has the schema {schema!r}, and this version of normspec reads {SCHEMA}")
    cases, without = [], 0
    for number, result in enumerate(_list(found.get("results"), "results")):
        place = f"results[{number}]"
        one = _mapping(result, place)
        if one.get("verdict") not in (Verdict.FAIL.value, Verdict.ADVICE.value):
            continue
        counterexample = one.get("counterexample")
        if counterexample is None or _mapping(counterexample, f"{place}.counterexample").get("case") is None:
            without += 1
            continue
        cases.append(_failed(one, place))
    return Kept(tuple(cases), without)


def _failed(result: Mapping[str, Any], place: str) -> Failed:
    operator = _among(result.get("op"), tuple(OPERATORS), f"{place}.op")
    known = tuple(check.requirement for check in checks_of(operator))
    return Failed(
        _text(result.get("target"), f"{place}.target"),
        _text(result.get("binding"), f"{place}.binding"),
        _among(result.get("requirement"), known, f"{place}.requirement"),
        _among(result.get("dtype"), tuple(FORMATS), f"{place}.dtype"),
        _case(operator, result["counterexample"], f"{place}.counterexample"),
    )


# A case ----------------------------------------------------------------------------------------------------------


def _case(operator: str, counterexample: Mapping[str, Any], place: str) -> Case:
    record = OPERATORS[operator]
    above = _mapping(counterexample.get("inputs"), f"{place}.inputs")
    place = f"{place}.case"
    kept = _mapping(counterexample["case"], place)
    parts = {
        _among(role, record.roles, f"{place}.parts"): _part(part, f"{place}.parts.{role}")
        for role, part in _mapping(kept.get("parts"), f"{place}.parts").items()
    }
    arrays: dict[str, np.ndarray | None] = {}
    for name, array in _mapping(kept.get("inputs"), f"{place}.inputs").items():
        at, given = f"{place}.inputs.{name}", array
        if isinstance(array, str) and array == AS_ABOVE:
            at, given = f"inputs.{name} of the call", above.get(name)
        arrays[name] = _array(given, at)
    _check_names(arrays, record.parameters, parts, place)
    g, settings = arrays.pop("g"), _settings(operator, kept.get("settings"), arrays["x"], f"{place}.settings")
    assert g is not None
    description = _description(operator, kept.get("description"), f"{place}.description")
    case = Case(operator, arrays, settings, g, description.requirements, description, parts)
    _check_shapes(case, place)
    return case


def _check_names(
    arrays: Mapping[str, np.ndarray | None], parameters: tuple[str, ...], parts: Mapping[str, Any], place: str
) -> None:
    leaves = [leaf for part in parts.values() for one in _several(part) for leaf in one.all_leaves()]
    needed = {"x", "g", *parameters, *leaves}
    if set(arrays) != needed:
        raise _Damage(f"{place}.inputs has {', '.join(sorted(arrays))}, and the call takes {', '.join(sorted(needed))}")
    for name in ("x", "g", *leaves):
        if arrays[name] is None:
            raise _Damage(f"{place}.inputs.{name} is null")


def _several(part: Part | tuple[Part, ...] | None) -> tuple[Part, ...]:
    return part if isinstance(part, tuple) else () if part is None else (part,)


def _check_shapes(case: Case, place: str) -> None:
    """Raise where the arrays cannot be those of a call: everything else is the target's to answer."""
    shape = case.x.shape
    if case.g.shape != shape:
        raise _Damage(f"{place}.inputs.g has shape {case.g.shape}, and x {shape}")
    if not shape:
        raise _Damage(f"{place}.inputs.x has no axis")
    parameter = Layout.of(case.operator, shape, case.settings).parameter_shape
    owned = set(case.record.parameters) - {"logits"}
    for name in owned:
        value = case.inputs[name]
        if value is not None and value.shape != parameter:
            raise _Damage(f"{place}.inputs.{name} has shape {value.shape} in place of {parameter}")


def _settings(operator: str, value: Any, x: np.ndarray | None, place: str) -> dict[str, Any]:
    record, found = OPERATORS[operator], _mapping(value, place)
    if set(found) != set(record.settings):
        raise _Damage(f"{place} has {', '.join(found) or 'nothing'}, and the call takes {', '.join(record.settings)}")
    assert x is not None
    settings: dict[str, Any] = {}
    for name in record.settings:
        given, at = found[name], f"{place}.{name}"
        if name in ("eps", "momentum"):
            settings[name] = _number(given, at)
        elif name == "training":
            settings[name] = _flag(given, at)
        elif name == "axes":
            settings[name] = tuple(_integer(one, at) for one in _list(given, at))
            if settings[name] != tuple(range(-len(settings[name]), 0)) or not 0 < len(settings[name]) <= x.ndim:
                raise _Damage(f"{at} is {given!r}, and has to name the last axes of x, as in [-2, -1]")
        else:
            settings[name] = _integer(given, at)
    if "channel_axis" in settings and not -x.ndim <= settings["channel_axis"] < x.ndim:
        raise _Damage(f"{place}.channel_axis is {settings['channel_axis']}, and x has {x.ndim} axes")
    if record.groups is Groups.SAMPLE_CHANNELS:
        if x.ndim < 2 or settings["channel_axis"] % x.ndim == 0:
            raise _Damage(f"{place}: the channels have to lie along an axis of x after the first")
        groups, channels = settings.get("groups", 1), x.shape[settings["channel_axis"]]
        if groups < 1 or channels % groups:
            raise _Damage(f"{place}.groups is {groups}, and x has {channels} channels")
    return settings


def _part(value: Any, place: str, depth: int = 0) -> Any:
    if value is None:
        return None
    if isinstance(value, list) and depth == 0:
        return tuple(_part(one, place, 1) for one in value)
    found = _mapping(value, place)
    if depth > _DEPTH:
        raise _Damage(f"{place} holds parts more than {_DEPTH} deep")
    number = _number(found.get("number"), f"{place}.number")
    if not abs(number) <= _NUMBER:
        raise _Damage(f"{place}.number is {number}")
    return Part(
        _among(found.get("kind"), tuple(KINDS), f"{place}.kind"),
        tuple(_text(leaf, f"{place}.leaves") for leaf in _list(found.get("leaves"), f"{place}.leaves")),
        number,
        tuple(_part(one, place, depth + 1) for one in _list(found.get("inner"), f"{place}.inner")),
    )


def _array(value: Any, place: str) -> np.ndarray | None:
    if value is None:
        return None
    found = _mapping(value, place)
    format = FORMATS[_among(found.get("dtype"), tuple(FORMATS), f"{place}.dtype")]
    shape = tuple(_integer(size, f"{place}.shape") for size in _list(found.get("shape"), f"{place}.shape"))
    numbers = _list(found.get("values"), f"{place}.values")
    if len(shape) > _AXES or any(size < 0 for size in shape) or math.prod(shape) != len(numbers):
        raise _Damage(f"{place} holds {len(numbers)} values, and has shape {shape}")
    wide = np.array([_number(one, f"{place}.values") for one in numbers], np.float64).reshape(shape)
    with np.errstate(all="ignore"):
        array = wide.astype(format.dtype)
    if not np.array_equal(array.astype(np.float64), wide, equal_nan=True):
        raise _Damage(f"{place} holds values that are no numbers of {found['dtype']}")
    return array


# The description -------------------------------------------------------------------------------------------------

#: The form of each field that is a name or a number; the others are lists.
_NAMES = ("gamma", "beta", "cotangent", "recipe", "logits")
_INTEGERS = ("n", "seed", "rank", "channel_axis", "count")
_PERHAPS_INTEGERS = ("repeat", "samples", "width")
_FLAGS = ("only", "mixed", "far", "training")


def _description(operator: str, value: Any, place: str) -> Description:
    """What a check reads of a case beside its values: what it is for, and from which seed further values are drawn."""
    found = _mapping(value, place)
    forms: dict[str, Callable[[Any, str], Any]] = {
        **dict.fromkeys(_NAMES, _text),
        **dict.fromkeys(_INTEGERS, _integer),
        **dict.fromkeys(_PERHAPS_INTEGERS, _perhaps(_integer)),
        **dict.fromkeys(_FLAGS, _flag),
        **dict.fromkeys(("eps", "momentum"), _number),
        **dict.fromkeys(("features", "leading"), _perhaps(_sizes)),
        "operator": lambda one, at: _among(one, (operator,), at),
        "groups": _groups,
        "requirements": lambda one, at: frozenset(_text(name, at) for name in _list(one, at)),
    }
    values: dict[str, Any] = {}
    for name, one in found.items():
        if name not in forms:
            raise _Damage(f"{place} has a field {name[:40]!r} that this version of normspec does not know")
        values[name] = forms[name](one, f"{place}.{name}")
    if not {"operator", "n", "groups"} <= set(values):
        raise _Damage(f"{place} lacks operator, n or groups")
    return Description(**values)


def _groups(value: Any, place: str) -> tuple[tuple[str, int], ...]:
    pairs = [_list(one, place) for one in _list(value, place)]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise _Damage(f"{place} is no list of pairs")
    return tuple((_among(name, tuple(REGIMES), place), _integer(index, place)) for name, index in pairs)


def _sizes(value: Any, place: str) -> tuple[int, ...]:
    return tuple(_integer(one, place) for one in _list(value, place))


# Values ----------------------------------------------------------------------------------------------------------


def _mapping(value: Any, place: str) -> Mapping[str, Any]:
    return _of(dict, value, place, "an object")


def _list(value: Any, place: str) -> list[Any]:
    return _of(list, value, place, "a list")


def _text(value: Any, place: str) -> str:
    return _of(str, value, place, "a text")


def _flag(value: Any, place: str) -> bool:
    return _of(bool, value, place, "true or false")


def _integer(value: Any, place: str) -> int:
    if isinstance(value, bool):
        raise _Damage(f"{place} is {value}, and has to be a whole number")
    return _of(int, value, place, "a whole number")


def _number(value: Any, place: str) -> float:
    """A float as `float.fromhex` reads it."""
    try:
        return float.fromhex(_text(value, place))
    except (ValueError, OverflowError) as error:
        raise _Damage(f"{place} is {_cut(value)}, and has to be a float in hexadecimal, as '0x1p-10'") from error


def _among(value: Any, known: tuple[str, ...], place: str) -> str:
    if not isinstance(value, str) or value not in known:
        raise _Damage(f"{place} is {_cut(value)}, which is none that this version of normspec knows")
    return value


def _perhaps(form: Callable[[Any, str], T]) -> Callable[[Any, str], T | None]:
    return lambda value, place: None if value is None else form(value, place)


def _of(kind: type[T], value: Any, place: str, words: str) -> T:
    if not isinstance(value, kind):
        raise _Damage(f"{place} is {_cut(value)}, and has to be {words}")
    return value


def _cut(value: Any) -> str:
    text = repr(value) if isinstance(value, (str, int, float, bool)) or value is None else f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:60]}..."
