"""Every operator on NumPy arrays, simple and sound: the built-in target, and the base whose steps faults override."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .batch_norm import BatchNorm
from .group_norm import GroupNorm, InstanceNorm
from .highway import Highway
from .layer_norm import LayerNorm
from .mhc import Mhc
from .post_norm import PostNorm
from .pre_norm import PreNorm
from .residual import Residual
from .rms_norm import RmsNorm
from .staged import Staged

#: Each operator's implementation, by its name.
IMPLEMENTATIONS: dict[str, type[Staged]] = {
    one.operator: one
    for one in (LayerNorm, BatchNorm, RmsNorm, GroupNorm, InstanceNorm, Residual, PreNorm, PostNorm, Highway, Mhc)
}


def function(operator: str, stage: str = "call") -> Callable[..., Any]:
    """
    An operator's canonical callable, or one of its derivatives: "vjp", "jvp" and so on.

    Each call makes a new instance, so nothing is kept between calls.
    """
    made = IMPLEMENTATIONS[operator]
    return lambda *arrays, **settings: getattr(made().implementation(), stage)(*arrays, **settings)
