"""A counterexample of the JSON as lines for a reader: the call, and what is wrong with its result."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..reporting.numbers import element_name

#: How many values of an array are shown; the JSON has all of them.
_MOST = 32


def smallest_case(found: Mapping[str, Any]) -> list[list[str]]:
    """Names and values, in reading order."""
    return [[name, words] for name, words in _lines(found) if words]


def _lines(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, array in found["inputs"].items():
        if name != "g" or not _is_of_a_value(found):
            yield name, _array(array)
    for name, value in found["settings"].items():
        yield name, _value(value)
    for name, part in found["parts"].items():
        yield name, _part(part)
    yield "wrong is", element_name(found["output"], found["index"])
    exact = found.get("exact")
    yield "exact", _number(exact)
    yield "expected" if exact is None else "implied", _number(found["expected"])
    yield "received", _number(found["got"])
    yield "largest error allowed", _number(found["envelope"])
    yield "note", found["note"] if found["note"] != found["why"] else ""
    yield "why", found["why"]
    raised = found["raised"]
    if raised is not None:
        place = f" at {raised['file']}, line {raised['line']}" if raised["file"] else ""
        yield "raised", f"{raised['type']}: {raised['message']}{place}"


def _is_of_a_value(found: Mapping[str, Any]) -> bool:
    """Whether a plain call shows it, where the cotangent does not matter."""
    return found["shown_by"] is not None and found["calls"][found["shown_by"]]["does"] == "call"


def _array(array: Mapping[str, Any] | None) -> str:
    if array is None:
        return "None"
    values = [_in_format(one, array["dtype"]) for one in array["values"][:_MOST]]
    rest = len(array["values"]) - len(values)
    if not rest:
        text = _nested(values, array["shape"])
    else:
        text = f"[{', '.join(values)}, … {rest:,} more]"
    laid = f", {array['layout']}" if array["layout"] != "contiguous" else ""
    return f"{text}  {array['dtype']}, shape {tuple(array['shape'])}{laid}"


def _in_format(value: str, dtype: str) -> str:
    """A value in the fewest digits that distinguish it from its neighbours in its format."""
    if dtype not in ("float16", "float32"):
        return _number(value)
    return str(np.dtype(dtype).type(float.fromhex(value)))


def _nested(values: list[str], shape: list[int]) -> str:
    """Values in row-major order, with the brackets of their shape."""
    if not shape:
        return values[0]
    if len(shape) == 1:
        return f"[{', '.join(values)}]"
    step = math.prod(shape[1:])
    rows = [_nested(values[place * step : (place + 1) * step], shape[1:]) for place in range(shape[0])]
    return f"[{', '.join(rows)}]"


def _part(part: Any) -> str:
    if isinstance(part, list):
        return f"[{', '.join(map(_part, part))}]"
    return "None" if part is None else part["formula"]


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"({', '.join(map(_value, value))}{',' if len(value) == 1 else ''})"
    return _number(value) if isinstance(value, str) else str(value)


def _number(value: str | None) -> str:
    """A number, which JSON has in hexadecimal, in the digits that Python shows; empty if there is none."""
    return "" if value is None else repr(float.fromhex(value))
