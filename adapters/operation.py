"""The operator as a target has it, for a part that is the operator itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..spec.itself import FACTOR, inside
from ..spec.operators import Operator
from ..spec.parts import Part


@dataclass(frozen=True)
class Operation:
    """What a part of kind "itself" calls."""

    record: Operator
    #: The call of the target, in the mode of the call that the part is handed to.
    call: Callable[..., Any]
    #: The hand-written vjp, if there is one.
    vjp: Callable[..., Any] | None = None

    def arguments(
        self, part: Part, leaves: Mapping[str, Any], inner: Sequence[Callable[..., Any]], x: Any
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of the inner call; ``leaves`` by name, ``inner`` the parts inside, as callables."""
        within, built = inside(self.record, part), iter(inner)
        given: dict[str, Any] = {"x": FACTOR * x, **{name: leaves[leaf] for name, leaf in within.parameters.items()}}
        for role, one in within.parts.items():
            given[role] = [next(built) for _ in one] if isinstance(one, tuple) else next(built)
        return [given[name] for name in self.record.arguments], dict(within.settings)
