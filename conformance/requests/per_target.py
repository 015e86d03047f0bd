"""Settings of single targets: `per_target` in Python, a table for each target in pyproject.toml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ...adapters.frameworks import check_framework_name, full_name
from ...adapters.target import Target
from ...adapters.targets import TARGETS, check_operators
from ...spec.conventions import ensure_about, operators_about, validate
from ...spec.errors import NormspecError, choices
from .arguments import declared_of
from .mode import checked_mode

#: The name that stands for every target. Its settings apply to each target that they fit.
EVERY_TARGET = ""


class WrongPerTarget(NormspecError, ValueError):
    """The settings of a target are wrong."""


def checked_per_target(given: Mapping[str, Mapping[str, Any]] | None) -> dict[str, dict[str, Any]]:
    """
    The settings of each target, by name, checked and in plain values.

    Raises WrongPerTarget, or the NormspecError of the value.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise WrongPerTarget(f"per_target is {given!r}: give a dict from targets to dicts, {_EXAMPLE}")
    return {_name(name): checked_settings(name, settings) for name, settings in given.items()}


def checked_settings(name: str, settings: Any) -> dict[str, Any]:
    """The checked settings of one target. Raises WrongPerTarget."""
    if not isinstance(settings, Mapping):
        raise WrongPerTarget(f"the settings of {name} are {settings!r}: give a dict, {_EXAMPLE}")
    found = {}
    for key, value in settings.items():
        plain = str(key).replace("-", "_")
        if plain not in KEYS:
            raise WrongPerTarget(f"unknown key {key!r} of {name}{choices(str(key), KEYS)}")
        found[plain] = KEYS[plain](value)
    return found


def ensure_conventions_apply(target: Target, per_target: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise UnknownConvention if a convention declared only for this target is about none of its operators."""
    mine = per_target.get(target.name, {}).get("conventions", {})
    ensure_about(mine, (binding.operator for binding in target.bindings), f"{target.name} is")


def with_conventions(target: Target, per_target: Mapping[str, Mapping[str, Any]]) -> Target:
    """The target, each binding with the conventions declared for the target that are about its operator."""
    bindings = []
    for binding in target.bindings:
        more = conventions_of(per_target, target.name, binding.operator)
        bindings.append(replace(binding, conventions={**binding.conventions, **more}) if more else binding)
    return replace(target, bindings=tuple(bindings))


def conventions_of(per_target: Mapping[str, Mapping[str, Any]], name: str, operator: str) -> dict[str, str]:
    """The conventions declared for a target that are about an operator; its own outrank those of every target."""
    found = {
        **per_target.get(EVERY_TARGET, {}).get("conventions", {}),
        **per_target.get(name, {}).get("conventions", {}),
    }
    return {key: value for key, value in found.items() if operator in operators_about(key)}


def setting_of(per_target: Mapping[str, Mapping[str, Any]], name: object, key: str) -> Any:
    """The setting of a target under a key, or else that of every target; None if there is none."""
    return per_target.get(str(name), {}).get(key, per_target.get(EVERY_TARGET, {}).get(key))


_EXAMPLE = 'such as {"mine.py:fused": {"op": "batch_norm", "conventions": {"momentum": "old"}}}'


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise WrongPerTarget(f"per_target has the key {name!r}: give the name of a target, {_EXAMPLE}")
    return full_name(name) if name in TARGETS else name


def _op(value: Any) -> str:
    if not isinstance(value, str):
        raise WrongPerTarget(f"op is {value!r}: give the one operator that the target is, such as 'layer_norm'")
    return check_operators(value)[0]


def _conventions(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise WrongPerTarget(f"conventions is {value!r}: give a dict, such as {{'momentum': 'old'}}")
    return validate(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise WrongPerTarget(f"forward_only is {value!r}: give true or false")
    return value


def _declared(key: str) -> Callable[[Any], Any]:
    """The reader of one of the three declarations about layers; see arguments.declared_of."""

    def read(value: Any) -> Any:
        return getattr(declared_of(**{**dict.fromkeys(("parameters", "layout", "fixed")), key: value}), key)

    return read


#: The settings that a target can have, each with the function that reads its value.
KEYS: Mapping[str, Callable[[Any], Any]] = {
    "op": _op,
    "framework": check_framework_name,
    "conventions": _conventions,
    "mode": checked_mode,
    "forward_only": _flag,
    **{key: _declared(key) for key in ("parameters", "layout", "fixed")},
}
