"""The settings of a run: flags first, then the configuration, then the default."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from ...adapters.frameworks import KNOWN, full_name, missing
from ...adapters.in_file import names_a_file, targets_in
from ...adapters.own_function import file_of, names_a_function
from ...adapters.targets import TARGETS
from ...spec.conventions import parse_conventions
from ...spec.errors import NormspecError, UnknownTarget, choices
from ..requests.configuration import Configuration
from ..requests.per_target import EVERY_TARGET
from .layer_options import declared_options

#: In the interpreters of a run, the key of the one for all targets without their own.
OTHER_TARGETS = ""


class WrongInterpreter(NormspecError):
    """`--python` names an interpreter in a way that cannot be used."""


def setting(context: click.Context, configuration: Configuration, key: str) -> Any:
    """The value of a key: from its flag if given, else from the configuration, else the flag's default."""
    name = key.replace("-", "_")
    value = context.params[name]
    given = context.get_parameter_source(name) not in (click.core.ParameterSource.DEFAULT, None)
    return value if given and value != () else configuration.values.get(key, value)


def about_targets(
    context: click.Context, names: Sequence[str], pythons: Mapping[str, str], configuration: Configuration
) -> dict[str, Any]:
    """What a command that judges these targets says about them, as arguments of `check`. Raises a NormspecError."""
    given = context.params
    return {
        "op": setting(context, configuration, "ops") or None,
        "framework": given["framework"],
        "dtypes": setting(context, configuration, "dtypes") or None,
        "device": setting(context, configuration, "device"),
        "conventions": parse_conventions(given["conventions"]) or None,
        "forward_only": given["forward_only"],
        "mode": given["mode"],
        "per_target": _settings_of_targets(context, names, configuration) or None,
        "python": pythons or None,
        "time_limit": setting(context, configuration, "time-limit"),
        "memory_limit": setting(context, configuration, "memory-limit"),
        **declared_options(given["parameters"], given["layout"], given["fixed"]),
    }


def _settings_of_targets(
    context: click.Context, names: Iterable[str], configuration: Configuration
) -> dict[str, dict[str, Any]]:
    """
    The configuration of each of these targets and, under EVERY_TARGET, of all; no operator if a flag names one.

    Paths that lead to the same file are equal.
    """
    every = {key: configuration.values[key] for key in ("conventions", "mode") if key in configuration.values}
    found = {EVERY_TARGET: every} if every else {}
    tables = {_with_full_path(name): table for name, table in configuration.values.get("target", {}).items()}
    for name in names:
        table = dict(tables.get(_with_full_path(name), {}))
        if context.params.get("ops"):
            table.pop("op", None)
        if table:
            found[name] = table
    return found


def _with_full_path(name: str) -> str:
    """The same name for a target whatever the working directory, with the full path of its file."""
    name, file = full_name(name) if name in TARGETS else name, file_of(name)
    return f"{os.path.realpath(os.path.expanduser(file))}:{name.rpartition(':')[2]}" if file else name


def interpreters(texts: Iterable[str], configuration: Configuration) -> dict[str, str]:
    """
    The interpreters by target, from flags and the configuration.

    A flag without a name is for every target that no other flag names. Raises WrongInterpreter.
    """
    flags: dict[str, str] = {}
    for text in texts:
        name, path = _name_and_path(text)
        if not path:
            raise WrongInterpreter(f"--python {text} names no interpreter: write {name or 'TARGET'}=PATH")
        if flags.get(name, path) != path:
            whose = f"for {name} " if name else ""
            raise WrongInterpreter(f"--python is given twice {whose}({flags[name]}, {path}): keep one")
        flags[name] = path
    return flags if OTHER_TARGETS in flags else {**configuration.values.get("interpreters", {}), **flags}


def _name_and_path(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals:
        return OTHER_TARGETS, text.strip()
    name, path = name.strip(), path.strip()
    if name in TARGETS:
        return full_name(name), path
    if names_a_function(name):
        return name, path
    if "/" in name or "\\" in name:  # a path that contains =
        return OTHER_TARGETS, text.strip()
    raise WrongInterpreter(f"--python {text}: unknown target {name!r}{choices(name, TARGETS)}, FILE.py:NAME")


def targets_to_check(
    asked: Sequence[str],
    flags: Iterable[str],
    pythons: Mapping[str, str],
    configuration: Configuration,
    op: Sequence[str] | None,
) -> tuple[str, ...]:
    """
    The targets of a run: those named, those configured, or everything installed or with an interpreter.

    Targets of these operators that are found in a file are listed on standard error. Raises UnknownTarget if there are
    none, WrongInterpreter if a flag is for a target that is not among them, and WrongConfiguration if the configured
    interpreter of one of them cannot be used.
    """
    if asked or "targets" in configuration.values:
        targets = tuple(one for name in asked or configuration.values["targets"] for one in _expanded(name, op))
    elif OTHER_TARGETS in pythons:
        raise UnknownTarget("the packages of another interpreter are not known here: name the targets to check")
    else:
        targets = tuple(name for name in KNOWN if name in pythons or not missing(name))
    names = [full_name(name) if name in TARGETS else name for name in targets]
    given = {_name_and_path(text)[0] for text in flags}
    for name in given - set(names) - {OTHER_TARGETS}:
        raise WrongInterpreter(f"--python {name}=... is for a target that is not checked{choices(name, names)}")
    for name in names:
        if name not in given and OTHER_TARGETS not in given and name in pythons:
            _ensure_usable(name, pythons[name], configuration)
    return targets


def _expanded(name: str, op: Sequence[str] | None) -> tuple[str, ...]:
    """A target; for a file, all targets in it, which are listed on standard error."""
    if not names_a_file(name):
        return (name,)
    found = targets_in(name, op)
    click.echo(f"{name.rstrip(':')}: {', '.join(one.rpartition(':')[2] for one in found)}", err=True)
    return found


def _ensure_usable(name: str, python: str, configuration: Configuration) -> None:
    from ...adapters.remote.launching import interpreter

    try:
        interpreter(python)
    except NormspecError as error:
        raise configuration.wrong(f"interpreters.{name}", error) from error
