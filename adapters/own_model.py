"""The normalisation layers of a user's model as a target: the first layer of each kind, named by its path."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..spec.errors import NormspecError, WrongDeclaration, WrongSignature, one_line
from ..spec.operators import OPERATORS
from .binding import Binding
from .declarations import Declarations
from .frameworks import SLOW, adapter, full_name
from .layers.build import binding_of
from .layers.constructor import attribute
from .layers.kit import Kit
from .layers.names import operator_named
from .own_layer import folder_of_layer, kit_of, without_state
from .target import Target


def model_target(label: str, value: Any, operators: tuple[str, ...] | None, declared: Declarations) -> Target:
    """
    The target for the layers of a model: an instance, or a class or function that makes one without arguments.

    Layers with the same class, settings and sizes are one kind, and only the first of a kind is checked. A layer that
    cannot be called declines every call, with the reason, and so does one whose class is some "Norm" without saying
    which operator it is. Raises WrongSignature if there is no model, or if the model has no layer whose class is named
    after an operator.
    """
    model = value
    if inspect.isclass(value) or inspect.isroutine(value):
        try:
            model = value()
        except Exception as error:
            raise WrongSignature(
                f"{label}() raises {one_line(error)}: name a model, or a function without arguments that makes one"
            ) from error
    name = folder_of_layer(model)
    if name is None:
        raise WrongSignature(
            f"{label} is {type(model).__name__}: --layers is for a model of torch, Keras, flax.nnx or Equinox"
        )
    folder = adapter(name)
    kit = kit_of(folder, type(without_state(model)))
    if not kit.models:
        raise WrongSignature(
            f"{label} of {kit.base.__module__.rpartition('.')[0]} has its layers only while it is called"
        )
    kinds: dict[Any, list[str]] = {}
    within = kit.within(model)
    for path, operator in _normalising(within).items():
        if operators is None or operator in operators:
            kinds.setdefault((operator, *_kind(kit, within[path])), []).append(path)
    if not kinds:
        raise WrongSignature(f"{label} has no layer whose class is named after one of {', '.join(_NAMED)}")
    _ensure_used(declared, kit, within, label)
    bindings = [_binding(kit, within[paths[0]], key[0], paths, declared) for key, paths in kinds.items()]
    # With --op such a layer is left out: nothing says that it is one of the chosen operators.
    for name, paths in _unnamed(kit, within).items() if operators is None else ():
        why = f"its class {name} does not say which operator it is: check it by itself, FILE.py:{name} --op OPERATOR"
        bindings.append(_declining(next(iter(kinds))[0], paths, why))
    slow = full_name(kit.framework) in SLOW
    return Target(label, kit.framework, folder.BRIDGE.version, folder.BRIDGE, tuple(bindings), slow=slow)


#: The operators that a layer's class can be named after.
_NAMED = tuple(name for name, one in OPERATORS.items() if one.normalises and not one.composed)


def _normalising(within: Mapping[str, Any]) -> dict[str, str]:
    """The paths of the normalisation layers, with their operators; of nested ones, only the inner layer."""
    found: dict[str, str] = {}
    for path, layer in within.items():
        operator = operator_named(base.__name__ for base in type(layer).__mro__) if path else None
        if operator is not None:
            found[path] = operator
    return {path: one for path, one in found.items() if not any(other.startswith(f"{path}.") for other in found)}


#: How the name of a class ends that normalises something.
_SOME_NORM = re.compile(r"norm(alization)?(\dd)?$", re.IGNORECASE)


def _unnamed(kit: Kit, within: Mapping[str, Any]) -> dict[str, list[str]]:
    """
    The paths of the user's layers that normalise something without saying what, by the name of their class.

    A layer that contains one with a telling name is left out: that one is checked.
    """
    framework, told = kit.base.__module__.partition(".")[0], _normalising(within)
    found: dict[str, list[str]] = {}
    for path, layer in within.items():
        kind = type(layer)
        own = path and kind.__module__.partition(".")[0] != framework
        own = own and not any(other.startswith(f"{path}.") for other in told)
        if own and _SOME_NORM.search(kind.__name__) and operator_named(base.__name__ for base in kind.__mro__) is None:
            found.setdefault(kind.__name__, []).append(path)
    return found


def _kind(kit: Kit, layer: Any) -> tuple[Any, ...]:
    """A key that is equal for layers of the same kind."""
    settings = tuple(str(attribute([layer], key)) for key in ("eps", "momentum", "groups"))
    try:
        own = kit.tensors(layer).items()
    except NormspecError:  # its state is stored elsewhere, and it will decline every call
        own = ()
    parameters = tuple((name.rpartition(".")[2], one.shape, one.trained) for name, one in own)
    size = str(attribute([layer], "size"))  # tells layers without parameters apart
    return (type(layer), settings, parameters, size, str(getattr(layer, "data_format", "")))


def _words(paths: list[str]) -> str:
    return " and ".join(paths) if len(paths) < 3 else f"{paths[0]} and {len(paths) - 1} more layers"


def _binding(kit: Kit, layer: Any, operator: str, paths: list[str], declared: Declarations) -> Binding:
    label = _words(paths)
    try:
        found = binding_of(kit, layer, operator, label, _fitting(declared, kit, layer))
    except NormspecError as error:
        return _declining(operator, paths, str(error))
    return replace(found, layers=tuple(paths))


def _declining(operator: str, paths: list[str], reason: str) -> Binding:
    """The binding of layers that cannot be called, for this reason."""
    return Binding(operator, _words(paths), _never, accepts=lambda shape, settings: reason, layers=tuple(paths))


def _fitting(declared: Declarations, kit: Kit, layer: Any) -> Declarations:
    """The declarations without names of parameters that this layer does not have, and another of the model may."""
    own = _names_of_tensors(kit, layer)
    return replace(
        declared, parameters={role: name for role, name in declared.parameters.items() if _last(name) in own}
    )


def _ensure_used(declared: Declarations, kit: Kit, within: Mapping[str, Any], label: str) -> None:
    """Raise WrongDeclaration unless some layer has each declared name of a parameter."""
    for role, name in declared.parameters.items():
        if not any(_last(name) in _names_of_tensors(kit, layer) for layer in within.values()):
            raise WrongDeclaration(
                f"--parameters {role}={name}: no layer of the model has a parameter {name} ({label})"
            )


def _names_of_tensors(kit: Kit, layer: Any) -> set[str]:
    try:
        return {_last(name) for name in kit.tensors(layer)}
    except NormspecError:  # its state is stored elsewhere, and it will decline every call
        return set()


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _never(*tensors: Any, **settings: Any) -> Any:
    raise AssertionError("it declines every call")
