"""An implementation as a target, so that faults and sound variants run through the same engine as everything else."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...adapters.binding import DERIVATIVES, Binding
from ...adapters.numpy import BRIDGE
from ...adapters.numpy.operators.implementation import Implementation
from ...adapters.target import Target


def implementation_target(
    name: str,
    operator: str,
    implementation: Implementation,
    conventions: Mapping[str, str] | None = None,
) -> Target:
    """Return a target with one binding, on NumPy arrays of all four dtypes."""
    binding = Binding(
        operator=operator,
        name=name,
        call=implementation.call,
        derivatives={name: function for name in DERIVATIVES if (function := getattr(implementation, name)) is not None},
        conventions=dict(conventions or {}),
        prepare=implementation.prepare,
    )
    return Target(name, "numpy", np.__version__, BRIDGE, (binding,))
