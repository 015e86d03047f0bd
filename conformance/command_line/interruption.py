"""Ctrl-C: the first stops the run, which then reports what it has; another one ends the command at once."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType

#: Seconds after a Ctrl-C in which another one is the same: people press twice.
_SAME = 1.0


class Interruptions:
    """Raises KeyboardInterrupt at Ctrl-C and at SIGTERM, so that workers end and results are kept."""

    def __init__(self) -> None:
        self._last = -float("inf")
        #: How often the user has asked to stop.
        self.count = 0

    def listen(self) -> None:
        """Take the signals, if this is the main thread. A command that a shell has told to ignore Ctrl-C ignores it."""
        if threading.current_thread() is not threading.main_thread():
            return
        signal.signal(signal.SIGTERM, self._taken)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._taken)

    def over(self) -> None:
        """After an interruption, ignore others: the command is about to end, and its exit status is to arrive."""
        if self.count:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _taken(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last < _SAME:
            return
        self._last = now
        self.count += 1
        raise KeyboardInterrupt
