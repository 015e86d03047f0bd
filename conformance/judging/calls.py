"""Calls of a target: in what they can end, and whether what they return has the shapes it must have."""

from __future__ import annotations

import numpy as np

from ...spec.errors import BadOutput, TargetLost, TargetRaised, Unsupported
from ..cases.case import Case
from .truth import owner_of

#: What a call of a target can end in, instead of a result.
CALL_FAILED = (TargetRaised, TargetLost, BadOutput, Unsupported)


def checked_shapes(outputs: dict[str, np.ndarray], case: Case) -> dict[str, np.ndarray]:
    """Return the outputs, or raise BadOutput if one has not the shape of the input it belongs to."""
    for name, value in outputs.items():
        owner = case.inputs[owner_of(name)]
        if owner is not None and value.shape != owner.shape:
            raise BadOutput(f"{name} has shape {value.shape} in place of {owner.shape}", "shape")
    return outputs
