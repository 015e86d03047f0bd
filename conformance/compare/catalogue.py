"""All probes: importing this file imports each module of probes, which registers them."""

from __future__ import annotations

# isort: off
# Imported for their decorators, in the order in which the rows stand.
from . import epsilon, variance, gain, running, axes, accuracy, degenerate, special, repetition, derivatives  # noqa: F401

# isort: on
from .probe import PROBES, Probe


def probes_of(operator: str) -> tuple[Probe, ...]:
    """The rows about an operator, in order."""
    return tuple(found for found in PROBES.values() if operator in found.operators)
