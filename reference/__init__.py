"""
The exact results in double-double, on NumPy alone: every operator with its gradients.

LayerNorm and BatchNorm have forward mode and second order beside them. Those of the composed operators need parts that
are known exactly: ``composed.Composed`` has them.
"""

from .batch_norm import (
    batch_norm,
    batch_norm_exact,
    batch_norm_jvp,
    batch_norm_jvp_exact,
    batch_norm_jvp_jvp,
    batch_norm_jvp_jvp_exact,
    batch_norm_vjp,
    batch_norm_vjp_exact,
    batch_norm_vjp_vjp,
    batch_norm_vjp_vjp_exact,
)
from .double_double import DD
from .highway import HighwayGradients, highway, highway_vjp
from .layer_norm import (
    layer_norm,
    layer_norm_exact,
    layer_norm_jvp,
    layer_norm_jvp_exact,
    layer_norm_jvp_jvp,
    layer_norm_jvp_jvp_exact,
    layer_norm_vjp,
    layer_norm_vjp_exact,
    layer_norm_vjp_vjp,
    layer_norm_vjp_vjp_exact,
)
from .mhc import MhcGradients, mhc, mhc_vjp
from .post_norm import PostNormGradients, post_norm, post_norm_vjp
from .pre_norm import PreNormGradients, pre_norm, pre_norm_vjp
from .residual import ResidualGradients, residual, residual_vjp

__all__ = [
    "DD",
    "HighwayGradients",
    "MhcGradients",
    "PostNormGradients",
    "PreNormGradients",
    "ResidualGradients",
    "batch_norm",
    "batch_norm_exact",
    "batch_norm_jvp",
    "batch_norm_jvp_exact",
    "batch_norm_jvp_jvp",
    "batch_norm_jvp_jvp_exact",
    "batch_norm_vjp",
    "batch_norm_vjp_exact",
    "batch_norm_vjp_vjp",
    "batch_norm_vjp_vjp_exact",
    "highway",
    "highway_vjp",
    "layer_norm",
    "layer_norm_exact",
    "layer_norm_jvp",
    "layer_norm_jvp_exact",
    "layer_norm_jvp_jvp",
    "layer_norm_jvp_jvp_exact",
    "layer_norm_vjp",
    "layer_norm_vjp_exact",
    "layer_norm_vjp_vjp",
    "layer_norm_vjp_vjp_exact",
    "mhc",
    "mhc_vjp",
    "post_norm",
    "post_norm_vjp",
    "pre_norm",
    "pre_norm_vjp",
    "residual",
    "residual_vjp",
]
