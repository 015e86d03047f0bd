"""The host of a target: holds its worker, and starts a new one where that was lost."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...spec.errors import (
    CALL_FAILED,
    BadOutput,
    BadSibling,
    DeviceUnavailable,
    LayoutNotApplicable,
    NormspecError,
    NotImportable,
    TargetLost,
    TargetRaised,
    Unsupported,
)
from ...spec.operators import files_of
from ..declared import NOTHING, Declared
from ..worker.codec import NotAFrame
from ..worker.failures import revived
from .prefetched import Prefetched
from .process import NOTHING as NOTHING_TO_DO
from .process import Limits, Worker, seconds_in_words
from .replies import answers

#: The script that a worker in Python runs.
SCRIPT = str(Path(__file__).parent.parent / "worker" / "__main__.py")

#: How long a worker may take to import its target: frameworks take tens of seconds on a busy machine.
OPENING = 300.0


@dataclass(frozen=True)
class Launch:
    """How the worker of a target is started."""

    #: What the target is, as adapters.targets.resolve takes it.
    target: str
    op: tuple[str, ...] | None = None
    framework: str | None = None
    #: The command that runs the worker.
    command: tuple[str, ...] = (sys.executable, SCRIPT)
    #: Environment variables that are set.
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Directories that its import path is to begin with.
    path: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    #: Where the file of FILE.py:NAME lies; empty where it lies there.
    file: str = ""
    #: What is said of a layer, or of a function that is not called canonically.
    declared: Declared = NOTHING
    #: Whether what it prints is shown to the user, as it is for a function of theirs.
    prints: bool = False
    #: Whether derivatives will be asked for, so that what they take is imported with the target.
    derivatives: bool = False


class Host:
    """One target in a worker."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self._worker: Worker | None = None
        #: How many workers have ended: what an earlier one held is gone.
        self.generation = 0
        #: How many requests have been made: a result is fresh until the next.
        self.requests = 0
        self.prefetched = Prefetched()
        #: Why a request was lost, by its fingerprint, and how often something was lost, by subject.
        self.lost: dict[bytes, str] = {}
        self.losses: Counter[Any] = Counter()
        self._released: list[int] = []
        self._numbers = 0
        self._spent = 0.0
        #: Whether the worker takes several requests in one.
        self._several = False
        #: Why the target could not be had again after a loss; empty where it was not tried, or went well.
        self._gone = ""

    def begin(self) -> None:
        """Start the clock of one requirement on one case anew; only the target's own time counts."""
        self._spent = 0.0
        self.prefetched.forget()

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
        self._worker.send(
            {
                "do": "open",
                "target": launch.target,
                "op": launch.op,
                "operators": files_of(launch.op or ()),
                "framework": launch.framework,
                "file": launch.file,
                "declared": launch.declared.told(),
                "path": launch.path,
                "memory": launch.limits.memory,
                # Not again where a worker was lost: who is lost often is slow enough.
                "derivatives": launch.derivatives and not self.generation,
            },
            OPENING,
        )

    def opened(self, meanwhile: Iterator[object] = NOTHING_TO_DO) -> dict[str, Any]:
        """
        What the worker says of its target. Raises the NormspecError that says why there is none.

        ``meanwhile``: what there is to do while it imports, step by step.
        """
        if self._worker is None:
            self.launch_ahead()
        assert self._worker is not None
        name, opened = self.launch.target, False
        try:
            found = self._worker.reply(OPENING, lambda reply: answers({"do": "open"}, reply), meanwhile)
            self._several, opened = found.get("several", False), True
            return found
        except TimeoutError:
            raise NotImportable(f"{name} took longer than {seconds_in_words(OPENING)} to import") from None
        except TargetLost as lost:
            raise NotImportable(f"{name} {lost.reason} while it was imported") from None
        except (TargetRaised, BadOutput, Unsupported) as error:
            raise NotImportable(f"{name} does not import: {error}") from None
        finally:
            if not opened:
                self.close()

    def request(self, message: Mapping[str, Any], names: Collection[str] = ()) -> dict[str, Any]:
        """
        The reply of the worker, or of a new one where the last was lost, within what is left of the time limit.

        ``names``: what the arrays of the reply have to be called. What was asked ahead has its reply already.
        """
        if self.prefetched.planning:
            self.requests += 1
            return self.prefetched.planned(message)
        early = self.prefetched.reply_to(message)
        if early is not None:
            self.requests += 1
            return self._revealed(message, early, names)
        limit = self.launch.limits.seconds
        left = limit - self._spent
        if left <= 0:
            raise TargetLost(f"took longer than {seconds_in_words(limit)} and was stopped")
        worker = self._worker or self._again()
        released, self._released = self._released, []
        self.requests += 1
        started, settled = time.monotonic(), False
        try:
            worker.send({**message, "release": released}, left)
            found = worker.reply(left, lambda reply: answers(message, reply, names))
            settled = True
            return found
        except TimeoutError:
            raise TargetLost(f"took longer than {seconds_in_words(limit)} and was stopped") from None
        except (TargetRaised, BadOutput, Unsupported):
            settled = True
            raise
        except NormspecError as error:
            settled = True
            raise _meant(message, error) from None
        finally:
            self._spent += time.monotonic() - started
            if not settled:  # dead, unfit, or, after a Ctrl-C, about to answer a request that is no more
                self.close()

    def _revealed(self, message: Mapping[str, Any], reply: Any, names: Collection[str]) -> dict[str, Any]:
        """What a request ends in whose reply has come already."""
        if type(reply.get("raised")) is dict:
            try:
                failure = revived(reply["raised"])
            except NotAFrame:
                pass
            else:
                if isinstance(failure, TargetLost):
                    self.close()
                raise _meant(message, failure) if isinstance(failure, NormspecError) else failure
        elif type(reply.get("ok")) is dict and answers(message, reply["ok"], names):
            return reply["ok"]
        self.close()
        raise TargetLost("disturbed its worker (the reply is no answer to the request)")

    def ask_ahead(self, calls: Iterable[Callable[[], object]], *, keep: bool = False) -> bool:
        """
        Ask for what these calls ask for, all of it in one request, where the worker takes that; False if it was lost.

        The calls that are made next find their replies there, as long as they ask for just that, in this order; a
        request that is another one ends it. With ``keep`` they may be made at any time, until others are kept. Where
        the worker is lost, they ask for themselves, and it shows which is to blame.
        """
        self.prefetched.forget()
        if not self._several:
            return True
        numbers, requests, spent = self._numbers, self.requests, self._spent
        try:
            planned = self.prefetched.plan(calls)
        finally:
            self._numbers, self.requests = numbers, requests
        if len(planned) < _WORTH:
            return True
        try:
            replies = self.request({"do": "several", "requests": planned})["replies"]
        except CALL_FAILED:
            self._spent = spent  # the call that is to blame uses the time again
            return False
        finally:
            self.requests = requests
        (self.prefetched.unordered if keep else self.prefetched.ordered)(planned, replies)
        return True

    def aside(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The reply to a request that is part of no requirement, and has the time limit for itself."""
        spent, self._spent = self._spent, 0.0
        prefetched, self.prefetched = self.prefetched, Prefetched()
        try:
            return self.request(message)
        finally:
            self._spent, self.prefetched = spent, prefetched

    def _again(self) -> Worker:
        """A new worker in place of one that was lost. Raises TargetLost, and from then on always."""
        if not self._gone:
            try:
                self.opened()
            except NormspecError as error:
                self._gone = f"could not be loaded again: {error}"
        if self._gone:
            raise TargetLost(self._gone)
        assert self._worker is not None
        return self._worker

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None
            self.generation += 1
            self.prefetched.forget()


#: From how many requests on they are made together.
_WORTH = 2


def _meant(message: Mapping[str, Any], error: NormspecError) -> Exception:
    """What an error of the caller that a worker tells of means: no request but some can end in one."""
    return error if isinstance(error, _refusals(message)) else TargetLost(f"disturbed its worker ({error})")


def _refusals(message: Mapping[str, Any]) -> tuple[type[NormspecError], ...]:
    """The errors of the caller that a request may end in: any other would end the whole run."""
    if message["do"] == "device":
        return (DeviceUnavailable,)
    if message["do"] == "accepts":
        return (BadSibling,)
    if message.get("layouts") or message.get("layout", "contiguous") != "contiguous":
        return (LayoutNotApplicable,)
    return ()
