"""Imports every module of checks, which registers its checks."""

from __future__ import annotations

# isort: off
# Checks are registered and run in this order: calls and parts come first.
from . import (  # noqa: F401
    purity,
    tracking,
    part_calls,
    aspects,
    blocks,
    composed_values,
    contract,
    derivatives,
    gradient_laws,
    gradients,
    highway,
    laws_exact,
    laws_groups,
    laws_moments,
    mhc,
    mixed_dtypes,
    nan_in_parameters,
    nested_blocks,
    non_finite,
    residual,
    sizes,
    statistics,
    strange_parts,
    undefined,
    values,
    views,
)

# isort: on
from .registry import CHECKS, Check, is_about


def checks_of(operator: str) -> tuple[Check, ...]:
    """Return an operator's checks, in the order of their registration."""
    return tuple(check for requirement, check in CHECKS.items() if is_about(requirement, operator))
