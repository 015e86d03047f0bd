"""The positional and keyword arguments of one call, with each part built from its leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..spec.errors import TakesNoPart
from ..spec.operators import OPERATORS
from ..spec.parts import Part, Parts
from .binding import Binding
from .bridge import Bridge
from .build_parts import build_part
from .recording import RecordedPart, Recorder


@dataclass(frozen=True)
class CallArguments:
    """Everything about a call of a binding except its tensors."""

    binding: Binding
    bridge: Bridge
    #: The keyword arguments, translated to the binding's conventions.
    keywords: Mapping[str, Any]
    #: The parts for the operator's roles.
    parts: Parts
    #: The buffers that parts own; they outlive one call.
    memory: dict[Any, Any]

    def __post_init__(self) -> None:
        operator = self.binding.operator
        for role in OPERATORS[operator].optional:
            if self.parts.get(role) is not None and role in self.binding.unsupported_keywords:
                raise TakesNoPart(f"{self.binding.name} takes no {role}")

    @property
    def optional(self) -> str:
        """The given optional keyword arguments, in words; empty if there are none."""
        roles = OPERATORS[self.binding.operator].optional
        return " and ".join(role for role in roles if self.parts.get(role) is not None)

    def with_tensors(
        self,
        tensors: Mapping[str, Any],
        *,
        recorder: Recorder | None = None,
        notes: dict[str, Any] | None = None,
        tangents: Mapping[str, Any] | None = None,
    ) -> tuple[list[Any], dict[str, Any]]:
        """
        Positional and keyword arguments for these tensors, given by name.

        For a bridge that does not differentiate by itself: parts write the gradients of their leaves to ``notes``, and
        read the leaves' tangents from ``tangents``.
        """
        operator = self.binding.operator
        if not OPERATORS[operator].composed:
            return [tensors[name] for name in OPERATORS[operator].arguments], dict(self.keywords)

        common: dict[Part, Any] = {}

        def made(part: Part | tuple[Part, ...] | None, role: str) -> Any:
            if part is None:
                return None
            if isinstance(part, tuple):
                several = [made(one, f"{role}.{place}") for place, one in enumerate(part)]
                if recorder is not None:
                    recorder.lists.append((several, tuple(several)))
                return several
            if part in common:
                return common[part]
            leaves = {name: tensors[name] for name in part.all_leaves()}
            built: Callable[..., Any] = build_part(
                part, leaves, self.bridge, memory=self.memory, notes=notes, tangents=tangents
            )
            handed = built if recorder is None else RecordedPart(built, role, recorder)
            if part.kind == "common":
                common[part] = handed
            return handed

        roles = {role: made(self.parts.get(role), role) for role in OPERATORS[operator].roles}
        positional = [roles[name] if name in roles else tensors[name] for name in OPERATORS[operator].arguments]
        optional = {role: roles[role] for role in OPERATORS[operator].optional if roles[role] is not None}
        return positional, {**self.keywords, **optional}
