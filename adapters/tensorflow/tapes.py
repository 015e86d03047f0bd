"""Tapes kept for later gradients, found by a tensor that went into the recorded evaluation."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

#: How many evaluations are kept, and how many elements of x they may have in total; the newest two always stay.
#: Nothing shows when a tape is no longer needed, because it keeps every tensor it met, the inputs included.
_KEPT = 32
_ELEMENTS = 1 << 22


@dataclass
class _Recorded:
    """A tape that has recorded an evaluation, and the tensors it watched."""

    tape: Any
    watched: tuple[Any, ...]
    size: int


@dataclass
class Tapes:
    """The tapes of the last evaluations, by the tensors that they watched."""

    _recorded: OrderedDict[int, _Recorded] = field(default_factory=OrderedDict)

    def add(self, tape: Any, watched: Sequence[Any], size: int) -> None:
        """Keep a tape, and drop the oldest ones beyond the limits."""
        self._recorded[id(tape)] = _Recorded(tape, tuple(watched), size)
        total = sum(one.size for one in self._recorded.values())
        while len(self._recorded) > 2 and (len(self._recorded) > _KEPT or total > _ELEMENTS):
            _, oldest = self._recorded.popitem(last=False)
            total -= oldest.size

    def of(self, tensor: Any) -> Any:
        """The tape that watched the tensor. Raises RuntimeError if it is no longer kept."""
        for one in reversed(self._recorded.values()):
            if any(watched is tensor for watched in one.watched):
                return one.tape
        raise RuntimeError(f"no tape is left of that evaluation: only the last {_KEPT} are kept")

    def drop(self, tape: Any) -> None:
        """Drop a tape, with everything that it holds."""
        self._recorded.pop(id(tape), None)

    def reaches(self, output: Any) -> bool:
        """Whether one of the tapes connects the output to a tensor that it watched."""
        return any(
            gradient is not None
            for one in reversed(self._recorded.values())
            for gradient in one.tape.gradient(output, one.watched, unconnected_gradients=tf.UnconnectedGradients.NONE)
        )
