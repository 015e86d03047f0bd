"""Checks the arguments of check, compare and campaigns; each error says what to give instead."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ...adapters.declarations import LAYOUTS, Declarations
from ...adapters.frameworks import check_framework_name, full_name
from ...adapters.remote.host import Limits
from ...adapters.target import Target
from ...adapters.targets import TARGETS
from ...spec.conventions import validate
from ...spec.errors import NormspecError, UnknownTarget
from .limits import WrongLimit, bytes_of, seconds_of

#: Lists the forms of a target, for messages.
_TARGETS = "a name such as 'torch', FILE.py:NAME, package.module:NAME, or a callable"


class WrongType(NormspecError, TypeError):
    """An argument has a wrong type."""


class WrongValue(NormspecError, ValueError):
    """An argument has the right type, but a wrong value."""


def targets_of(value: Any) -> tuple[Any, ...]:
    """The targets: one, or several in a list. Raises UnknownTarget or WrongType."""
    alone = isinstance(value, (str, os.PathLike, Target)) or callable(value)
    if alone:
        return (value,)
    if not isinstance(value, Iterable) or isinstance(value, (Mapping, bytes)):
        raise WrongType(
            f"an object of type {_kind(value)} is not a target: give a name, FILE.py:NAME, a callable, or a list"
        )
    given = tuple(value)
    if not given:
        raise UnknownTarget(f"no target is named: give {_TARGETS}, or several")
    for one in given:
        if not (isinstance(one, (str, os.PathLike, Target)) or callable(one)):
            raise WrongType(f"one of the targets is an object of type {_kind(one)}: give {_TARGETS} for each")
    return given


def text_of(value: Any, name: str, example: str) -> str:
    """A text that is not empty. Raises WrongType or WrongValue."""
    if not isinstance(value, str):
        raise WrongType(f"{name} is of type {_kind(value)}: give a text, such as {example!r}")
    if not value.strip():
        raise WrongValue(f"{name} is empty: give a text, such as {example!r}")
    return value


def texts_of(value: Any, name: str, example: str) -> tuple[str, ...]:
    """One text or several. Raises WrongType, or WrongValue if there is none."""
    if isinstance(value, str):
        return (text_of(value, name, example),)
    if not isinstance(value, Iterable) or isinstance(value, (Mapping, bytes)):
        raise WrongType(f"{name} is of type {_kind(value)}: give a text, such as {example!r}, or a list of them")
    found = tuple(value)
    if not found:
        raise WrongValue(f"{name} is empty: give {example!r} or others, or leave it out")
    return tuple(text_of(one, f"{name} has an entry that", example) for one in found)


def path_of(value: Any, name: str, example: str) -> str:
    """The path of a file. Raises WrongType or WrongValue."""
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    return text_of(value, name, example)


def flag_of(value: Any, name: str) -> bool:
    """True or false. Raises WrongType."""
    if not isinstance(value, (bool, np.bool_)):
        raise WrongType(f"{name} is {value!r}: give True or False")
    return bool(value)


def seed_of(value: Any) -> int:
    """A seed. Raises WrongType or WrongValue."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise WrongType(f"seed is {value!r}: give a whole number from 0 on")
    if value < 0:
        raise WrongValue(f"seed is {value}: give a whole number from 0 on")
    return int(value)


def framework_of(value: Any) -> str | None:
    """The name of a framework, or None. Raises WrongType or UnknownFramework."""
    return None if value is None else check_framework_name(text_of(value, "framework", "torch"))


def conventions_of(value: Any) -> dict[str, str]:
    """Declared conventions; empty for None. Raises WrongType or UnknownConvention."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise WrongType(f'conventions is {value!r}: give a dict, such as {{"momentum": "old"}}')
    return validate(value)


def pairs_of(value: Any, name: str, example: str, plain: tuple[type, ...] = (str,)) -> dict[str, str]:
    """A dict from names to values of the types in ``plain``, as texts; empty for None. Raises WrongType."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(k, str) and isinstance(v, plain) for k, v in value.items()):
        raise WrongType(f"{name} is {value!r}: give a dict, such as {example}")
    return {key: str(one) for key, one in value.items()}


def declared_of(parameters: Any, layout: Any, fixed: Any, layers: Any = False) -> Declarations:
    """
    What the user declares about layers and about functions with another than the canonical signature.

    Raises WrongType or WrongDeclaration.
    """
    return Declarations(
        pairs_of(parameters, "parameters", '{"gamma": "g"}'),
        "" if layout is None else text_of(layout, "layout", LAYOUTS[-1]),
        pairs_of(_with_none_named(fixed), "fixed", '{"eps": 1e-6, "axes": -1}', (str, int, float, bool)),
        flag_of(layers, "layers"),
    )


def _with_none_named(fixed: Any) -> Any:
    """The settings, with None, as in a call without gamma, in the word that the command line has for it."""
    return {key: "none" if one is None else one for key, one in fixed.items()} if isinstance(fixed, Mapping) else fixed


def interpreters_of(value: Any) -> dict[str, str]:
    """
    The interpreters by the full name of a target, with that of all other targets under ""; empty for None.

    Raises WrongType.
    """
    if value is None or value == "":
        return {}
    pairs = value.items() if isinstance(value, Mapping) else [("", value)]
    found = {}
    for name, path in pairs:
        if not isinstance(name, str) or not isinstance(path, (str, os.PathLike)):
            raise WrongType(
                f'python is {value!r}: give the path of an interpreter, or a dict such as {{"mxnet": "venvs/mxnet"}}'
            )
        found[full_name(name) if name in TARGETS else name] = str(os.fspath(path))
    return found


def limits_of(seconds: Any, memory: Any, device: str) -> Limits:
    """The limits of a target; None means no limit. Off the CPU, memory is not limited. Raises WrongLimit."""
    unlimited = seconds is None or (isinstance(seconds, float) and seconds == math.inf)
    found = None if unlimited else _limit("time_limit", seconds_of, seconds)
    size = None if memory is None else _limit("memory_limit", bytes_of, memory)
    return Limits(seconds=math.inf if found is None else found, memory=size if device == "cpu" else None)


def _limit(name: str, read: Callable[[Any], Any], value: Any) -> Any:
    try:
        return read(value)
    except WrongLimit as error:
        raise WrongLimit(f"{name}: {error}") from None


def listener_of(value: Any) -> Any:
    """The function that receives progress events, or None. Raises WrongType."""
    if value is not None and not callable(value):
        raise WrongType(f"progress is {value!r}: give a function that takes a Progress")
    return value


def seeds_of(value: Any) -> range:
    """The seeds of a campaign. Raises WrongType or WrongValue."""
    if not isinstance(value, range):
        raise WrongType(f"seeds is {value!r}: give a range, such as range(0, 1000)")
    if value.step != 1 or value.start < 0 or not value:
        raise WrongValue(f"seeds is {value!r}: give consecutive seeds from 0 on, such as range(0, 1000)")
    return value


def _kind(value: Any) -> str:
    return type(value).__name__
