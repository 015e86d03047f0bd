"""The buffer that a part owns, and in which every call of it returns its value."""

from __future__ import annotations

from typing import Any

from ..spec.parts import Part
from .bridge import Bridge

#: How many parts may hold a buffer at a time: more than any one call has.
_BUFFERS = 64


def buffered(value: Any, part: Part, bridge: Bridge, memory: dict[Any, Any]) -> Any:
    """The value in the buffer that the part owns; memory holds the part too, so that no other takes its id."""
    held = memory.get(id(part))
    buffer = None if held is None else held[1]
    if buffer is None or bridge.describe(buffer) != bridge.describe(value):
        if held is None and len(memory) >= _BUFFERS:
            del memory[next(iter(memory))]
        buffer = bridge.buffer(value)
        memory[id(part)] = (part, buffer)
    return bridge.write(value, buffer)
