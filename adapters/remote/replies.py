"""Check that a reply answers its request, because a target can write anything into its worker's pipe."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from ...spec.conventions import CONVENTIONS
from ..dtypes import DTYPES
from ..worker.codec import PROTOCOL

#: Fields that a reply may leave out, with their default values.
OPTIONAL: Mapping[str, Any] = {
    "layouts": ("contiguous",),
    "devices": ("cpu",),
    "slow": False,
    "several": False,
    "conventions": {},
    "conventions_on": {},
    "reasons": {},
    "expected": {},
    "known": [],
    "lacking": (),
    "accepts_all": True,
    "has_seams": False,
    "has_defaults": False,
    "has_modes": False,
    "fixed": {},
    "names_parameters": False,
    "layers": (),
    "where": None,
    "recorded": None,
    "tracks_calls": True,
}

#: A function that tells whether a field of a reply is valid; its arrays must have these names.
Form = Callable[[Any, Collection[str]], bool]


def answers(request: Mapping[str, Any], reply: Mapping[str, Any], names: Collection[str] = ()) -> bool:
    """Whether a reply has the fields that its request calls for, each in the right form."""
    if request.get("record") and reply.get("recorded") is None:
        return False
    if "times" in request and any(isinstance(one, list) and len(one) != request["times"] for one in reply.values()):
        return False
    for several in reply.values() if "times" in request else ():
        # A brief reply may leave out results with the same bits as the first. `None in several` would compare arrays.
        if isinstance(several, list) and any(one is None for one in several[: 1 if request.get("brief") else None]):
            return False
    return _FORMS[request["do"]](reply, names)


def _is(*kinds: type) -> Form:
    """The form of a value of one of these types."""
    return lambda value, names: isinstance(value, kinds)


def _perhaps(form: Form) -> Form:
    return lambda value, names: value is None or form(value, names)


def _all(form: Form) -> Form:
    """The form of a list whose values all have this form."""
    return lambda value, names: isinstance(value, list) and all(form(one, names) for one in value)


def _mapping(form: Form) -> Form:
    """The form of a mapping with any names, whose values all have this form."""
    return lambda value, names: isinstance(value, dict) and all(form(one, names) for one in value.values())


def _each(form: Form) -> Form:
    """The form of a mapping with exactly the given names, whose values all have this form."""
    mapping = _mapping(form)
    return lambda value, names: mapping(value, names) and set(value) == set(names)


def _fields(**forms: Form) -> Form:
    return lambda value, names: (
        isinstance(value, dict)
        and all(form(value[key], names) if key in value else key in OPTIONAL for key, form in forms.items())
    )


_array, _text, _flag, _whole = _is(np.ndarray), _is(str), _is(bool), _is(int)
_array_or_text = _is(np.ndarray, str)
_texts = _mapping(_text)


def _dtype(value: Any, names: Collection[str]) -> bool:
    return isinstance(value, str) and value in DTYPES  # a list has no hash


#: The optional fields of a known violation, besides requirement and reason; the limits' values are checked later.
_LIMITS: Mapping[str, Form] = {
    **dict.fromkeys(("links", "failures", "outputs", "dtypes", "devices", "modes", "notes"), _all(_text)),
    "ranks": _all(_whole),
    "where": _text,
    "always": _flag,
    "asks": _flag,
}


def _known(value: Any, names: Collection[str]) -> bool:
    """Whether a value describes a known violation."""
    return (
        isinstance(value, dict)
        and all(isinstance(value.get(key), str) for key in ("requirement", "reason"))
        and all(form(value[key], names) for key, form in _LIMITS.items() if key in value)
    )


_BINDING = _fields(
    operator=_text, name=_text, conventions=_texts, conventions_on=_mapping(_texts), reasons=_texts,
    expected=_texts, known=_all(_known), lacking=_all(_text), accepts_all=_flag, has_seams=_flag, has_defaults=_flag,
    has_modes=_flag, fixed=_is(dict), names_parameters=_flag, layers=_all(_text),
    tracks_calls=_flag,
)  # fmt: skip


def _trait(value: Any, names: Collection[str]) -> bool:
    """Whether a value describes a trait that the judge knows."""
    form = _fields(dtype=_dtype, key=_text, value=_text, evidence=_text)
    return form(value, names) and value["key"] in CONVENTIONS and value["value"] in CONVENTIONS[value["key"]]


#: The form of the reply to each request.
_FORMS: Mapping[str, Form] = {
    "open": _fields(
        protocol=lambda value, names: isinstance(value, int) and value == PROTOCOL,
        framework=_text,
        version=_text,
        dtypes=lambda value, names: _all(_dtype)(value, names) and bool(value),
        layouts=_all(_text),
        devices=_all(_text),
        slow=_flag,
        several=_flag,
        bindings=_all(_BINDING),
    ),
    # Each reply is checked when its call asks for it.
    "several": _fields(replies=_all(_is(dict))),
    "device": _fields(),
    "traits": _fields(traits=_all(_trait)),
    "accepts": _fields(reason=_perhaps(_text)),
    "upstream": _fields(bindings=_all(_BINDING), place=_whole),
    "known": _fields(covers=_is(bool, np.ndarray)),
    "call": _fields(outputs=_all(_perhaps(_each(_array)))),
    "vjp": lambda value, names: (
        _fields(gradients=_all(_perhaps(_each(_perhaps(_array)))))(value, names)
        and _mapping(_array)(value.get("outputs", {}), names)  # only if they were asked for
    ),
    "start": _fields(
        outputs=_each(_array),
        recorded=_perhaps(_all(_fields(role=_text, handed=_all(_array_or_text), returned=_perhaps(_array)))),
    ),
    "outputs": _fields(outputs=_each(_array)),
    "inputs": _fields(inputs=_each(_perhaps(_array))),
    "recorded": _fields(
        lists=_flag,
        # As many part calls as were recorded during the call.
        calls=lambda value, names: (
            _all(_fields(handed=_all(_array_or_text), returned=_perhaps(_array_or_text)))(value, names)
            and len(value) == len(names)
        ),
    ),
    "pull": _fields(gradients=_each(_perhaps(_array))),
    "gradients": _fields(gradients=_each(_perhaps(_array))),
    "cotangent": _fields(cotangent=_array),
    "jvp": _fields(tangent=_array),
    "vjp_vjp": _fields(gradients=_each(_perhaps(_array))),
    "nested": _fields(results=_each(_perhaps(_array))),
    "recall": _fields(outputs=_each(_array), gradients=_mapping(_perhaps(_array))),
    "seams": _fields(blocks=_all(_each(_array))),
}
