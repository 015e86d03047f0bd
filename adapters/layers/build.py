"""Build a binding from a layer, a layer class or a factory."""

from __future__ import annotations

import contextlib
import inspect
from dataclasses import replace
from typing import Any

from ...spec.errors import WrongSignature, one_line
from ..binding import Binding
from ..declarations import Declarations
from .canonical_calls import Layers, MadeLayer
from .constructor import Constructor
from .fixed_settings import find_fixed_settings
from .kit import Kit
from .names import operator_named
from .trial import ordinary_values, rank_of, shape_of, trial_results


def operator_of(kit: Kit, value: Any, names: tuple[str, ...]) -> str | None:
    """The operator of a layer or class, from its class, its bases, these names, or its inner layers; else None."""
    kind = value if inspect.isclass(value) else type(value)
    found = operator_named([*(base.__name__ for base in kind.__mro__), *names])
    if found is None and kit.is_layer(value):
        found = operator_named(type(one).__name__ for one in kit.within(value).values())
    return found


def binding_of(
    kit: Kit, value: Any, operator: str, label: str, declared: Declarations, arguments: tuple[Any, ...] | None = None
) -> Binding:
    """
    The binding of a layer, a layer class or a factory.

    If it computes with a layer of the framework, it has that layer's conventions and known violations. ``arguments``
    are the constructor's arguments, for a class whose constructor does not say what it takes. Raises WrongSignature.
    """
    if kit.is_layer(value):
        make, instance = kit.maker(value), value
        constructor = Constructor(make, {}) if make is not None else None
    else:
        constructor, instance = _constructor(kit, value, label, arguments), None
    if constructor is None and instance is None:
        instance = _instance(value, arguments or (), label)
    layers = Layers(kit, operator, label, declared, constructor, instance)
    sample = find_fixed_settings(layers)
    inherited = _inherited(kit, sample, operator)
    if inherited is None:
        x = ordinary_values(shape_of(layers, rank_of(layers)))
        with contextlib.suppress(Exception):  # the layer does not take this simple call
            inherited = kit.called_by(lambda: trial_results(layers, x), operator)
    binding = Binding(
        operator,
        label,
        layers,
        has_modes=True,
        fixed=layers.fixed,
        names_parameters=True,
        defaults=layers if _has_defaults(constructor) else None,
    )
    if inherited is None:
        return binding
    return replace(
        binding,
        conventions=inherited.conventions,
        conventions_on=inherited.conventions_on,
        reasons=inherited.reasons,
        known_violations=inherited.known_violations,
        accepts=inherited.accepts,
    )


def _has_defaults(constructor: Constructor | None) -> bool:
    """Whether layers can be made without eps and momentum: a call without them then makes one with its own."""
    return (
        constructor is not None and constructor.sets("eps") and all(map(constructor.has_default, ("eps", "momentum")))
    )


def _constructor(kit: Kit, value: Any, label: str, arguments: tuple[Any, ...] | None) -> Constructor | None:
    """The constructor for layers of any size; None if a layer can be made only with exactly these ``arguments``."""
    try:
        found = Constructor.of(value, label, kit.handed("float32"))
    except WrongSignature:
        if arguments is None:
            raise
        return None
    return None if arguments and not found.sets("size") else found


def _instance(value: Any, arguments: tuple[Any, ...], label: str) -> Any:
    try:
        return value(*arguments)
    except Exception as error:
        raise WrongSignature(f"{label} raises {one_line(error)} when it is made with {arguments}") from error


def _inherited(kit: Kit, sample: MadeLayer, operator: str) -> Binding | None:
    """The binding of the framework's layer that this layer is or contains; a layer with its own call is not one."""
    within = kit.within(sample.layer)
    owner = next(iter(sample.roles.values()), "").rpartition(".")[0]  # the inner layer that holds the parameters
    found = (kit.inherited(one, operator) for one in (within.get(owner, sample.layer), *within.values()))
    return next((one for one in found if one is not None), None)
