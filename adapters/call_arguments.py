"""The positional and keyword arguments of one call, with each part built from its leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..spec.errors import TakesNoPart
from ..spec.parts import Part, Parts
from .binding import Binding
from .bridge import Bridge
from .build_parts import build_part
from .operation import Operation
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
        for role in self.binding.record.optional:
            if self.parts.get(role) is not None and role in self.binding.unsupported_keywords:
                raise TakesNoPart(f"{self.binding.name} takes no {role}")

    @property
    def optional(self) -> str:
        """The given optional keyword arguments, in words; empty if there are none."""
        roles = self.binding.record.optional
        return " and ".join(role for role in roles if self.parts.get(role) is not None)

    def operation(self, mode: str) -> Operation:
        """The operator, in this mode, for a part that is the operator itself."""
        call = partial(self.binding.call, mode=mode) if self.binding.has_modes else self.binding.call
        return Operation(self.binding.record, call, self.binding.derivatives.get("vjp"))

    def with_tensors(
        self,
        tensors: Mapping[str, Any],
        *,
        recorder: Recorder | None = None,
        notes: dict[str, Any] | None = None,
        tangents: Mapping[str, Any] | None = None,
        mode: str = "training",
    ) -> tuple[list[Any], dict[str, Any]]:
        """
        Positional and keyword arguments for these tensors, given by name.

        For a bridge that does not differentiate by itself: parts write the gradients of their leaves to ``notes``, and
        read the leaves' tangents from ``tangents``. A part that is the operator itself calls it in this ``mode``.
        """
        record = self.binding.record
        if not record.composed:
            return [tensors[name] for name in record.arguments], dict(self.keywords)

        builder = _PartBuilder(self, tensors, recorder, notes, tangents, self.operation(mode))
        roles = {role: builder.made(self.parts.get(role), role) for role in record.roles}
        positional = [roles[name] if name in roles else tensors[name] for name in record.arguments]
        optional = {role: roles[role] for role in record.optional if roles[role] is not None}
        return positional, {**self.keywords, **optional}


# A class, not a function that calls itself: such a function refers to itself, and so would keep the tensors of a call
# until the next garbage collection.
@dataclass
class _PartBuilder:
    """Builds the parts of one call."""

    arguments: CallArguments
    tensors: Mapping[str, Any]
    recorder: Recorder | None
    notes: dict[str, Any] | None
    tangents: Mapping[str, Any] | None
    operation: Operation
    #: Parts that stand in several places.
    common: dict[Part, Any] = field(default_factory=dict)

    def made(self, part: Part | tuple[Part, ...] | None, role: str) -> Any:
        """The function for a part, or the list of them for several; None for none."""
        if part is None:
            return None
        if isinstance(part, tuple):
            several = [self.made(one, f"{role}.{place}") for place, one in enumerate(part)]
            if self.recorder is not None:
                self.recorder.lists.append((several, tuple(several)))
            return several
        if part in self.common:
            return self.common[part]
        leaves = {name: self.tensors[name] for name in part.all_leaves()}
        built: Callable[..., Any] = build_part(
            part, leaves, self.arguments.bridge, memory=self.arguments.memory, notes=self.notes,
            tangents=self.tangents, operation=self.operation,
        )  # fmt: skip
        handed = built if self.recorder is None else RecordedPart(built, role, self.recorder)
        if part.kind == "common":
            self.common[part] = handed
        return handed
