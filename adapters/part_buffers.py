"""Buffers that parts own: every call of a buffered part returns its value in the same memory."""

from __future__ import annotations

from typing import Any

from ..spec.parts import Part
from .bridge import Bridge

#: How many parts may hold a buffer at a time: more than any one call uses.
_BUFFERS = 64


def buffered(value: Any, part: Part, bridge: Bridge, memory: dict[Any, Any]) -> Any:
    """The value, written into the part's buffer. ``memory`` keeps the part alive so that no other part gets its id."""
    held = memory.get(id(part))
    buffer = None if held is None else held[1]
    if buffer is None or bridge.describe(buffer) != bridge.describe(value):
        if held is None and len(memory) >= _BUFFERS:
            del memory[next(iter(memory))]
        buffer = bridge.buffer(value)
        memory[id(part)] = (part, buffer)
    return bridge.write(value, buffer)
