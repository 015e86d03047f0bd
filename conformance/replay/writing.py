"""
A counterexample as JSON, with everything needed to rebuild it, by hand or by `--replay`.

At the top is the call that shows the violation, with every array in full. ``calls`` has all calls that the check made
until then, and ``case`` the case that it made them from. docs/counterexamples.md describes each field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import numpy as np

from ...adapters.layouts import place
from ...spec.errors import LayoutNotApplicable
from ...spec.parts import Part
from ..cases.case import Case
from ..cases.description import Description
from ..judging.call_log import COTANGENTS, LoggedCall, Raised
from ..judging.verdicts import Counterexample
from ..reporting.numbers import hex_float

Arrays = Mapping[str, "np.ndarray | None"]

#: Stands for an array of the case that is the same in the call above.
AS_ABOVE = "as above"


def written(found: Counterexample) -> dict[str, Any]:
    """The counterexample as a JSON object."""
    call = found.call
    layouts = call.layouts if call is not None else {}
    return {
        "inputs": {name: _array(array, layouts.get(name, "")) for name, array in found.inputs.items()},
        "settings": _settings(found.settings),
        "parts": {role: _part(part) for role, part in found.parts.items()},
        "output": found.output,
        "index": [int(i) for i in found.index],
        "expected": exact(found.expected),
        "got": exact(found.got),
        "envelope": exact(found.envelope),
        "exact": exact(found.exact),
        "why": found.why,
        "note": found.note,
        "raised": _raised(found.raised),
        "calls": [_call(found, place) for place in range(len(found.calls))],
        "shown_by": found.shown_by,
        "case": None if found.case is None else _case(found.case, found),
    }


def exact(value: Any) -> Any:
    """A setting or a number, with floats in hexadecimal."""
    if value is None or isinstance(value, (bool, str, np.bool_)):
        return bool(value) if isinstance(value, np.bool_) else value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return hex_float(float(value))
    if isinstance(value, (tuple, list)):
        return [exact(one) for one in value]
    return str(value)


def _settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: exact(value) for name, value in settings.items()}


def _array(array: np.ndarray | None, layout: str = "") -> dict[str, Any] | None:
    """An array: its values in row-major order, and its layout, with strides and offset counted in elements."""
    if array is None:
        return None
    values = np.asarray(array).astype(np.float64).ravel()
    return {
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        **memory(array, layout or "contiguous"),
        "values": [hex_float(v) for v in values],
    }


def memory(array: np.ndarray, layout: str) -> dict[str, Any]:
    """A layout by name, with the strides and the offset that it gives an array, counted in elements."""
    try:
        laid = place(np.empty(array.shape, array.dtype) if layout != "zero_stride" else array, layout)
    except LayoutNotApplicable:  # then the call was never made
        laid = place(array, "contiguous")
    return {"layout": layout, "strides": list(laid.strides), "offset": laid.offset}


def _part(part: Part | tuple[Part, ...] | None) -> Any:
    if part is None:
        return None
    if isinstance(part, tuple):
        return [_part(one) for one in part]
    inner = [_part(one) for one in part.inner]
    return {
        "kind": part.kind, "leaves": list(part.leaves), "number": exact(float(part.number)), "inner": inner,
        "formula": str(part),
    }  # fmt: skip


def _raised(raised: Raised | None) -> dict[str, Any] | None:
    if raised is None:
        return None
    where = raised.where
    found: dict[str, Any] = {"type": raised.type, "message": raised.words, "file": None, "line": None, "source": None}
    return found if where is None else found | {"file": where.file, "line": where.line, "source": where.source}


# The calls -------------------------------------------------------------------------------------------------------


def _call(found: Counterexample, place: int) -> dict[str, Any]:
    """One call: what it does, and the parts of its input that differ from the call above or an earlier call."""
    call = found.calls[place]
    written: dict[str, Any] = {"does": call.does}
    if call.of is not None:
        written["of_call"] = call.of
    else:
        earlier = next((n for n in range(place) if _has_same_arguments(found.calls[n], call)), None)
        if earlier is not None:
            written["inputs_of_call"] = earlier
        elif place != found.shown_by:
            written |= _differences(call, found)
    if call.g is not None and not _same(call.g, found.inputs.get("g")):
        written["g"] = _array(call.g)
    elif call.g is not None and "vjp" not in call.does:  # a call whose gradients are taken too
        written["g"] = AS_ABOVE
    for name in ("tangents", "tangents_again", "cotangents"):
        arrays = getattr(call, name)
        if any(array is not None for array in arrays.values()):
            written[name] = {one: _array(array) for one, array in arrays.items()}
    laid = {
        name: memory(array, call.layouts[name])
        for name, array in {**call.inputs, "g": call.g}.items()
        if array is not None and name in call.layouts
    }
    if COTANGENTS in call.layouts:  # several arrays, each with strides of its own
        laid[COTANGENTS] = {"layout": call.layouts[COTANGENTS]}
    if laid:
        written["layouts"] = laid
    if call.mode != "training":
        written["mode"] = call.mode
    if call.times != 1:
        written["times"] = call.times
    if call.wrt is not None:
        written["wrt"] = list(call.wrt)
    if call.raised is not None:
        written["raised"] = _raised(call.raised)
    return written


def _differences(call: LoggedCall, found: Counterexample) -> dict[str, Any]:
    inputs = {name: _array(array) for name, array in call.inputs.items() if not _same(array, found.inputs.get(name))}
    settings = {name: value for name, value in call.settings.items() if found.settings.get(name) != value}
    written: dict[str, Any] = {}
    if inputs:
        written["inputs"] = inputs
    if settings:
        written["settings"] = _settings(settings)
    if call.parts != found.parts:
        written["parts"] = {role: _part(part) for role, part in call.parts.items()}
    return written


def _has_same_arguments(one: LoggedCall, other: LoggedCall) -> bool:
    return (
        one.of is None
        and one.settings == other.settings
        and one.parts == other.parts
        and same_values(one.inputs, other.inputs)
    )


def same_values(one: Arrays, other: Arrays) -> bool:
    """Whether two calls have the same inputs, bit for bit."""
    return one is other or (
        one.keys() == other.keys() and all(_same(array, other[name]) for name, array in one.items())
    )


def _same(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    if one is None or other is None or one is other:
        return one is other
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


# The case --------------------------------------------------------------------------------------------------------


def _case(case: Case, found: Counterexample) -> dict[str, Any]:
    """The case that the check ran on, with those of its arrays that differ from the call above."""
    given = {**case.inputs, "g": case.g}
    arrays: dict[str, Any] = {}
    for name, array in given.items():
        above = name in found.inputs and array is not None and _same(array, found.inputs[name])
        arrays[name] = AS_ABOVE if above else _array(array)
    return {
        "inputs": arrays,
        "settings": _settings(case.settings),
        "parts": {role: _part(part) for role, part in case.parts.items()},
        "description": None if case.description is None else described(case.description),
    }


def described(description: Description) -> dict[str, Any]:
    """The description of a case, as far as it differs from the defaults."""
    return {name: exact(value) for name, value in fields_given(description).items()}


def fields_given(description: Description) -> dict[str, Any]:
    """The fields that differ from the defaults; a set is sorted."""
    fields: Iterable[Any] = attrs.fields(Description)
    values = {field.name: (getattr(description, field.name), field.default) for field in fields}
    return {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, (value, default) in values.items()
        if value != default
    }
