"""What is said of one target alone: in Python by `per_target`, in pyproject.toml by a table of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ...adapters.frameworks import FRAMEWORKS, full_name
from ...adapters.target import Target
from ...adapters.targets import TARGETS, check_operators
from ...spec.conventions import ensure_about, operators_about, validate
from ...spec.errors import NormspecError, UnknownFramework, choices
from .arguments import declared_of
from .mode import checked_mode

#: The name that stands for every target: what is said of it counts as far as a target is about it.
EVERY = ""


class WrongPerTarget(NormspecError, ValueError):
    """What is said of one target is not what can be said of one."""


def checked_per_target(given: Mapping[str, Mapping[str, Any]] | None) -> dict[str, dict[str, Any]]:
    """
    What is said of each target, by its name, in plain values.

    Raises WrongPerTarget, or the NormspecError of the value.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise WrongPerTarget(f"per_target is {given!r}: give a dict from targets to dicts, {_EXAMPLE}")
    return {_name(name): said(name, about) for name, about in given.items()}


def said(name: str, about: Any) -> dict[str, Any]:
    """What is said of one target, each value as it is checked. Raises WrongPerTarget."""
    if not isinstance(about, Mapping):
        raise WrongPerTarget(f"what is said of {name} is {about!r}: give a dict, {_EXAMPLE}")
    found = {}
    for key, value in about.items():
        plain = str(key).replace("-", "_")
        if plain not in KEYS:
            raise WrongPerTarget(f"unknown key {key!r} of {name}{choices(str(key), KEYS)}")
        found[plain] = KEYS[plain](value)
    return found


def ensure_meant(target: Target, own: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise UnknownConvention where what was declared of this target alone is about none of its operators."""
    mine = own.get(target.name, {}).get("conventions", {})
    ensure_about(mine, (binding.operator for binding in target.bindings), f"{target.name} is")


def declared(target: Target, own: Mapping[str, Mapping[str, Any]]) -> Target:
    """The target, each of its bindings with the conventions that were declared for it, as far as they are about it."""
    found = {**own.get(EVERY, {}).get("conventions", {}), **own.get(target.name, {}).get("conventions", {})}
    if not found:
        return target
    bindings = []
    for binding in target.bindings:
        more = {key: value for key, value in found.items() if binding.operator in operators_about(key)}
        bindings.append(replace(binding, conventions={**binding.conventions, **more}))
    return replace(target, bindings=tuple(bindings))


def of(own: Mapping[str, Mapping[str, Any]], name: object, key: str) -> Any:
    """What is said of a target under a key, or of every target; None where nothing is."""
    return own.get(str(name), {}).get(key, own.get(EVERY, {}).get(key))


_EXAMPLE = 'such as {"mine.py:fused": {"op": "batch_norm", "conventions": {"momentum": "old"}}}'


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise WrongPerTarget(f"per_target has the key {name!r}: give the name of a target, {_EXAMPLE}")
    return full_name(name) if name in TARGETS else name


def _op(value: Any) -> str:
    if not isinstance(value, str):
        raise WrongPerTarget(f"op is {value!r}: give the one operator that the target is, such as 'layer_norm'")
    return check_operators(value)[0]


def _framework(value: Any) -> str:
    if value not in FRAMEWORKS:
        raise UnknownFramework(f"unknown framework {value!r}{choices(value, FRAMEWORKS)}")
    return str(value)


def _conventions(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise WrongPerTarget(f"conventions is {value!r}: give a dict, such as {{'momentum': 'old'}}")
    return validate(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise WrongPerTarget(f"forward_only is {value!r}: give true or false")
    return value


def _declared(key: str) -> Callable[[Any], Any]:
    """Reads one of the three that layers are declared by; see arguments.declared_of."""

    def read(value: Any) -> Any:
        return getattr(declared_of(**{**dict.fromkeys(("parameters", "layout", "fixed")), key: value}), key)

    return read


#: What can be said of one target, and what reads it.
KEYS: Mapping[str, Callable[[Any], Any]] = {
    "op": _op,
    "framework": _framework,
    "conventions": _conventions,
    "mode": checked_mode,
    "forward_only": _flag,
    **{key: _declared(key) for key in ("parameters", "layout", "fixed")},
}
