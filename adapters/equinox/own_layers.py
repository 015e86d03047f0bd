"""
Users' layers on Equinox: copies that hold the lent values, mapped over the batch axes.

A layer of Equinox takes one sample, and its documentation uses jax.vmap for batches. A layer with state is made with
`equinox.nn.make_with_state`, or given as the pair of layer and state that this function returns.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import equinox as eqx
import jax

from ...spec.errors import WrongSignature
from ..jax.own_layers import JaxKit, mode_arguments
from ..layers.kit import LayerTensor
from .layers import BINDINGS

#: The default name of the batch axis.
_BATCH = "batch"

#: The attributes of Equinox's BatchNorm for state entries that hold a pair: the two running statistics.
_PAIRS = ("batch_state_index", "ema_state_index")
_OF_A_PAIR = {f"{pair}.{place}": f"{pair}.{name}" for pair in _PAIRS for place, name in enumerate(("mean", "var"))}


class EquinoxKit(JaxKit):
    """Layers that are equinox.Modules, or pairs of a module and its state."""

    base = eqx.Module
    home = "equinox.nn."
    bindings = BINDINGS
    channel_axis = 1
    old_momentum = True
    maps = True

    def is_layer(self, value: Any) -> bool:
        return isinstance(_without_state(value), eqx.Module)

    def handed(self, dtype: str) -> Mapping[str, Any]:
        return {"key": jax.random.key(0), "axis_name": _BATCH, "dtype": jax.numpy.dtype(dtype)}

    def within(self, layer: Any) -> dict[str, Any]:
        return dict(_modules(_without_state(layer), ""))

    def tensors(self, layer: Any) -> dict[str, LayerTensor]:
        module, state = _with_state(layer)
        kept = {name: LayerTensor(tuple(one.shape), False) for name, one in _kept(module, state).items()}
        return {**{name: LayerTensor(tuple(one.shape), True) for name, one in _trained(module).items()}, **kept}

    def applied(
        self, layer: Any, lent: Mapping[str, Any], x: Any, training: bool, sample: int
    ) -> tuple[Any, dict[str, Any]]:
        module, state = _with_state(layer)
        module = eqx.nn.inference_mode(_lent(module, lent), value=not training)
        before = None if state is None else _with(module, state, lent)
        keywords = mode_arguments(type(module).__call__, training=training)
        takes_state = before is not None and "state" in inspect.signature(type(module).__call__).parameters

        def one(x: Any) -> Any:
            return module(x, before, **keywords) if takes_state else (module(x, **keywords), before)

        axes = [one.axis_name for one in self.within(layer).values() if getattr(one, "axis_name", None) is not None]
        for _ in range(x.ndim - sample):
            one = jax.vmap(one, axis_name=axes[0] if axes else _BATCH, out_axes=(0, None))
        y, after = one(x)
        kept = {} if after is None else _kept(module, after)
        return y, {name: kept.get(name, value).astype(value.dtype) for name, value in lent.items()}

    def names_of(self, kind: type, owner: Any) -> tuple[str, ...]:
        mode = f'(mode="{owner.mode}")' if kind is eqx.nn.BatchNorm else ""
        return (f"equinox.nn.{kind.__name__}{mode}",)


def _without_state(value: Any) -> Any:
    """The layer in a pair of layer and state; any other value unchanged."""
    return value[0] if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], eqx.nn.State) else value


def _with_state(layer: Any) -> tuple[Any, Any]:
    """A layer and its initial state; None if it has no state."""
    module = _without_state(layer)
    if module is not layer:
        return module, layer[1]
    try:
        return module, eqx.nn.State(module) if _indices(module) else None
    except ValueError as error:
        raise WrongSignature(
            "its state is not with it: name the pair of layer and state that equinox.nn.make_with_state returned"
        ) from error


def _modules(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The modules in a value, including the value itself, with their paths."""
    if _is_index(value):
        return
    if isinstance(value, eqx.Module):
        yield name, value
    parts: Any = value if isinstance(value, Mapping) else {}
    parts = vars(value) if isinstance(value, eqx.Module) else parts
    parts = dict(enumerate(value)) if isinstance(value, (list, tuple)) else parts
    for key, part in parts.items():
        yield from _modules(part, f"{name}.{key}" if name else str(key))


def _is_index(value: Any) -> bool:
    return isinstance(value, eqx.nn.StateIndex)


def _leaves(tree: Any) -> list[tuple[str, Any]]:
    """The leaves of a tree, with their names; a StateIndex is a leaf."""
    found, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=_is_index)
    return [(".".join(_part(one) for one in path), leaf) for path, leaf in found]


def _part(key: Any) -> str:
    return str(next(getattr(key, kind) for kind in ("name", "idx", "key") if hasattr(key, kind)))


def _indices(module: Any) -> dict[str, Any]:
    """A module's StateIndex leaves, by name."""
    return {name: leaf for name, leaf in _leaves(module) if _is_index(leaf)}


def _trained(module: Any) -> dict[str, Any]:
    """A module's floating point arrays, by name: Equinox trains them all."""
    return {name: leaf for name, leaf in _leaves(module) if eqx.is_inexact_array(leaf)}


def _kept(module: Any, state: Any) -> dict[str, Any]:
    """The arrays of a state, named after their StateIndex in the module."""
    found: dict[str, Any] = {}
    if state is None:
        return found
    for name, index in _indices(module).items():
        for part, leaf in _leaves(state.get(index)):
            whole = f"{name}.{part}" if part else name
            found[_named(whole)] = leaf
    return found


def _named(name: str) -> str:
    """The name of a state's array: for a pair of Equinox's BatchNorm, the statistic's name replaces the number."""
    short = next((one for one in _OF_A_PAIR if name == one or name.endswith(f".{one}")), None)
    return name if short is None else name[: len(name) - len(short)] + _OF_A_PAIR[short]


def _lent(tree: Any, lent: Mapping[str, Any], within: str = "") -> Any:
    """A copy of a tree with the lent values; ``within`` is the prefix of its leaves' names."""
    _, definition = jax.tree_util.tree_flatten(tree, is_leaf=_is_index)
    leaves = [
        leaf if _is_index(leaf) else lent.get(_named(f"{within}{name}".rstrip(".")), leaf)
        for name, leaf in _leaves(tree)
    ]
    return jax.tree_util.tree_unflatten(definition, leaves)


def _with(module: Any, state: Any, lent: Mapping[str, Any]) -> Any:
    """
    A copy of a state with the lent values.

    State.set would invalidate the state it is called on, and refuse values of another dtype.
    """
    anew = {index.marker: _lent(state.get(index), lent, f"{name}.") for name, index in _indices(module).items()}
    values, markers = state.tree_flatten()
    return type(state).tree_unflatten(markers, [anew.get(key, value) for key, value in zip(markers, values)])
