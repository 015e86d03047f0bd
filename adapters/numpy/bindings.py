"""What the built-in NumPy target consists of: its seven operators, each with the derivatives that it has."""

from __future__ import annotations

from types import ModuleType

from ..binding import DERIVATIVES, Binding
from . import blocks, highway, layers, mhc, residual


def _binding(operator: str, module: ModuleType) -> Binding:
    made = {derivative: getattr(module, f"{operator}_{derivative}", None) for derivative in DERIVATIVES}
    derivatives = {derivative: function for derivative, function in made.items() if function is not None}
    return Binding(operator, f"normspec.{operator}", getattr(module, operator), derivatives)


BINDINGS: tuple[Binding, ...] = (
    _binding("layer_norm", layers),
    _binding("batch_norm", layers),
    _binding("residual", residual),
    _binding("pre_norm", blocks),
    _binding("post_norm", blocks),
    _binding("highway", highway),
    _binding("mhc", mhc),
)
