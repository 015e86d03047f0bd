"""The callables of the public functions: their checked results, and their own vector-Jacobian products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .arguments import checked_floats
from .scaled import Scaled

#: A callable on arrays; it may have its own method vjp(handed, cotangent).
Part = Callable[..., Any]


def part_result(role: str, part: Part, handed: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Call a part and return its result as float64, exactly.

    Raises ValueError if the part is not callable, or if its result is not a float array of this shape.
    """
    refuse_no_callable(role, part)
    return checked_floats(f"the result of {role}", part(handed), shape)


def part_vjp(role: str, part: Any, handed: np.ndarray, cotangent: np.ndarray) -> Scaled | None:
    """Return the part's own part.vjp(handed, cotangent); None where it has no such method.

    Raises ValueError as `part_result` does; the result has the shape of `handed`.
    """
    refuse_no_callable(role, part)
    if not hasattr(part, "vjp"):
        return None
    return Scaled.of(checked_floats(f"the result of {role}'s vjp", part.vjp(handed, cotangent), handed.shape))


def refuse_no_callable(role: str, part: Any) -> None:
    """Raise ValueError if a part cannot be called."""
    if not callable(part):
        raise ValueError(f"{role} is {part!r}: pass a callable")


def to_float64(value: Scaled | None) -> np.ndarray | None:
    """Return the values rounded once to float64."""
    return None if value is None else value.to_dd().hi


def sum_or_none(terms: Sequence[Scaled | None]) -> Scaled | None:
    """Return the sum of all terms; None if any term is None."""
    known = [term for term in terms if term is not None]
    if len(known) < len(terms):
        return None
    total = known[0]
    for term in known[1:]:
        total = total + term
    return total
