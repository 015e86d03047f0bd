"""The workers of a Dask cluster that can judge, and the questions sent to them."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any

import attrs
from distributed import Client, Future  # pyright: ignore[reportMissingImports]

from ...spec.errors import one_line
from . import machine

#: Seconds between two requests to the scheduler for the list of workers.
LOOK = 1.0

#: Seconds between two looks at futures, which cost nothing.
_POLL = 0.05

#: Seconds for which a question waits if no worker can answer it. A nanny restarts a lost worker in a few seconds, and
#: the worker then imports normspec and the framework.
PATIENCE = 60.0

#: Seconds to fetch an answer from the worker that holds it.
HANDING_OVER = 30.0

#: A question is given up when it was lost with this many workers. The second time it was alone on its worker.
_TWICE = 2

#: How many questions may wait while the list is searched for one about a target of a free worker.
_AHEAD = 512


@attrs.frozen
class Question:
    """A question about a target, for any worker that has it."""

    target: str
    text: str
    #: The caller's own note of what it is about, such as a unit.
    about: Any = None


@attrs.frozen
class Lost:
    """Returned in place of an answer, with the reason why there is none."""

    reason: str


@attrs.define(eq=False)
class ClusterWorker:
    """A worker of the cluster."""

    address: str
    name: str
    #: Number of questions that it answers at a time.
    threads: int
    #: The targets that it can judge.
    targets: set[str] = attrs.field(factory=set)
    #: The questions that it has not answered yet, by the future's key.
    pending: dict[str, Future] = attrs.field(factory=dict)
    #: Whether it gets no second question for now, because its question was lost before with another worker.
    reserved: bool = False

    @property
    def free(self) -> bool:
        """Whether it can take a question now."""
        return not self.reserved and len(self.pending) < self.threads

    def __str__(self) -> str:
        return f"{self.name} at {self.address}" if self.name not in ("", self.address) else self.address


@attrs.define(eq=False)
class WorkerPool:
    """The workers, and the questions that they are working on."""

    client: Client
    #: The key under which workers keep the request.
    key: str
    #: The request for each target, as JSON, by target name.
    messages: Mapping[str, str]
    #: The files that the request names, with their contents.
    files: Mapping[str, bytes]
    #: Called with the addresses of all present workers, to find new ones.
    joined: Callable[[Sequence[str]], None]
    members: dict[str, ClusterWorker] = attrs.field(factory=dict)
    _pending: dict[str, tuple[Question, ClusterWorker]] = attrs.field(factory=dict)
    _done: SimpleQueue[Future] = attrs.field(factory=SimpleQueue)
    #: By the text of a question: the address of each worker with which it was lost, and how.
    _lost_with: dict[str, list[tuple[str, str]]] = attrs.field(factory=dict)
    _suspects: deque[Question] = attrs.field(factory=deque)
    _waiting: deque[Question] = attrs.field(factory=deque)
    _starved: Counter[str] = attrs.field(factory=Counter)
    #: When the scheduler answered last.
    _heard: float = attrs.field(factory=time.monotonic)

    def threads(self) -> dict[str, int] | None:
        """Number of threads of each present worker, by address; None if that is unknown, empty if all are lost."""
        try:
            found = dict(self.client.nthreads())
        except Exception:  # the scheduler is busy or gone, which shows in many ways
            connected = self.client.status == "running" and time.monotonic() - self._heard < PATIENCE
            return None if connected else {}
        self._heard = time.monotonic()
        return found

    # -- one question each -------------------------------------------------------------------------------------

    def all_answer(self, questions: Sequence[tuple[ClusterWorker, Question]]) -> list[bytes | Lost]:
        """The answers, where each worker has its own question."""
        futures = [self._submit(member, question) for member, question in questions]
        found: dict[str, bytes | Lost] = {}
        there, looked = self.threads(), time.monotonic()
        while len(found) < len(futures):
            if time.monotonic() - looked >= LOOK:
                there, looked = self.threads(), time.monotonic()
            for future, (member, _) in zip(futures, questions, strict=True):
                gone = there is not None and member.address not in there
                if future.key not in found and (future.done() or gone):
                    found[future.key] = self._answer(future)
            time.sleep(_POLL)
        return [found[future.key] for future in futures]

    def _submit(self, member: ClusterWorker, question: Question) -> Future:
        return self.client.submit(
            machine.answer, self.key, self.messages[question.target], self.files, question.text,
            workers=[member.address], allow_other_workers=False, pure=False, retries=0,
        )  # fmt: skip

    @staticmethod
    def _answer(future: Future) -> bytes | Lost:
        """The answer of a worker, or why there is none."""
        if future.status == "finished":
            try:
                found = future.result(timeout=HANDING_OVER)
            except Exception as error:  # the worker died before we fetched its answer
                future.cancel()
                return Lost(f"its answer was lost: {one_line(error)}")
            return found if isinstance(found, bytes) else Lost(found)
        if future.status == "error":
            return Lost(one_line(future.exception()))
        future.cancel()
        return Lost("its worker was lost")

    # -- many questions ----------------------------------------------------------------------------------------

    def answers(self, questions: Iterable[Question]) -> Iterator[tuple[Question, bytes | Lost]]:
        """Each question with its answer, as they come. `questions` may be long; it is read only as far as needed."""
        left, looked = iter(questions), time.monotonic()
        self._done, self._starved = SimpleQueue(), Counter()
        while True:
            self._hand_out(left)
            if not (self._pending or self._waiting or self._suspects):
                following = next(left, None)
                if following is None:
                    return
                self._waiting.append(following)
                continue
            try:
                future = self._done.get(timeout=LOOK)
            except Empty:
                pass
            else:
                yield from self._answered(future)
            if time.monotonic() - looked >= LOOK:
                looked = time.monotonic()
                there = self.threads()
                if there is not None:
                    yield from self._gone([one for one in list(self.members.values()) if one.address not in there])
                    self.joined(list(there))
                yield from self._starving()

    def _hand_out(self, left: Iterator[Question]) -> None:
        """Give each free worker one question, and repeat until no worker takes one."""
        asking = True
        while asking:
            asking = False
            members = sorted(self.members.values(), key=lambda one: len(one.pending) / one.threads)
            # The workers with least to do get no new question, until a suspect can be alone on them.
            kept = [one for one in members if not one.reserved][: len(self._suspects)]
            for member in members:
                if not member.free:
                    continue
                suspect = None if member.pending else self._suspect(member)
                if suspect is None and member.pending and member in kept:
                    continue
                question = suspect or self._first(self._waiting, member) or self._next(left, member)
                if question is not None:
                    self._ask(member, question, alone=suspect is not None)
                    asking = True

    @staticmethod
    def _first(among: deque[Question], member: ClusterWorker) -> Question | None:
        """The first question about a target of the worker, removed from the queue."""
        found = next((one for one in among if one.target in member.targets), None)
        if found is not None:
            among.remove(found)
        return found

    def _suspect(self, member: ClusterWorker) -> Question | None:
        """A question that was lost before, with another worker unless only this one has its target."""

        def elsewhere(question: Question) -> bool:
            if self._lost_with[question.text][-1][0] != member.address:
                return True
            return not any(question.target in one.targets for one in list(self.members.values()) if one is not member)

        found = self._first(deque(filter(elsewhere, self._suspects)), member)
        if found is not None:
            self._suspects.remove(found)
        return found

    def _next(self, left: Iterator[Question], member: ClusterWorker) -> Question | None:
        while len(self._waiting) < _AHEAD:
            question = next(left, None)
            if question is None or question.target in member.targets:
                return question
            self._waiting.append(question)
        return None

    def _ask(self, member: ClusterWorker, question: Question, *, alone: bool) -> None:
        future = self._submit(member, question)
        member.pending[future.key], member.reserved = future, alone
        self._pending[future.key] = question, member
        future.add_done_callback(self._done.put)

    def _answered(self, future: Future) -> Iterator[tuple[Question, bytes | Lost]]:
        question, member = self._pending.pop(future.key, (None, None))
        if question is None or member is None:  # the question was given up
            return
        del member.pending[future.key]
        member.reserved = False
        answer = self._answer(future)
        if isinstance(answer, Lost):
            yield from self._retry_or_give_up(question, member, f"a process of worker {member} ({answer.reason})")
        else:
            yield question, answer

    def _gone(self, members: Sequence[ClusterWorker]) -> Iterator[tuple[Question, bytes | Lost]]:
        """Remove workers that disappeared, and handle their questions."""
        for member in members:
            del self.members[member.address]
            for key, future in list(member.pending.items()):
                if future.done():  # its answer is in the queue
                    continue
                question, _ = self._pending.pop(key)
                future.cancel()
                yield from self._retry_or_give_up(question, member, f"worker {member} itself")

    def _retry_or_give_up(
        self, question: Question, member: ClusterWorker, lost: str
    ) -> Iterator[tuple[Question, bytes | Lost]]:
        """Queue a lost question for a second try, alone on a worker; after that, answer it with Lost."""
        with_it = self._lost_with.setdefault(question.text, [])
        with_it.append((member.address, lost))
        if len(with_it) < _TWICE:
            self._suspects.append(question)
        else:
            yield question, Lost(f"lost twice with what judged it: {', and '.join(words for _, words in with_it)}")

    def _starving(self) -> Iterator[tuple[Question, bytes | Lost]]:
        """Answer questions with Lost if for a while no worker had their target."""
        served = {target for member in list(self.members.values()) for target in member.targets}
        waiting = {question.target for question in (*self._waiting, *self._suspects)} - served
        self._starved = Counter({target: self._starved[target] + 1 for target in waiting})
        over = {target for target, looks in self._starved.items() if looks * LOOK >= PATIENCE}
        for among in (self._waiting, self._suspects):
            for question in [one for one in among if one.target in over]:
                among.remove(question)
                yield question, Lost("no worker is left that could judge it")

    # -- the end -----------------------------------------------------------------------------------------------

    def interrupted(self, seconds: float) -> Iterator[tuple[Question, bytes]]:
        """Tell all workers to answer at once, and return the answers; the other questions are cancelled."""
        self._waiting.clear()
        self._suspects.clear()
        self.tell(machine.interrupt)
        futures = [member.pending[key] for key, (_, member) in self._pending.items()]
        until = time.monotonic() + seconds
        while any(not future.done() for future in futures) and time.monotonic() < until:
            time.sleep(_POLL)
        for future in futures:
            question, member = self._pending.pop(future.key)
            del member.pending[future.key]
            answer = self._answer(future)
            if isinstance(answer, bytes):
                yield question, answer

    def tell(self, what: Any) -> None:
        """Call a function of machine.py with the key of the request on every worker."""
        try:
            there = self.threads() or {}
            workers = [address for address in list(self.members) if address in there]
            if workers:
                self.client.run(what, self.key, workers=workers, on_error="ignore")
        except Exception:  # the scheduler is gone
            return
