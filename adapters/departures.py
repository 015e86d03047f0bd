"""How an implementation departs from the specification, as far as it is known: what its bindings declare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .binding import Binding
from .known import KnownViolation


@dataclass(frozen=True)
class Departures:
    """The conventions that an implementation follows and that are not the normative ones, and its known violations."""

    #: Each convention as KEY=VALUE, with the reason for the difference and its source.
    follows: Mapping[str, str] = field(default_factory=dict)
    known_violations: tuple[KnownViolation, ...] = ()

    def binding(self, operator: str, name: str, call: Callable[..., Any], **more: Any) -> Binding:
        """A binding that declares all this; ``more`` are other fields of Binding, or its own known violations."""
        pairs = [(convention.partition("="), reason) for convention, reason in self.follows.items()]
        return Binding(
            operator,
            name,
            call,
            conventions={key: value for (key, _, value), _ in pairs},
            reasons={key: reason for (key, _, _), reason in pairs},
            **{"known_violations": self.known_violations, **more},
        )
