"""From a layer, a class of layers or a factory to a binding."""

from __future__ import annotations

import contextlib
import inspect
from dataclasses import replace
from typing import Any

from ...spec.errors import WrongSignature, one_line
from ..binding import Binding
from ..declared import Declared
from .called import Layers, Made
from .constructor import Constructor
from .kit import Kit
from .names import operator_named
from .study import studied
from .trial import easy, rank_of, shape_of, tried


def operator_of(kit: Kit, value: Any, names: tuple[str, ...]) -> str | None:
    """The operator of a layer or class, by its class, its bases, these names, or what it holds; None for none."""
    kind = value if inspect.isclass(value) else type(value)
    found = operator_named([*(base.__name__ for base in kind.__mro__), *names])
    if found is None and kit.is_layer(value):
        found = operator_named(type(one).__name__ for one in kit.within(value).values())
    return found


def binding_of(
    kit: Kit, value: Any, operator: str, label: str, declared: Declared, arguments: tuple[Any, ...] | None = None
) -> Binding:
    """
    The binding of a layer, of a class of layers or of a factory.

    It follows the conventions of the framework's own layer that it computes with, and is known to violate what that
    does. ``arguments``: what a class is made with where its constructor does not tell what it takes. Raises
    WrongSignature.
    """
    if kit.is_layer(value):
        make, instance = kit.maker(value), value
        constructor = Constructor(make, {}) if make is not None else None
    else:
        constructor, instance = _constructor(kit, value, label, arguments), None
    if constructor is None and instance is None:
        instance = _instance(value, arguments or (), label)
    layers = Layers(kit, operator, label, declared, constructor, instance)
    sample = studied(layers)
    inherited = _inherited(kit, sample, operator)
    if inherited is None:
        x = easy(shape_of(layers, rank_of(layers)))
        with contextlib.suppress(Exception):  # it has no call as plain as this
            inherited = kit.called_by(lambda: tried(layers, x), operator)
    binding = Binding(operator, label, layers, has_modes=True, fixed=layers.fixed)
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


def _constructor(kit: Kit, value: Any, label: str, arguments: tuple[Any, ...] | None) -> Constructor | None:
    """What makes layers of any size; None where nothing but these arguments makes one."""
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


def _inherited(kit: Kit, sample: Made, operator: str) -> Binding | None:
    """The binding of the framework's own layer that a layer is, or has within it; one with its own call is another."""
    within = kit.within(sample.layer)
    owner = next(iter(sample.roles.values()), "").rpartition(".")[0]  # what holds the parameters
    found = (kit.inherited(one, operator) for one in (within.get(owner, sample.layer), *within.values()))
    return next((one for one in found if one is not None), None)
