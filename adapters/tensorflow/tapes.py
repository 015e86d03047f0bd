"""Tapes that are asked later: which of them recorded the evaluation that a tensor went into."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

#: How many evaluations can be pulled at a time, and how many elements of x those beside the newest two may have.
#: Nothing tells when one is no longer needed, since a tape keeps every tensor that it met, those handed in included.
_KEPT = 32
_ELEMENTS = 1 << 22


@dataclass
class _Recorded:
    """One tape that has recorded, and what it watched."""

    tape: Any
    watched: tuple[Any, ...]
    size: int


@dataclass
class Tapes:
    """The tapes of the last evaluations, by the tensors that they watched."""

    _recorded: OrderedDict[int, _Recorded] = field(default_factory=OrderedDict)

    def add(self, tape: Any, watched: Sequence[Any], size: int) -> None:
        """Keep a tape, and let go those that have been kept for long enough."""
        self._recorded[id(tape)] = _Recorded(tape, tuple(watched), size)
        total = sum(one.size for one in self._recorded.values())
        while len(self._recorded) > 2 and (len(self._recorded) > _KEPT or total > _ELEMENTS):
            _, oldest = self._recorded.popitem(last=False)
            total -= oldest.size

    def of(self, tensor: Any) -> Any:
        """The tape that watched the tensor. Raises RuntimeError where there is none any more."""
        for one in reversed(self._recorded.values()):
            if any(watched is tensor for watched in one.watched):
                return one.tape
        raise RuntimeError(f"no tape is left of that evaluation: only the last {_KEPT} are kept")

    def drop(self, tape: Any) -> None:
        """Let a tape go, with all that it holds."""
        self._recorded.pop(id(tape), None)

    def reaches(self, output: Any) -> bool:
        """Whether one of the tapes leads from the output to what it watched."""
        return any(
            gradient is not None
            for one in reversed(self._recorded.values())
            for gradient in one.tape.gradient(output, one.watched, unconnected_gradients=tf.UnconnectedGradients.NONE)
        )
