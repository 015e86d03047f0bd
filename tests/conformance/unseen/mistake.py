"""A mistake: a function by somebody else, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from normspec.adapters.target import Target

from ..runs import function


@attrs.frozen
class Mistake:
    """A function with one mistake."""

    name: str
    operator: str
    #: What its author did, for readers of its description.
    what: str
    #: A new function each time: some keep a state.
    build: Callable[[], Callable[..., Any]]
    derivatives: Mapping[str, Callable[..., Any]] = attrs.field(factory=dict)

    def target(self) -> Target:
        """The function as a target."""
        return function(self.operator, self.build(), **self.derivatives)
