"""
Calls of a function that does not take the canonical call.

Settings that the function has built in are left out, and x is passed in the function's layout.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..spec.errors import CannotVary, WrongSignature
from ..spec.operators import OPERATORS, Groups
from .bridge import Bridge
from .declarations import Declarations
from .fixed import FixedSettings, parameter_choices
from .layers.names import meaning
from .signatures import lacking_affine, lacking_keywords, misplaced, signature_of


@dataclass(frozen=True)
class OwnCall:
    """How to call a function, and the settings that no call of it can vary."""

    operator: str
    #: The function's own name for each setting it takes.
    settings: Mapping[str, str]
    #: Which of gamma and beta the function does not take.
    lacking: frozenset[str]
    fixed: FixedSettings
    #: Whether the function takes x with the features in axis 1.
    channels_first: bool
    #: The operator's optional keyword arguments that the function does not take.
    unsupported_keywords: frozenset[str]

    @classmethod
    def of(cls, function: Any, operator: str, declared: Declarations, label: str) -> OwnCall:
        """
        How to call a function, from its signature and its declaration.

        Raises WrongSignature if the function lacks a setting that is not declared, or takes other arguments, and
        WrongDeclaration where declarations contradict each other.
        """
        record = OPERATORS[operator]
        declared = declared.about(operator, label)
        if record.has_channels and declared.channel_axis is not None and "channel_axis" not in declared.fixed:
            declared = replace(declared, fixed={**declared.fixed, "channel_axis": str(declared.channel_axis)})
        lacking = declared.affine("none")
        settings = _settings(function, operator, declared)
        signature = signature_of(function)
        if signature is not None:
            tensors = [name for name in record.arguments if name not in lacking]
            missing = [name for name in record.settings if name not in settings and name not in declared.fixed]
            try:
                if not missing:
                    signature.bind(*tensors, **dict.fromkeys(settings.values()))
            except TypeError as error:
                affine = ",".join(f"{name}=none" for name in lacking_affine(signature, operator) if name in tensors)
                raise WrongSignature(
                    f"{label} cannot be called with ({', '.join((*tensors, *settings.values()))}): {error}"
                    + (f"; if it lacks these, say so: --fixed {affine}" if affine else "")
                ) from None
            if missing:
                raise WrongSignature(
                    f"{label} takes no {' and no '.join(missing)}: say what it has of its own,"
                    f" --fixed {','.join(f'{name}={EXAMPLES[name]}' for name in missing)}"
                )
            if elsewhere := misplaced(signature, tensors):
                raise WrongSignature(
                    f"{label} has {elsewhere} in another place than ({', '.join(tensors)}): put it there, since"
                    " arguments are passed by position"
                )
        first = declared.layout == "channels-first" and record.groups is Groups.TRAILING
        fixed = _fixed(operator, declared, lacking)
        return cls(operator, settings, lacking, fixed, first, lacking_keywords(signature, operator))

    def canonical_call(self, function: Callable[..., Any], bridge: Bridge) -> Callable[..., Any]:
        """A canonical call that calls the function."""
        record = OPERATORS[self.operator]

        def call(*tensors: Any, **settings: Any) -> Any:
            handed = self._handed(tensors, bridge)
            returned = function(*handed, **self._keywords(settings))
            if self.channels_first:
                bridge.written_back(handed[0], tensors[0], 1, -1)
            if record.statistics and self.fixed.training is False and not isinstance(returned, (tuple, list)):
                return (returned, *tensors[-len(record.statistics) :])  # inference leaves the statistics unchanged
            return self._back(returned, tensors[0], bridge)

        return call

    def canonical_vjp(self, function: Callable[..., Any], bridge: Bridge) -> Callable[..., Any]:
        """A canonical vjp that calls a vjp written for the function's own arguments."""
        names = OPERATORS[self.operator].differentiable

        def vjp(*tensors: Any, **settings: Any) -> Any:
            found = function(*self._handed(tensors, bridge), **self._keywords(settings))
            gradients = iter(found if isinstance(found, (tuple, list)) else (found,))
            return tuple(
                None if name in self.lacking else self._back(next(gradients, None), tensors[0], bridge)
                for name in names
            )

        return vjp

    def _handed(self, tensors: tuple[Any, ...], bridge: Bridge) -> list[Any]:
        """
        The tensors that the function takes, with those of x's shape in the function's layout.

        Raises CannotVary for a given tensor that it does not take.
        """
        names = [*OPERATORS[self.operator].arguments, "g"]
        shape = tuple(tensors[0].shape)
        handed = []
        for name, tensor in zip(names, tensors):
            if name in self.lacking:
                if tensor is not None:
                    raise CannotVary(f"it has no {name}")
                continue
            moves = self.channels_first and len(shape) > 1 and name in ("x", "g")
            handed.append(bridge.move_axis(tensor, -1, 1) if moves else tensor)
        return handed

    def _keywords(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments of a canonical call as the function takes them: parts and the mode as they are."""
        built_in = OPERATORS[self.operator].settings
        named = {self.settings[name]: value for name, value in given.items() if name in self.settings}
        return {**named, **{name: value for name, value in given.items() if name not in built_in}}

    def _back(self, value: Any, x: Any, bridge: Bridge) -> Any:
        """A result of x's shape, moved back to x's layout; any other value unchanged."""
        shape = tuple(getattr(value, "shape", ()))
        own = (*x.shape[:1], x.shape[-1], *x.shape[1:-1])
        return bridge.move_axis(value, 1, -1) if self.channels_first and len(own) > 1 and shape == own else value


#: An example value for each setting, for messages.
EXAMPLES: Mapping[str, str] = {
    "eps": "1e-5", "axes": "-1", "momentum": "0.1", "training": "no", "channel_axis": "1", "groups": "8",
}  # fmt: skip


def _fixed(operator: str, declared: Declarations, lacking: frozenset[str]) -> FixedSettings:
    """What no call of the function can vary: the declared settings, ranks without an axis 1, gamma and beta."""
    possible, always = parameter_choices(operator), declared.affine("given")
    given = tuple(one for one in possible if not lacking & set(one) and always <= set(one))
    fixed = declared.settings()
    trailing = OPERATORS[operator].groups is Groups.TRAILING
    if trailing and declared.layout == "channels-first" and not fixed.ranks:
        fixed = replace(fixed, ranks=(2, 3, 4, 5))  # x with one axis has no axis 1
    return replace(fixed, given=() if len(given) == len(possible) else given)


def _settings(function: Any, operator: str, declared: Declarations) -> dict[str, str]:
    """The settings that a function takes, each with the function's own name for it."""
    wanted = OPERATORS[operator].settings
    signature = signature_of(function)
    if signature is None:
        return {name: name for name in wanted if name not in declared.fixed}
    keyword = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = {one.name: one.name for one in signature.parameters.values() if one.kind in keyword and one.name in wanted}
    for one in signature.parameters.values():
        key = meaning(one.name)
        if one.kind in keyword and key in wanted and key not in found:
            found[key] = one.name
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in signature.parameters.values()):
        found.update({name: name for name in wanted if name not in found and name not in declared.fixed})
    return found
