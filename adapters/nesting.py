"""Nested derivatives for frameworks whose transformations turn a function into its derivative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def nested(
    jvp: Callable[..., Any],
    vjp: Callable[..., Any],
    kind: str,
    call: Callable[..., Any],
    inputs: Sequence[Any],
    tangents: Sequence[Any],
    other: Any,
) -> list[Any | None]:
    """
    A nested derivative; see Bridge.nested.

    ``jvp(f, primals, tangents)`` returns (y, tangent of y), and ``vjp(f, *primals)`` returns (y, pull), as in JAX and
    torch.func.
    """
    given = tuple(value for value in inputs if value is not None)
    moving = tuple(tangent for value, tangent in zip(inputs, tangents) if value is not None)

    def y_of(*moved: Any) -> Any:
        rest = iter(moved)
        return call(*(None if value is None else next(rest) for value in inputs))

    def tangent(*moved: Any) -> Any:
        return jvp(y_of, moved, moving)[1]

    def gradients(*moved: Any) -> Any:
        return vjp(y_of, *moved)[1](other)

    if kind == "jvp_jvp":
        again = tuple(one for value, one in zip(inputs, other) if value is not None)
        return [jvp(tangent, given, again)[1]]
    found = iter(vjp(tangent, *given)[1](other) if kind == "vjp_jvp" else jvp(gradients, given, moving)[1])
    return [None if value is None else next(found) for value in inputs]
