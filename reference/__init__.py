"""The exact results: LayerNorm and BatchNorm with their derivatives, in double-double, on NumPy alone."""

from .batch_norm import (
    batch_norm,
    batch_norm_exact,
    batch_norm_jvp,
    batch_norm_jvp_exact,
    batch_norm_vjp,
    batch_norm_vjp_exact,
    batch_norm_vjp_vjp,
    batch_norm_vjp_vjp_exact,
)
from .double_double import DD
from .layer_norm import (
    layer_norm,
    layer_norm_exact,
    layer_norm_jvp,
    layer_norm_jvp_exact,
    layer_norm_vjp,
    layer_norm_vjp_exact,
    layer_norm_vjp_vjp,
    layer_norm_vjp_vjp_exact,
)

__all__ = [
    "DD",
    "batch_norm",
    "batch_norm_exact",
    "batch_norm_jvp",
    "batch_norm_jvp_exact",
    "batch_norm_vjp",
    "batch_norm_vjp_exact",
    "batch_norm_vjp_vjp",
    "batch_norm_vjp_vjp_exact",
    "layer_norm",
    "layer_norm_exact",
    "layer_norm_jvp",
    "layer_norm_jvp_exact",
    "layer_norm_vjp",
    "layer_norm_vjp_exact",
    "layer_norm_vjp_vjp",
    "layer_norm_vjp_vjp_exact",
]
