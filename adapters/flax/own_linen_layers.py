"""
Users' layers on flax.linen, applied with lent parameters.

A linen module holds no values and has no size: it is built for the shape of its input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen, traverse_util

from ..jax.own_layers import MODES, in_held_dtype, mode_arguments
from ..layers.kit import LayerTensor
from .linen_layers import BINDINGS
from .own_layers import FlaxKit, dotted


@dataclass(frozen=True)
class _Built:
    """A module, with its variables and inner modules for x of one shape."""

    module: Any
    #: For each variable, by name: its collection, its path and its shape.
    variables: Mapping[str, tuple[str, tuple[str, ...], tuple[int, ...]]]
    within: Mapping[str, Any]


class LinenKit(FlaxKit):
    """Layers that are flax.linen.Modules."""

    base = linen.Module
    builds = True
    models = False
    home = "flax.linen.normalization"
    interface = "flax.linen"
    bindings = BINDINGS

    def handed(self, dtype: str) -> Mapping[str, Any]:
        return {"dtype": jnp.dtype(dtype)}

    def maker(self, layer: Any) -> Callable[[], Any] | None:
        return lambda: layer

    def within(self, layer: Any) -> dict[str, Any]:
        return {"": layer} if isinstance(layer, linen.Module) else {"": layer.module, **layer.within}

    def tensors(self, layer: Any) -> dict[str, LayerTensor]:
        return {name: LayerTensor(shape, kind == "params") for name, (kind, _, shape) in layer.variables.items()}

    def built(self, layer: Any, shape: tuple[int | None, ...]) -> Any:
        x = jax.ShapeDtypeStruct(tuple(one or 1 for one in shape), jnp.float32)
        within: dict[str, Any] = {}

        def noted(call: Any, arguments: Any, keywords: Any, context: Any) -> Any:
            within.setdefault(dotted(context.module.path), context.module.clone(parent=None))
            return call(*arguments, **keywords)

        with linen.intercept_methods(noted):
            found = jax.eval_shape(lambda x: _initial(layer, x), x)
        variables = {}
        for collection, tree in found.items():
            for path, leaf in _flat(tree).items():
                variables[dotted(path)] = collection, path, tuple(leaf.shape)
        within.pop("", None)
        return _Built(layer, variables, within)

    def applied(
        self, layer: _Built, lent: Mapping[str, Any], x: Any, training: bool, sample: int
    ) -> tuple[Any, dict[str, Any]]:
        del sample
        variables: dict[str, dict[tuple[str, ...], Any]] = {}
        for name, (collection, path, _) in layer.variables.items():
            if name in lent:
                value = lent[name]
                variables.setdefault(collection, {})[path] = value if collection == "params" else in_held_dtype(value)
        if len(lent) < len(layer.variables):  # its other variables get their initial values
            for collection, tree in _initial(layer.module, x).items():
                variables[collection] = {**_flat(tree), **variables.get(collection, {})}
        trees = {name: traverse_util.unflatten_dict(tree) for name, tree in variables.items()}
        module = _in_mode(layer.module, training=training)
        keywords = mode_arguments(type(module).__call__, training=training)
        y, changed = module.apply(trees, x, mutable=[name for name in trees if name != "params"], **keywords)
        after = {**lent}
        for name, value in lent.items():
            collection, path, _ = layer.variables[name]
            if collection in changed:
                after[name] = _flat(changed[collection])[path].astype(value.dtype)
        return y, after


def _flat(tree: Any) -> dict[tuple[str, ...], Any]:
    """The leaves of a collection, by their paths."""
    found: Any = traverse_util.flatten_dict(dict(tree))
    return found


def _initial(module: Any, x: Any) -> Mapping[str, Any]:
    """The initial variables of a module."""
    module = _in_mode(module, training=False)
    return linen.meta.unbox(module.init(jax.random.key(0), x, **mode_arguments(type(module).__call__, training=False)))


def _in_mode(module: Any, *, training: bool) -> Any:
    """The module with its fields set to this mode, except fields that its call takes as arguments."""
    called = mode_arguments(type(module).__call__, training=training)
    own = {one.name for one in fields(module)} - set(called)
    wanted = {name: value is training for name, value in MODES.items() if name in own}
    return module.clone(**wanted) if wanted else module
