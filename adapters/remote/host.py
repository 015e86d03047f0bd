"""The host of a target: holds the target's worker, and starts a new one if it is lost."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
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
from ..declarations import NOTHING_DECLARED, Declarations
from ..worker.failures import ends_worker, error_from_plain
from .prefetched import Prefetched
from .process import NO_STEPS, Limits, Worker, seconds_in_words
from .replies import answers

#: The script of a Python worker.
WORKER_SCRIPT = str(Path(__file__).parent.parent / "worker" / "__main__.py")

#: How long a worker may take to import its target: frameworks take tens of seconds on a busy machine.
OPENING_SECONDS = 300.0

#: How many repetitions of one call the time limit is for; more have as much more. `quick` repeats a call as often.
_REPETITIONS_IN_LIMIT = 64


@dataclass(frozen=True)
class Launch:
    """How to start the worker of a target."""

    #: The target, as adapters.targets.resolve takes it.
    target: str
    op: tuple[str, ...] | None = None
    framework: str | None = None
    #: The command that runs the worker.
    command: tuple[str, ...] = (sys.executable, WORKER_SCRIPT)
    #: Environment variables to set.
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Directories to put first on its import path.
    path: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    #: The real path of FILE.py in FILE.py:NAME; empty if it is the same.
    file: str = ""
    #: The user's declarations about a layer, or about a function that does not take the canonical call.
    declared: Declarations = NOTHING_DECLARED
    #: Whether the user sees what it prints, as with a function of their own.
    prints: bool = False
    #: Whether derivatives will be needed, so that their modules are imported with the target.
    derivatives: bool = False


class Host:
    """One target in a worker."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self._worker: Worker | None = None
        #: How many workers have ended; the objects of earlier workers are gone.
        self.generation = 0
        #: How many requests have been made. A result is fresh until the next request.
        self.requests = 0
        #: Requests made ahead, and their replies.
        self.prefetched = Prefetched()
        #: Why each lost request was lost, by its fingerprint.
        self.lost: dict[bytes, str] = {}
        #: How many requests were lost, by subject.
        self.losses: Counter[Any] = Counter()
        self._released: list[int] = []
        self._numbers = 0
        self._spent = 0.0
        #: Whether the worker takes several requests in one message.
        self._several = False
        #: Why the last request that was lost has no answer; empty if none was lost.
        self.unanswered = ""
        #: Whether a lost worker is replaced.
        self._replaces = True
        #: Why the target could not be loaded again after a loss; empty if that was not tried, or worked.
        self._gone = ""

    def begin(self) -> None:
        """Restart the clock for one requirement on one case; it counts only the target's own time."""
        self._spent = 0.0
        self.prefetched.drop_ordered()

    def number(self) -> int:
        """A new number for an object that the worker will keep."""
        self._numbers += 1
        return self._numbers

    def release(self, number: int) -> None:
        """Tell the worker, with the next request, that it need not keep this object any longer."""
        self._released.append(number)

    def launch_early(self) -> None:
        """Start a worker, which imports its target in the background. Raises NotImportable."""
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
                "declared": launch.declared.to_plain(),
                "path": launch.path,
                "memory": launch.limits.memory,
                # Only for the first worker: a target that loses workers often is slow enough.
                "derivatives": launch.derivatives and not self.generation,
            },
            OPENING_SECONDS,
        )

    def opened(self, meanwhile: Iterator[object] = NO_STEPS) -> dict[str, Any]:
        """
        The worker's description of its target. Raises the NormspecError that says why there is none.

        ``meanwhile``: steps of work to do while the worker imports its target.
        """
        if self._worker is None:
            self.launch_early()
        assert self._worker is not None
        name, opened = self.launch.target, False
        try:
            found = self._worker.reply(OPENING_SECONDS, lambda reply: answers({"do": "open"}, reply), meanwhile)
            self._several, opened = found.get("several", False), True
            return found
        except TimeoutError:
            raise NotImportable(
                f"{name} took longer than {seconds_in_words(OPENING_SECONDS)} to import, and was stopped"
            ) from None
        except TargetLost as lost:
            raise NotImportable(f"{name} {lost.reason} while it was imported{self._protocol()}") from None
        except (TargetRaised, BadOutput, Unsupported) as error:
            raise NotImportable(f"{name} does not import: {error}") from None
        finally:
            if not opened:
                self.close()

    def _protocol(self) -> str:
        """What a command of the user's must do, in words; empty for our own worker."""
        own = self.launch.command[1:2] == (WORKER_SCRIPT,)
        return "" if own else "; a command must speak the worker protocol (docs/other-languages.md)"

    def request(self, message: Mapping[str, Any], names: Collection[str] = ()) -> dict[str, Any]:
        """
        Send a request and return the reply, within the rest of the time limit; a lost worker is replaced first.

        ``names``: the names that the arrays of the reply must have. A request made ahead has its reply already.
        """
        if self.prefetched.collecting:
            self.requests += 1
            return self.prefetched.collect(message)
        early = self.prefetched.reply_to(message)
        if early is not None:
            self.requests += 1
            return self._result_of_early_reply(message, early, names)
        factor = max(1.0, _repetitions(message) / _REPETITIONS_IN_LIMIT)
        limit = self.launch.limits.seconds * factor
        left = limit - self._spent * factor
        if left <= 0:
            raise TargetLost(f"took longer than {seconds_in_words(limit)} and was stopped", called=False)
        worker = self._worker or self._new_worker()
        released, self._released = self._released, []
        self.requests += 1
        started, settled = time.monotonic(), False
        try:
            worker.send({**message, "release": released}, left)
            left = max(left - (time.monotonic() - started), 0.0)
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
            raise _error_of_reply(message, error) from None
        finally:
            self._spent += (time.monotonic() - started) / factor
            if not settled:  # dead, out of step, or after Ctrl-C about to answer a cancelled request
                self.close()

    def _result_of_early_reply(self, message: Mapping[str, Any], reply: Any, names: Collection[str]) -> dict[str, Any]:
        """Return the result, or raise the error, in a reply that came ahead of its request."""
        if type(reply.get("raised")) is dict:
            failure = error_from_plain(reply["raised"])
            raise _error_of_reply(message, failure) if isinstance(failure, NormspecError) else failure
        elif type(reply.get("ok")) is dict and answers(message, reply["ok"], names):
            return reply["ok"]
        self.close()
        raise TargetLost("disturbed its worker (the reply is not an answer to the request)")

    def prefetch(self, calls: Iterable[Callable[[], object]], *, keep: bool = False) -> bool:
        """
        Send the requests of these calls in one message, if the worker takes that; False if that message is lost.

        Later calls take their replies from there, if they make the same requests in the same order; a different request
        drops the rest. With ``keep`` they may come at any time, until other replies are kept. If the worker is lost,
        each call sends its own request, and so shows which one is to blame.
        """
        self.prefetched.drop_ordered()
        if not self._several:
            return True
        numbers, requests, spent = self._numbers, self.requests, self._spent
        try:
            messages = self.prefetched.requests_of(calls)
        finally:
            self._numbers, self.requests = numbers, requests
        if len(messages) < _LEAST_MESSAGES:
            return True
        try:
            replies = self.request({"do": "several", "requests": messages})["replies"]
        except CALL_FAILED:
            self._spent = spent  # the call that is to blame uses the time again
            return False
        finally:
            self.requests = requests
        if any(type(one.get("raised")) is dict and ends_worker(one["raised"]) for one in replies):
            self.close()
            self._spent = spent
            return False
        (self.prefetched.unordered if keep else self.prefetched.ordered)(messages, replies)
        return True

    def aside(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The reply to a request that belongs to no requirement; it has the whole time limit for itself."""
        spent, self._spent = self._spent, 0.0
        prefetched, self.prefetched = self.prefetched, Prefetched()
        try:
            return self.request(message)
        finally:
            self._spent, self.prefetched = spent, prefetched

    @contextmanager
    def unreplaced(self) -> Iterator[None]:
        """
        Within this, a lost worker is not replaced: later requests raise TargetLost at once.

        The end raises it too if any request was lost, so that nothing is concluded from a lost one.
        """
        _ = self._worker or self._new_worker()
        self._replaces, self.unanswered = False, ""
        try:
            yield
        finally:
            self._replaces = True
        if self.unanswered:
            raise TargetLost(self.unanswered)

    def _new_worker(self) -> Worker:
        """Start a new worker after a loss. If that fails, raises TargetLost, now and on every later attempt."""
        if not self._replaces:
            raise TargetLost("was lost again", called=False)
        if not self._gone:
            try:
                self.opened()
            except NormspecError as error:
                self._gone = f"could not be loaded again: {error}"
        if self._gone:
            raise TargetLost(self._gone, called=False)
        assert self._worker is not None
        return self._worker

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None
            self.generation += 1
            self.prefetched.drop_ordered()


#: How many requests make it worth sending them in one message.
_LEAST_MESSAGES = 2


def _repetitions(message: Mapping[str, Any]) -> int:
    """How often the call of a request is repeated; of several requests, the most."""
    if message["do"] == "several":
        return max(map(_repetitions, message["requests"]), default=1)
    return message.get("times", 1)


def _error_of_reply(message: Mapping[str, Any], error: NormspecError) -> Exception:
    """A caller's error from a worker, or TargetLost if this request cannot end in such an error."""
    return error if isinstance(error, _refusals(message)) else TargetLost(f"disturbed its worker ({error})")


def _refusals(message: Mapping[str, Any]) -> tuple[type[NormspecError], ...]:
    """The caller's errors that a request may end in. Any other would end the whole run."""
    if message["do"] == "device":
        return (DeviceUnavailable,)
    if message["do"] == "accepts":
        return (BadSibling,)
    if message.get("layouts") or message.get("layout", "contiguous") != "contiguous":
        return (LayoutNotApplicable,)
    return ()
