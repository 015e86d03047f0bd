"""Find out what the layers of a target cannot vary, from a first layer and from trial calls."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ...spec.errors import NormspecError, WrongSignature, one_line
from ...spec.operators import OPERATORS, Groups
from ..fixed import parameter_choices
from .canonical_calls import Layers, MadeLayer
from .constructor import attribute
from .dimensions import find_ranks
from .numbers import eps_of, momentum_of
from .trial import DIVISIBLE_SIZE, given_of, numbers_of, ordinary_values, rank_of, shape_of, size_of, trial_results

#: The most values a group may have: exact values of a case take about half a kilobyte for each.
_LARGEST = 1 << 18

#: Argument names for a size that may have several axes.
_SHAPES = ("normalized_shape", "norm_shape", "shape")


def find_fixed_settings(layers: Layers) -> MadeLayer:
    """Find out what no layer can vary, and return a first layer. Raises WrongSignature if none can be called."""
    record = OPERATORS[layers.operator]
    layers.declared = layers.declared.about(layers.operator, layers.label)
    layers.fixed = layers.declared.settings()
    first = _first(layers)
    missing = [name for name in record.statistics if name not in first.roles]
    if missing:
        raise WrongSignature(
            f"{layers.label} has no {' and no '.join(missing)}: if they have other names, say --parameters"
            f" {missing[0]}=NAME; a layer that keeps no statistics is no {layers.operator}"
        )
    _fix(layers, given=_choices(layers, first))
    if record.groups is Groups.TRAILING:
        _fix(layers, **_extents(layers, first))
    else:
        _fix(layers, channel_axis=_channel_axis(layers, first))
        _fix(layers, **_channels(layers, first))
    ranks = find_ranks(layers)  # where the channels lie, too
    if not layers.fixed.ranks:
        _fix(layers, **{"native" if record.groups is Groups.TRAILING else "ranks": ranks})
    if record.has_modes and layers.fixed.training is None and _is_frozen(layers, first):
        _fix(layers, training=False)
    for name, find in (("eps", eps_of), ("momentum", momentum_of)):
        frozen = name == "momentum" and layers.fixed.training is False
        if name in record.settings and getattr(layers.fixed, name) is None and not layers.takes(name) and not frozen:
            _fix(layers, **{name: find(layers)})
    return _made(layers)


def _fix(layers: Layers, **found: Any) -> None:
    layers.fixed = replace(layers.fixed, **found)


def _made(layers: Layers) -> MadeLayer:
    return layers.made(size_of(layers), given_of(layers), **numbers_of(layers))


def _first(layers: Layers) -> MadeLayer:
    """A first layer. If the ordinary size fails, one that most numbers of groups divide is tried, then a tuple."""
    failed: Exception | None = None
    ordinary = size_of(layers)
    attempts = [(ordinary, False)]
    if layers.takes("size"):
        divisible = OPERATORS[layers.operator].groups is Groups.SAMPLE_CHANNELS and layers.fixed.channels is None
        attempts += [((DIVISIBLE_SIZE,), False)] if divisible else []
        attempts += [(ordinary, True)]
    for size, as_tuple in attempts:
        layers.size_as_tuple = as_tuple
        try:
            return layers.made(size, given_of(layers), **numbers_of(layers))
        except NormspecError:
            raise
        except Exception as error:
            failed = failed or error
    assert failed is not None
    if layers.constructor is None:
        raise WrongSignature(f"{layers.label} cannot be copied and given other parameters: {one_line(failed)}")
    names, values = layers.constructor.arguments, {"size": next(iter(ordinary)), **numbers_of(layers)}
    written = ", ".join(f"{names[key]}={value}" for key, value in values.items() if key in names)
    raise WrongSignature(
        f"{layers.label}({written}) raises {one_line(failed)}: name a factory, such as"
        " `def make(shape, eps): return Layer(...)`, or an instance"
    )


def _choices(layers: Layers, first: MadeLayer) -> tuple[tuple[str, ...], ...]:
    """The combinations of gamma and beta that layers can have; empty if all are possible."""
    every = parameter_choices(layers.operator)

    def has(given: tuple[str, ...]) -> bool:
        try:
            return layers.made(size_of(layers), given, **numbers_of(layers)).given == given
        except Exception:
            return False

    found = [first.given] if layers.constructor is None else [one for one in every if has(one)] or [first.given]
    return () if len(found) == len(every) else tuple(found)


# Extents and channels -----------------------------------------------------------------------------------------------


def _extents(layers: Layers, first: MadeLayer) -> dict[str, Any]:
    """The normalised extents, if they are fixed, and how many axes they have."""
    if layers.fixed.shape:
        return {}
    if layers.takes("size"):
        return {} if layers.fixed.axes is None and _takes_two_axes(layers) else {"axes": layers.fixed.axes or 1}
    shape = named = _attribute_shape(layers, first)
    if first.given:
        own = first.extent(first.given[0])
        shape = named if math.prod(named) == math.prod(own) else own  # of (8, 1) the parameter alone says (8,)
    if math.prod(shape) > _LARGEST:
        raise WrongSignature(
            f"{layers.label} normalises {math.prod(shape):,} values at once, and {_LARGEST:,} can be judged exactly:"
            " name a class or a factory, or make a smaller one"
        )
    return {"shape": shape, "axes": len(shape) if shape else layers.fixed.axes or 1}


def _attribute_shape(layers: Layers, first: MadeLayer) -> tuple[int, ...]:
    size = attribute(list(layers.kit.within(first.layer).values()), "size")
    if isinstance(size, int):
        return (size,)
    return tuple(size) if isinstance(size, (tuple, list)) and all(isinstance(one, int) for one in size) else ()


def _takes_two_axes(layers: Layers) -> bool:
    """Whether a class takes a size of several axes, and its layers take x of such a shape."""
    assert layers.constructor is not None
    if layers.channels_first or layers.constructor.arguments.get("size", "").lower() not in _SHAPES:
        return False
    shape = (4, 2, 3)
    try:
        return trial_results(layers, np.ones(shape), size=shape[1:])[0].shape == shape
    except Exception:
        return False


def _channel_axis(layers: Layers, first: MadeLayer) -> int:
    if layers.fixed.channel_axis is not None:
        return layers.fixed.channel_axis
    declared = layers.declared.channel_axis
    return layers.kit.axis_of(first.layer) if declared is None else declared


def _channels(layers: Layers, first: MadeLayer) -> dict[str, Any]:
    """The number of channels and the number of groups, if they are fixed."""
    found: dict[str, Any] = {}
    within = list(layers.kit.within(first.layer).values())
    if not layers.takes("size") and layers.fixed.channels is None:
        roles = [name for name in OPERATORS[layers.operator].parameters if name in first.roles]
        size = math.prod(first.tensors[first.roles[roles[0]]].shape) if roles else attribute(within, "size")
        found["channels"] = size if isinstance(size, int) else None
    settings = OPERATORS[layers.operator].settings
    if "groups" in settings and not layers.takes("groups") and layers.fixed.groups is None:
        groups = attribute(within, "groups")
        if not isinstance(groups, int) or groups < 1:
            raise WrongSignature(f"{layers.label} does not say how many groups it has: say --fixed groups=8")
        found["groups"] = groups
    return found


def _is_frozen(layers: Layers, first: MadeLayer) -> bool:
    """Whether a layer trains nothing, and computes the same in training as in inference."""
    if not first.given or any(first.tensors[first.roles[name]].trained for name in first.given):
        return False
    x = ordinary_values(shape_of(layers, rank_of(layers)))
    try:
        training, inference = (trial_results(layers, x, training=mode) for mode in (True, False))
    except Exception:
        return False
    return all(np.array_equal(one, other) for one, other in zip(training, inference))
