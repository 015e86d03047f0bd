"""Checks of the shapes that a target's calls return."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...spec.errors import BadOutput
from ..cases.case import Case
from .truth import owner_of


def checked_shapes(outputs: dict[str, np.ndarray], case: Case) -> dict[str, np.ndarray]:
    """Return the outputs. Raises BadOutput if one does not have the shape of the input that it belongs to."""
    for name, value in outputs.items():
        owner = case.inputs[owner_of(name)]
        if owner is not None and value.shape != owner.shape:
            raise BadOutput(f"{name} has shape {value.shape} in place of {owner.shape}", "shape")
    return outputs


def checked_derivatives(found: Mapping[str, np.ndarray | None], case: Case, words: str) -> dict[str, np.ndarray | None]:
    """
    Return derivatives in one argument each, or in y or g. Raises BadOutput if one does not have the shape of its own.

    ``words`` name a derivative, with a place for the argument.
    """
    for name, value in found.items():
        owner = case.x if name in ("y", "g") else case.inputs[name]
        if value is not None and owner is not None and value.shape != owner.shape:
            raise BadOutput(f"the {words.format(name)} has shape {value.shape} in place of {owner.shape}", "shape")
    return dict(found)
