"""Faults of the composed operators, one theme a module; importing this enters them."""

from __future__ import annotations

from . import (
    block_norms,
    contract,
    frozen,
    highway_gates,
    highway_gradients,
    highway_mixing,
    mhc_fusion,
    mhc_gradients,
    mhc_weights,
    mixed_dtypes,
    nested,
    non_finite,
    part_calls,
    part_dtypes,
    part_memory,
    post_norm_steps,
    pre_norm_steps,
    purity,
    residual_gradients,
    residual_values,
    two_paths,
    wide,
)

#: The modules whose import enters the faults.
THEMES = (
    residual_values,
    residual_gradients,
    two_paths,
    frozen,
    pre_norm_steps,
    post_norm_steps,
    block_norms,
    highway_mixing,
    highway_gates,
    highway_gradients,
    mhc_fusion,
    mhc_weights,
    mhc_gradients,
    nested,
    part_calls,
    part_dtypes,
    part_memory,
    purity,
    contract,
    mixed_dtypes,
    non_finite,
    wide,
)
