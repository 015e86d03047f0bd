"""Faults: named wrong semantics, each with the requirement that must kill it.

The selftest runs the whole suite against them, and diagnosis compares a failing target with them. Each is a
small override of the sound base in `normspec.conformance.sound`, one theme a module.
"""

from __future__ import annotations

from ...adapters.numpy.operators.implementation import Implementation
from . import (
    affine,
    arguments,
    axes,
    channel_groups,
    composed,
    dtypes,
    eps,
    gradients,
    inference,
    layouts,
    mean_square,
    middle_sizes,
    mixed_dtypes,
    mutation,
    neighbours,
    non_finite,
    running_statistics,
    second_order,
    sizes,
    state,
    tracking,
    undefined,
    variance,
)
from .registry import Fault, registered

#: The modules whose import enters the faults.
THEMES = (
    eps,
    variance,
    mean_square,
    affine,
    axes,
    channel_groups,
    neighbours,
    gradients,
    second_order,
    running_statistics,
    inference,
    state,
    tracking,
    mutation,
    layouts,
    sizes,
    middle_sizes,
    non_finite,
    undefined,
    dtypes,
    mixed_dtypes,
    arguments,
    composed,
)

#: Every fault of the house, layer_norm first; `registered` has those of operators from elsewhere too.
FAULTS: tuple[Fault, ...] = registered()

__all__ = ["FAULTS", "Fault", "Implementation", "registered"]
