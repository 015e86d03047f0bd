"""Checks: one for each requirement and operator, registered by the requirement's id."""

from __future__ import annotations


def load() -> None:
    """Import every module of checks, so that they register themselves."""
    from . import (  # noqa: F401  (imported for their registrations, in the order of the pages)
        contract,
        derivatives,
        gradient_laws,
        gradients,
        laws_exact,
        laws_groups,
        laws_moments,
        non_finite,
        purity,
        sizes,
        statistics,
        values,
        views,
    )
