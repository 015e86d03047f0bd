"""Constructors: a class of layers, or a factory of them, called with the settings of a case."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ...spec.errors import WrongSignature
from .names import ARGUMENTS, meaning


@dataclass(frozen=True)
class Constructor:
    """What makes a layer, and which of its arguments sets what."""

    make: Callable[..., Any]
    #: The name of the argument, by what it sets (names.ARGUMENTS).
    arguments: Mapping[str, str]
    #: What else it takes that its framework hands over: a random key, or the dtype of x.
    handed: tuple[str, ...] = ()

    @classmethod
    def of(cls, make: Callable[..., Any], label: str, handed: Iterable[str] = ()) -> Constructor:
        """
        The constructor that a class or a function is, ``handed`` what its framework hands to each that takes it.

        Raises WrongSignature where it needs an argument whose name tells nothing.
        """
        taken = _parameters(make)
        arguments: dict[str, str] = {}
        for parameter in taken:
            key = meaning(parameter.name)
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
        """Whether a layer can be made with another value of this."""
        return key in self.arguments

    def __call__(self, handed: Mapping[str, Any] = MappingProxyType({}), **values: Any) -> Any:
        """A layer with these values, each by what it is; those that are not taken are left out."""
        if "scale" in self.arguments and "center" in self.arguments:
            values.pop("affine", None)  # which says both at once
        named = {self.arguments[key]: value for key, value in values.items() if key in self.arguments}
        return self.make(**named, **{name: handed[name] for name in self.handed})


def is_factory(function: Any) -> bool:
    """Whether a function takes the arguments of a constructor, or none, rather than tensors."""
    if not inspect.isfunction(function):
        return False
    taken = [one for one in _parameters(function) if one.kind is not inspect.Parameter.VAR_KEYWORD]
    return all(meaning(one.name) is not None or one.default is not inspect.Parameter.empty for one in taken)


def attribute(layers: list[Any], key: str) -> Any:
    """The value that layers, the outer one first, hold of a setting under one of its usual names; None for none."""
    for layer in layers:
        for name in ARGUMENTS[key]:
            try:
                value = getattr(layer, name, None)
            except Exception:  # a property of the target's that raises
                continue
            if value is not None and not callable(value):
                return value
    return None


_ANYTHING = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _parameters(make: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        found = list(inspect.signature(make).parameters.values())
        if inspect.isclass(make) and all(one.kind in _ANYTHING for one in found):
            # A metaclass, as flax.nnx has one, hands on whatever it is given.
            found = list(inspect.signature(make.__init__).parameters.values())[1:]
    except (TypeError, ValueError):
        return []
    return found
