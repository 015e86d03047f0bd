"""Recording: the calls of parts that a target makes, in order, with their arguments and results."""

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
    #: The values of its arguments at the time of the call: one array, or several for fuse. A text describes a value
    #: that was not a tensor.
    handed: list[np.ndarray | str]
    #: The value of its result at the time of the call; None if it raised, or returned no tensor.
    returned: np.ndarray | None = None
    #: The tensors themselves, to be read again later.
    tensor: Any = None
    tensors: list[Any] = field(default_factory=list)


@dataclass
class Recorder:
    """Records the part calls of one call of a target, in order."""

    bridge: Bridge
    calls: list[PartCall] = field(default_factory=list)
    #: The lists of parts passed to the target, each with its original contents.
    lists: list[tuple[list[Any], tuple[Any, ...]]] = field(default_factory=list)
    #: Whether the call has returned. A part call after that, such as checkpointing makes for the gradients, is not
    #: recorded.
    returned: bool = False

    def read(self, value: Any) -> np.ndarray | str:
        """The tensor's present values, or a text that describes a value that is not a tensor."""
        try:
            return self.bridge.array(value, "what it was handed")
        except BadOutput as bad:
            return str(bad)

    def lists_are_whole(self) -> bool:
        """Whether each list of parts still has its original contents."""
        return all(len(now) == len(before) and all(a is b for a, b in zip(now, before)) for now, before in self.lists)

    def handed_now(self, call: PartCall) -> list[np.ndarray | str]:
        """The present values of a part's arguments; a difference from ``handed`` means that something changed them."""
        return [self.read(value) for value in call.tensors]

    def returned_now(self, call: PartCall) -> np.ndarray | str | None:
        """The present value of a part's result."""
        return None if call.returned is None else self.read(call.tensor)


class RecordedPart:
    """Wraps a part and records its calls; other attributes, such as its derivatives, pass through."""

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
        if name.startswith("__"):  # copying and pickling look these up before the object is initialised
            raise AttributeError(name)
        return getattr(self._part, name)

    def __deepcopy__(self, memo: Any) -> RecordedPart:
        return self  # calls of a copy would not be recorded
