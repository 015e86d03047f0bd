"""The host of a target: holds its worker, and starts a new one where that was lost."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import NormspecError, NotImportable, TargetLost
from .process import OPENING, Limits, Worker, seconds_in_words


@dataclass(frozen=True)
class Launch:
    """How the worker of a target is started."""

    #: What the target is, as adapters.targets.resolve takes it.
    target: str
    op: tuple[str, ...] | None = None
    framework: str | None = None
    #: The command that runs Python.
    command: tuple[str, ...] = (sys.executable,)
    #: Environment variables that are set.
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Directories to append to its import path.
    path: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    #: Whether what it prints is shown to the user, as it is for a function of theirs.
    prints: bool = False


class Host:
    """One target in a worker."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self._worker: Worker | None = None
        #: How many workers have ended: what an earlier one held is gone.
        self.generation = 0
        #: How many requests have been made: a result is fresh until the next.
        self.requests = 0
        #: What could not be called, by a fingerprint of the request, and how often something was lost, by subject.
        self.lost: dict[bytes, TargetLost] = {}
        self.losses: Counter[Any] = Counter()
        self._released: list[int] = []
        self._numbers = 0
        self._spent = 0.0

    def begin(self) -> None:
        """Start the clock of one requirement on one case anew; only the target's own time counts."""
        self._spent = 0.0

    def number(self) -> int:
        """A number for something that the worker is to keep."""
        self._numbers += 1
        return self._numbers

    def release(self, number: int) -> None:
        """The worker need not keep this any longer."""
        self._released.append(number)

    def launch_ahead(self) -> None:
        """Start a worker, and leave it to import its target meanwhile. Raises NotImportable."""
        launch = self.launch
        self._worker = Worker(
            launch.command, memory=launch.limits.memory, environment=launch.environment, prints=launch.prints
        )
        self._released.clear()
        request = {"do": "open", "target": launch.target, "op": launch.op, "framework": launch.framework}
        self._worker.send({**request, "path": launch.path}, OPENING)

    def opened(self) -> dict[str, Any]:
        """What the worker says of its target. Raises the NormspecError that says why there is none."""
        if self._worker is None:
            self.launch_ahead()
        assert self._worker is not None
        try:
            return self._worker.reply(OPENING)
        except TimeoutError:
            self.close()
            raise NotImportable(
                f"{self.launch.target} took longer than {seconds_in_words(OPENING)} to import"
            ) from None
        except TargetLost as lost:
            self.close()
            raise NotImportable(f"{self.launch.target} {lost.reason} while it was imported") from None
        except NormspecError:
            self.close()
            raise

    def request(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The reply of the worker, or of a new one where the last was lost, within what is left of the time limit."""
        if self._worker is None or not self._worker.alive:
            self.close()
            try:
                self.opened()
            except NormspecError as error:
                raise TargetLost(f"could not be loaded again: {error}") from None
        assert self._worker is not None
        released, self._released = self._released, []
        limit = self.launch.limits.seconds
        left = max(limit - self._spent, 0.0)
        self.requests += 1
        started = time.monotonic()
        try:
            self._worker.send({**message, "release": released}, left)
            return self._worker.reply(left)
        except TargetLost:
            if not self._worker.alive:
                self.close()
            raise
        except TimeoutError:
            self.close()
            raise TargetLost(f"took longer than {seconds_in_words(limit)} and was stopped") from None
        finally:
            self._spent += time.monotonic() - started

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None
            self.generation += 1
