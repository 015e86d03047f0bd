"""Users' layers in both interfaces of Flax: the dtype they compute in, and the conventions they follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import jax.numpy as jnp

from ...spec.errors import Unsupported
from ..binding import Binding
from ..jax.own_layers import JaxKit

#: Why y has the wider dtype if the layer has no dtype of its own.
_PROMOTED = "a layer that is made without dtype= computes and returns the widest dtype of x and its parameters"


class FlaxKit(JaxKit):
    """Layers of Flax; a layer may have a dtype that it computes in."""

    channel_axis = -1
    old_momentum = True
    #: The interface, as users write it.
    interface: str

    def axis_of(self, layer: Any) -> int:
        axis = getattr(self.within(layer)[""], "axis", self.channel_axis)
        return axis if isinstance(axis, int) else self.channel_axis

    def ready(self, layer: Any, x: Any, lent: Mapping[str, Any]) -> Any:
        dtype = self.dtype_of(layer)
        if dtype not in (None, str(x.dtype)):
            raise Unsupported(f"it computes in {dtype}")
        return layer

    def dtype_of(self, layer: Any) -> str | None:
        own = (getattr(one, "dtype", None) for one in self.within(layer).values())
        return next((str(jnp.dtype(one)) for one in own if one is not None), None)

    def inherited(self, owner: Any, operator: str) -> Binding | None:
        found = super().inherited(owner, operator)
        return found if found is None or owner.dtype is not None else _promoted(found)

    def names_of(self, kind: type, owner: Any) -> tuple[str, ...]:
        name = f"{self.interface}.{kind.__name__}"
        return (name,) if getattr(owner, "use_fast_variance", True) else (f"{name}(use_fast_variance=False)", name)


def _promoted(binding: Binding) -> Binding:
    """The binding for a layer made without dtype: it differs from the one made with x's dtype only for mixed dtypes."""
    return replace(
        binding,
        conventions={**binding.conventions, "mixed_dtypes": "promoted"},
        reasons={**binding.reasons, "mixed_dtypes": _PROMOTED},
        known_violations=tuple(one for one in binding.known_violations if one.requirement != "CM-D1"),
    )


def dotted(path: Iterable[Any]) -> str:
    """The name for a path."""
    return ".".join(map(str, path))
