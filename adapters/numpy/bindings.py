"""What the built-in NumPy target consists of: its seven operators, each with all its derivatives."""

from __future__ import annotations

from types import ModuleType

from ..binding import DERIVATIVES, Binding
from . import blocks, highway, layers, mhc, residual


def _binding(operator: str, module: ModuleType) -> Binding:
    derivatives = {derivative: getattr(module, f"{operator}_{derivative}") for derivative in DERIVATIVES}
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
