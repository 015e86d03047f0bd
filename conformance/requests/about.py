"""Whether what a user declares about layers and functions, and the mode asked for, is about what is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...adapters.declarations import Declarations, has
from ...adapters.frameworks import KNOWN
from ...adapters.target import Target
from ...spec.errors import UnknownMode, WrongDeclaration
from ...spec.operators import OPERATORS, Groups

_DECLARED = ("parameters", "layout", "fixed")


def ensure_declared_about(declared: Declarations, targets: Sequence[Target], whose: str = "") -> None:
    """
    Raise WrongDeclaration if something declared is about none of the targets.

    ``whose``: the target whose table declares it; "" for the options of the command line.
    """
    option = f"{{}} of {whose}" if whose else "--{}"
    names = ", ".join(target.name for target in targets)
    operators = operators_in(targets)
    there = ", ".join(operators)
    given = [name for name in _DECLARED if getattr(declared, name)]
    if given and all(target.name in KNOWN for target in targets):
        raise WrongDeclaration(
            f"{option.format(given[0])} is about functions and layers of your own, not about {names}: leave it out"
        )
    if declared.layout and all(OPERATORS[operator].groups is Groups.LAST for operator in operators):
        raise WrongDeclaration(f"{option.format('layout')}: {there} has no channels: leave it out")
    if declared.parameters and not any(one.names_parameters for target in targets for one in target.bindings):
        raise WrongDeclaration(
            f"{option.format('parameters')} is about layers, and {names} takes its parameters in the order of the call:"
            " leave it out"
        )
    for name, text in declared.fixed.items():
        if not any(has(operator, name) for operator in operators):
            raise WrongDeclaration(f"{option.format(f'fixed {name}={text}')}: {there} has no {name}: leave it out")


def ensure_table_about(target: Target, table: Mapping[str, Any]) -> None:
    """Raise WrongDeclaration or UnknownMode if something in the table of a target is not about it."""
    declared = Declarations(**{name: table[name] for name in _DECLARED if table.get(name)})
    ensure_declared_about(declared, [target], target.name)
    if target.name not in KNOWN:  # of a framework, a run may check other operators than the table has in mind
        ensure_mode_about(table.get("mode", ""), [target], f"mode of {target.name}")


def ensure_mode_about(mode: str, targets: Sequence[Target], option: str = "") -> None:
    """Raise UnknownMode if a mode is asked for and no operator has modes; ``option``: what asks for it."""
    operators = operators_in(targets)
    if mode and not any(OPERATORS[operator].has_modes for operator in operators):
        raise UnknownMode(f"{option or f'--mode {mode}'}: {', '.join(operators)} has no modes: leave it out")


def operators_in(targets: Sequence[Target]) -> list[str]:
    """The operators of some targets, in the order of the specification."""
    there = {binding.operator for target in targets for binding in target.bindings}
    return sorted(there, key=list(OPERATORS).index)
