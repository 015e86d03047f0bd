"""What the built-in NumPy target consists of: every operator, each with the derivatives that it has."""

from __future__ import annotations

from ..binding import DERIVATIVES, Binding
from .operators import IMPLEMENTATIONS, function


def _binding(operator: str) -> Binding:
    derivatives = {name: function(operator, name) for name in DERIVATIVES if hasattr(IMPLEMENTATIONS[operator], name)}
    return Binding(operator, f"normspec.{operator}", function(operator), derivatives)


BINDINGS: tuple[Binding, ...] = tuple(_binding(operator) for operator in IMPLEMENTATIONS)
