"""The workers of a Dask cluster that can judge, and the questions sent to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any

import attrs
from distributed import Client, Future  # pyright: ignore[reportMissingImports]

from ...spec.errors import one_line
from . import machine
from .cluster_worker import ClusterWorker
from .question_queue import Lost, Question, QuestionQueue

#: Seconds between two requests to the scheduler for the list of workers.
LOOK = 1.0

#: Seconds between two looks at futures, which cost nothing.
_POLL = 0.05

#: Seconds for which a question waits if no worker can answer it. A nanny restarts a lost worker in a few seconds, and
#: the worker then imports normspec and the framework.
PATIENCE = 60.0

#: Seconds to fetch an answer from the worker that holds it.
HANDING_OVER = 30.0


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
    _queue: QuestionQueue = attrs.field(factory=lambda: QuestionQueue(iter(())))
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
        self._queue, self._done = QuestionQueue(iter(questions)), SimpleQueue()
        looked = time.monotonic()
        while True:
            self._hand_out()
            if not self._pending and self._queue.ended():
                return
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
                yield from self._without_worker()

    def _hand_out(self) -> None:
        """Give each free worker one question, and repeat until no worker takes one."""
        asked = [True]
        while any(asked):
            members = sorted(self.members.values(), key=lambda one: len(one.pending) / one.threads)
            # The workers with least to do get no new question, until one that is asked alone can have them.
            emptying = [one for one in members if not one.reserved][: self._queue.count_to_ask_alone]
            asked = [self._ask_one(one, members, emptying=one in emptying) for one in members if one.free]

    def _ask_one(self, member: ClusterWorker, members: Sequence[ClusterWorker], *, emptying: bool) -> bool:
        """Give a free worker a question, if there is one for it."""
        question = None if member.pending else self._queue.to_ask_alone(member, members)
        if question is not None:
            self._ask(member, question, alone=True)
            return True
        question = None if member.pending and emptying else self._queue.following(member)
        if question is not None:
            self._ask(member, question, alone=False)
        return question is not None

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
            yield from self._lost(question, member, f"a process of worker {member} ({answer.reason})")
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
                yield from self._lost(question, member, f"worker {member} itself")

    def _lost(self, question: Question, member: ClusterWorker, words: str) -> Iterator[tuple[Question, Lost]]:
        """Ask a lost question once more; the second time, answer it."""
        answer = self._queue.lost(question, member, words)
        if answer is not None:
            yield question, answer

    def _without_worker(self) -> Iterator[tuple[Question, Lost]]:
        """Answer questions with Lost if for a while no worker had their target."""
        for question in self._queue.without_worker(list(self.members.values()), PATIENCE / LOOK):
            yield question, Lost("no worker is left that could judge it")

    # -- the end -----------------------------------------------------------------------------------------------

    def interrupted(self, seconds: float) -> Iterator[tuple[Question, bytes]]:
        """Tell all workers to answer at once, and return the answers; the other questions are cancelled."""
        self._queue = QuestionQueue(iter(()))
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
