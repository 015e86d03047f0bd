"""The bindings of the built-in NumPy target: every operator with its derivatives."""

from __future__ import annotations

from ..binding import DERIVATIVES, Binding
from .operators import IMPLEMENTATIONS, function


def _binding(operator: str) -> Binding:
    derivatives = {name: function(operator, name) for name in DERIVATIVES if hasattr(IMPLEMENTATIONS[operator], name)}
    return Binding(operator, f"normspec.{operator}", function(operator), derivatives)


BINDINGS: tuple[Binding, ...] = tuple(_binding(operator) for operator in IMPLEMENTATIONS)
