"""Targets that return the exact result, rounded once: a check that accuses one of them is itself wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from normspec import reference
from normspec.adapters.binding import DERIVATIVES, Binding
from normspec.adapters.numpy import BRIDGE
from normspec.adapters.target import Target
from normspec.reference.double_double import DD
from normspec.reference.highway import highway, highway_vjp
from normspec.reference.mhc import mhc, mhc_vjp
from normspec.reference.post_norm import post_norm, post_norm_vjp
from normspec.reference.pre_norm import pre_norm, pre_norm_vjp
from normspec.reference.residual import residual, residual_vjp
from normspec.spec.operators import OPERATORS


def nearest(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its double-doubles rounded to float64."""

    def rounded(*arrays: Any, **settings: Any) -> Any:
        with np.errstate(all="ignore"):
            found = function(*arrays, **settings)
        if isinstance(found, DD):
            return found.hi
        return tuple(None if one is None else one.hi for one in found)

    return rounded


def gradients(function: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """The function that returns these gradients of a composed operator; a single one is returned bare."""

    def taken(*arrays: Any, **settings: Any) -> Any:
        found = function(*arrays, **settings)
        several = tuple(getattr(found, name) for name in names)
        return several if len(several) > 1 else several[0]

    return taken


#: Forward, gradients, and tangents and second derivatives where the reference has separate functions for them.
_CALLABLES: dict[str, tuple[Callable[..., Any], ...]] = {
    **{
        name: tuple(nearest(getattr(reference, f"{name}{stage}_exact")) for stage in ("", "_vjp", "_jvp", "_vjp_vjp"))
        for name, one in OPERATORS.items()
        if not one.composed
    },
    "residual": (residual, gradients(residual_vjp, "dx")),
    "pre_norm": (pre_norm, gradients(pre_norm_vjp, "dx", "dgamma", "dbeta")),
    "post_norm": (post_norm, gradients(post_norm_vjp, "dx", "dgamma", "dbeta")),
    "highway": (highway, gradients(highway_vjp, "dx")),
    "mhc": (mhc, gradients(mhc_vjp, "dx", "dlogits")),
}


def correctly_rounded(operator: str) -> Target:
    """The exact operator as a target, for float64."""
    call, *derivatives = _CALLABLES[operator]
    binding = Binding(operator, "rounded", call, dict(zip(DERIVATIVES, derivatives, strict=False)))
    return Target("rounded", "numpy", np.__version__, BRIDGE, (binding,))
