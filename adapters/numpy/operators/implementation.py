"""The canonical callables on NumPy arrays of the built-in target, a fault or a sound variant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Implementation:
    """One implementation of one operator, with hand-written derivatives."""

    #: The forward pass, in the operator's canonical signature.
    call: Callable[..., Any]
    #: The vector-Jacobian product: cotangent in, gradients of x, gamma and beta out.
    vjp: Callable[..., Any]
    #: The Jacobian-vector product: tangents in, tangent of y out.
    jvp: Callable[..., Any]
    #: The vector-Jacobian product of the vector-Jacobian product.
    vjp_vjp: Callable[..., Any]
    #: Forward mode over reverse, reverse over forward, forward over forward; None if not written.
    jvp_vjp: Callable[..., Any] | None = None
    vjp_jvp: Callable[..., Any] | None = None
    jvp_jvp: Callable[..., Any] | None = None
    #: Called as prepare(mode=..., wrt=...) before a call, if the implementation depends on the module's mode
    #: ("training" or "inference") or on which of "x", "gamma", "beta" need a gradient; else None.
    prepare: Callable[..., None] | None = None
