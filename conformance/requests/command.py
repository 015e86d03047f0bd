"""Requests as commands: what somebody types to ask the same again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any


def command(*words: str, **options: str | bool | Sequence[str] | Mapping[str, str] | None) -> str:
    """
    A command of normspec, such as ``command("check", "torch", op="layer_norm")``, as a shell takes it.

    An option that is True has no value. Several values repeat it; those of a mapping are NAME=VALUE. What is empty is
    left out, and so is the device that is the default.
    """
    line = ["normspec", *words]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            line.append(flag)
        elif value and (name, value) != ("device", "cpu"):
            line += [word for one in _texts(value) for word in (flag, one)]
    return shlex.join(line)


def in_options(declared: Mapping[str, Any]) -> dict[str, str]:
    """What is declared about a layer or a function, as options of a command, from `Declarations.to_plain`."""
    return {
        name: ",".join(_texts(value)) if isinstance(value, Mapping) else value
        for name, value in declared.items()
        if name in ("parameters", "layout", "fixed")
    }


def _texts(value: str | Sequence[str] | Mapping[str, str]) -> Sequence[str]:
    if isinstance(value, Mapping):
        return [f"{name}={one}" if name else one for name, one in value.items()]
    return [value] if isinstance(value, str) else value
