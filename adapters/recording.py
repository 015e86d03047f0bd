"""Recording: which parts a call of a target called, in which order, with what, and what they returned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..spec.errors import BadOutput
from .bridge import Bridge


@dataclass
class PartCall:
    """One call of one part."""

    #: The part's role: "branch", "branches.0", "gate", ...
    role: str
    #: What it was handed, as it was then: one array, for fuse several; a text where that was no tensor.
    handed: list[np.ndarray | str]
    #: What it returned, as it was then; None where it raised.
    returned: np.ndarray | None = None
    #: The tensors themselves, to be read again.
    tensor: Any = None
    tensors: list[Any] = field(default_factory=list)


@dataclass
class Recorder:
    """The calls of the parts of one call of a target, in their order."""

    bridge: Bridge
    calls: list[PartCall] = field(default_factory=list)
    #: The lists of parts that were handed over, each with what it held.
    lists: list[tuple[list[Any], tuple[Any, ...]]] = field(default_factory=list)
    #: Whether the call has returned. What calls a part again for the gradients, as checkpointing does, is another call.
    returned: bool = False

    def read(self, value: Any) -> np.ndarray | str:
        """The values as they are now, or what it is instead of a tensor."""
        try:
            return self.bridge.array(value, "what it was handed")
        except BadOutput as bad:
            return str(bad)

    def lists_are_whole(self) -> bool:
        """Whether each list of parts still holds what it held."""
        return all(len(now) == len(before) and all(a is b for a, b in zip(now, before)) for now, before in self.lists)

    def handed_now(self, call: PartCall) -> list[np.ndarray | str]:
        """What the part was handed, as it is now: another value means that somebody changed it."""
        return [self.read(value) for value in call.tensors]

    def returned_now(self, call: PartCall) -> np.ndarray | str | None:
        """What the part returned, as it is now."""
        return None if call.returned is None else self.read(call.tensor)


class Recorded:
    """A part whose calls are recorded; whatever else it has, such as its derivatives, is reached through it."""

    def __init__(self, part: Callable[..., Any], role: str, recorder: Recorder) -> None:
        self._part = part
        self._role = role
        self._recorder = recorder

    def __call__(self, handed: Any) -> Any:
        if self._recorder.returned:
            return self._part(handed)
        values = list(handed) if isinstance(handed, (list, tuple)) else [handed]
        call = PartCall(self._role, [self._recorder.read(value) for value in values], tensors=values)
        self._recorder.calls.append(call)
        returned = self._part(handed)
        call.tensor, copy = returned, self._recorder.read(returned)
        call.returned = copy if isinstance(copy, np.ndarray) else None
        return returned

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copying and pickling ask of an object that is not made yet
            raise AttributeError(name)
        return getattr(self._part, name)

    def __deepcopy__(self, memo: Any) -> Recorded:
        return self  # a copy of the part would be called unseen
