"""Checks: one for each requirement and operator, registered by the requirement's id."""

from __future__ import annotations


def load() -> None:
    """Import every module of checks, so that they register themselves."""
    from . import (  # noqa: F401  (imported for their registrations, in the order of the pages)
        aspects,
        blocks,
        composed_derivatives,
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
        non_finite,
        part_calls,
        purity,
        residual,
        sizes,
        statistics,
        strange_parts,
        undefined,
        values,
        views,
    )
