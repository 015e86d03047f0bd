"""Constructors: a layer class or a factory, called with the settings of a case."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ...spec.errors import WrongSignature
from .names import ARGUMENTS, HANDED, meaning


@dataclass(frozen=True)
class Constructor:
    """A callable that makes a layer, and the meaning of its arguments."""

    make: Callable[..., Any]
    #: For each setting (a key of names.ARGUMENTS), the name of the argument that sets it.
    arguments: Mapping[str, str]
    #: Further arguments that the framework's kit passes, such as a random key or the dtype of x.
    handed: tuple[str, ...] = ()

    @classmethod
    def of(cls, make: Callable[..., Any], label: str, handed: Iterable[str] = ()) -> Constructor:
        """
        The constructor for a class or a function.

        ``handed`` names the arguments that the framework's kit passes to a constructor that takes them. Raises
        WrongSignature if a required argument has a name of unknown meaning.
        """
        taken = _parameters(make)
        arguments: dict[str, str] = {}
        for parameter in taken:
            key = meaning(parameter.name)
            if parameter.name == "scale" and isinstance(parameter.default, bool):
                key = "scale"  # a flag, as in Keras; any other argument of this name may be a number
            if key is not None and key not in arguments:
                arguments[key] = parameter.name
        handed = tuple(name for name in handed if any(one.name == name for one in taken))
        needed = [
            one.name
            for one in taken
            if one.default is inspect.Parameter.empty
            and one.kind not in _ANYTHING
            and one.name not in arguments.values()
            and one.name not in handed
        ]
        if needed:
            raise WrongSignature(
                f"{label} takes {', '.join(needed)}, whose meaning its name does not tell: name a factory instead,"
                " such as `def make(shape, eps): return Layer(...)`, or an instance"
            )
        return cls(make, arguments, handed)

    def sets(self, key: str) -> bool:
        """Whether a layer can be made with another value of this setting."""
        return key in self.arguments

    def has_default(self, key: str) -> bool:
        """Whether it has a value of its own for this setting, or does not take it."""
        return key not in self.arguments or self.arguments[key] not in self._required

    @property
    def _required(self) -> frozenset[str]:
        """The names of the arguments without a default."""
        return frozenset(one.name for one in _parameters(self.make) if one.default is inspect.Parameter.empty)

    def __call__(self, handed: Mapping[str, Any] = MappingProxyType({}), **values: Any) -> Any:
        """Make a layer with these values, given by setting; values that the constructor does not take are left out."""
        if "scale" in self.arguments and "center" in self.arguments:
            values.pop("affine", None)  # affine would set both scale and center
        named = {self.arguments[key]: value for key, value in values.items() if key in self.arguments}
        return self.make(**named, **{name: handed[name] for name in self.handed})


def is_factory(function: Any) -> bool:
    """Whether a function takes the arguments of a constructor, or none, rather than tensors."""
    if not inspect.isfunction(function):
        return False
    taken = [one for one in _parameters(function) if one.kind is not inspect.Parameter.VAR_KEYWORD]
    handed = HANDED.get(folder_of_factory(function) or "", ())
    return all(
        meaning(one.name) is not None or one.name in handed or one.default is not inspect.Parameter.empty
        for one in taken
    )


def folder_of_factory(function: Any) -> str | None:
    """The folder of adapters/ for a factory that needs what only one framework's layers take; None for any other."""
    needed = {one.name for one in _parameters(function) if one.default is inspect.Parameter.empty}
    return next((folder for folder, names in HANDED.items() if names[0] in needed), None)


def attribute(layers: list[Any], key: str) -> Any:
    """The value of a setting, from the first layer with an attribute of one of its usual names; None if none has."""
    for layer in layers:
        for name in ARGUMENTS[key]:
            try:
                value = getattr(layer, name, None)
            except Exception:  # a property of the target may raise
                continue
            if value is not None and not callable(value):
                return value
    return None


_ANYTHING = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _parameters(make: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        found = list(inspect.signature(make).parameters.values())
        if inspect.isclass(make) and all(one.kind in _ANYTHING for one in found):
            # The call of a metaclass, as in flax.nnx, takes any arguments and passes them to __init__.
            found = list(inspect.signature(make.__init__).parameters.values())[1:]
    except (TypeError, ValueError):
        return []
    return found
