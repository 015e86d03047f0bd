"""Every operator on NumPy arrays, plainly and soundly: the built-in target, whose steps faults override."""

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
    An operator's canonical callable, or its derivative: "vjp", "jvp" and so on.

    Each call has an instance of its own: nothing is kept from one to the next.
    """
    made = IMPLEMENTATIONS[operator]
    return lambda *arrays, **settings: getattr(made().implementation(), stage)(*arrays, **settings)
