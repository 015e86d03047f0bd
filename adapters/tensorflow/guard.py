"""The context in which a target's code runs on TensorFlow tensors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

import tensorflow as tf

from .tapes import Tapes

_LOGGER = tf.get_logger()


class Guard:
    """
    Sets the device, starts a tape if tensors are to be watched, and turns warnings off; restores all of it afterwards.

    The logger is restored because it belongs to the process, and a check may run inside a user's program. It is
    disabled rather than set to another level, because a new level would clear the caches of all loggers.
    """

    __slots__ = ("_device", "_size", "_stack", "_tapes", "_watched", "tape")

    def __init__(self, tapes: Tapes, watched: Sequence[Any], size: int, device: str | None) -> None:
        self._tapes = tapes
        self._watched = watched
        self._size = size
        self._device = device
        #: The tape that records here, if tensors are watched.
        self.tape: Any = None

    def __enter__(self) -> Guard:
        with ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            stack.callback(setattr, _LOGGER, "disabled", _LOGGER.disabled)
            _LOGGER.disabled = True
            stack.enter_context(tf.device(self._device))
            if self._watched:
                self.tape = stack.enter_context(tf.GradientTape(persistent=True, watch_accessed_variables=False))
                self.tape.watch(self._watched)
            self._stack = stack.pop_all()
        return self

    def paused(self) -> AbstractContextManager[Any]:
        """A context in which this tape does not record, because other tapes do."""
        return nullcontext() if self.tape is None else self.tape.stop_recording()

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)
        if self.tape is not None and error[0] is None:
            self._tapes.add(self.tape, self._watched, self._size)
        self.tape = None
