"""The workers of a Dask cluster that can judge, and the handing out of questions to them."""

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

#: Seconds between two looks at which workers there are, which is a question to the scheduler.
LOOK = 1.0

#: Seconds for which a question waits for a worker where there is none that can answer it: a nanny starts a lost worker
#: anew in a few, and it then imports normspec and the framework.
PATIENCE = 60.0

#: Seconds for the way of an answer from a worker, which keeps it until it is fetched.
HANDING_OVER = 30.0

#: With how many workers a question may be lost: the second time it was alone on its worker.
_TWICE = 2

#: How many questions are looked at beyond those that nobody is free for, to find one for a worker that has another
#: target.
_AHEAD = 512


@attrs.frozen
class Question:
    """What some worker is asked about a target."""

    target: str
    text: str
    #: What it is about, for whoever has asked.
    about: Any = None


@attrs.frozen
class Lost:
    """In place of an answer: why there is none."""

    reason: str


@attrs.define(eq=False)
class Member:
    """A worker of the cluster."""

    address: str
    name: str
    #: How many questions it answers at a time.
    threads: int
    #: The targets that it has.
    targets: set[str] = attrs.field(factory=set)
    #: What it has been asked and not answered, by the future's key.
    asked: dict[str, Future] = attrs.field(factory=dict)
    #: Whether it is asked no second question meanwhile: the one that it has was lost with another worker.
    closed: bool = False

    @property
    def free(self) -> bool:
        """Whether it can be asked something now."""
        return not self.closed and len(self.asked) < self.threads

    def __str__(self) -> str:
        return f"{self.name} at {self.address}" if self.name not in ("", self.address) else self.address


@attrs.define(eq=False)
class Crew:
    """Workers, and the questions that they have."""

    client: Client
    #: Under which the workers keep the request.
    key: str
    #: The request with one target, as a process is told it, by the target.
    told: Mapping[str, str]
    #: The files that the request names, and what is in them.
    files: Mapping[str, bytes]
    #: Is told of the addresses of workers that have come.
    joined: Callable[[Sequence[str]], None]
    members: dict[str, Member] = attrs.field(factory=dict)
    _asked: dict[str, tuple[Question, Member]] = attrs.field(factory=dict)
    _done: SimpleQueue[Future] = attrs.field(factory=SimpleQueue)
    #: The addresses of the workers with which a question was lost, and how, by the question's text.
    _lost_with: dict[str, list[tuple[str, str]]] = attrs.field(factory=dict)
    _suspects: deque[Question] = attrs.field(factory=deque)
    _waiting: deque[Question] = attrs.field(factory=deque)
    _starved: Counter[str] = attrs.field(factory=Counter)

    def threads(self) -> dict[str, int]:
        """The workers that there are now by address, and how many threads each has; none where nobody answers."""
        try:
            return dict(self.client.nthreads())
        except Exception:  # the scheduler is gone: whatever the way in which that shows
            return {}

    # -- one question each -------------------------------------------------------------------------------------

    def all_answer(self, questions: Sequence[tuple[Member, Question]]) -> list[bytes | Lost]:
        """The answer of each worker to its own question."""
        futures = [self._submit(member, question) for member, question in questions]
        found: dict[str, bytes | Lost] = {}
        while len(found) < len(futures):
            there = self.threads()
            for future, (member, _) in zip(futures, questions, strict=True):
                if future.key not in found and (future.done() or member.address not in there):
                    found[future.key] = self._answer(future)
            time.sleep(0.05)
        return [found[future.key] for future in futures]

    def _submit(self, member: Member, question: Question) -> Future:
        return self.client.submit(
            machine.answer, self.key, self.told[question.target], self.files, question.text,
            workers=[member.address], allow_other_workers=False, pure=False, retries=0,
        )  # fmt: skip

    @staticmethod
    def _answer(future: Future) -> bytes | Lost:
        """What a worker has answered, or why nothing will come."""
        if future.status == "finished":
            try:
                found = future.result(timeout=HANDING_OVER)
            except Exception as error:  # it died between its answer and our asking for it
                future.cancel()
                return Lost(f"its answer was lost: {one_line(error)}")
            return found if isinstance(found, bytes) else Lost(found)
        if future.status == "error":
            return Lost(one_line(future.exception()))
        future.cancel()
        return Lost("its worker was lost")

    # -- many questions ----------------------------------------------------------------------------------------

    def answers(self, questions: Iterable[Question]) -> Iterator[tuple[Question, bytes | Lost]]:
        """Each question with its answer, as they come; `questions` may be long, and is read as far as it is needed."""
        left, looked = iter(questions), time.monotonic()
        self._done, self._starved = SimpleQueue(), Counter()
        while True:
            self._hand_out(left)
            if not (self._asked or self._waiting or self._suspects):
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
                yield from self._gone([one for one in list(self.members.values()) if one.address not in there])
                self.joined(list(there))
                yield from self._starving()

    def _hand_out(self, left: Iterator[Question]) -> None:
        """Ask every worker that is free: one question each, and again while one is asked."""
        asking = True
        while asking:
            asking = False
            members = sorted(self.members.values(), key=lambda one: len(one.asked) / one.threads)
            # Those that are nearest to having nothing to do are asked nothing, until a suspect can be alone there.
            kept = [one for one in members if not one.closed][: len(self._suspects)]
            for member in members:
                if not member.free:
                    continue
                suspect = None if member.asked else self._suspect(member)
                if suspect is None and member.asked and member in kept:
                    continue
                question = suspect or self._first(self._waiting, member) or self._next(left, member)
                if question is not None:
                    self._ask(member, question, alone=suspect is not None)
                    asking = True

    @staticmethod
    def _first(among: deque[Question], member: Member) -> Question | None:
        """The first question that is about a target of the worker's."""
        found = next((one for one in among if one.target in member.targets), None)
        if found is not None:
            among.remove(found)
        return found

    def _suspect(self, member: Member) -> Question | None:
        """A question that was lost, and not with this worker unless there is no other."""

        def elsewhere(question: Question) -> bool:
            if self._lost_with[question.text][-1][0] != member.address:
                return True
            return not any(question.target in one.targets for one in self.members.values() if one is not member)

        found = self._first(deque(filter(elsewhere, self._suspects)), member)
        if found is not None:
            self._suspects.remove(found)
        return found

    def _next(self, left: Iterator[Question], member: Member) -> Question | None:
        while len(self._waiting) < _AHEAD:
            question = next(left, None)
            if question is None or question.target in member.targets:
                return question
            self._waiting.append(question)
        return None

    def _ask(self, member: Member, question: Question, *, alone: bool) -> None:
        future = self._submit(member, question)
        member.asked[future.key], member.closed = future, alone
        self._asked[future.key] = question, member
        future.add_done_callback(self._done.put)

    def _answered(self, future: Future) -> Iterator[tuple[Question, bytes | Lost]]:
        question, member = self._asked.pop(future.key, (None, None))
        if question is None or member is None:  # it was given up
            return
        del member.asked[future.key]
        member.closed = False
        answer = self._answer(future)
        if isinstance(answer, Lost):
            yield from self._again(question, member, f"a process of worker {member} ({answer.reason})")
        else:
            yield question, answer

    def _gone(self, members: Sequence[Member]) -> Iterator[tuple[Question, bytes | Lost]]:
        """These workers are there no more."""
        for member in members:
            del self.members[member.address]
            for key, future in list(member.asked.items()):
                if future.done():  # it comes by itself
                    continue
                question, _ = self._asked.pop(key)
                future.cancel()
                yield from self._again(question, member, f"worker {member} itself")

    def _again(self, question: Question, member: Member, lost: str) -> Iterator[tuple[Question, bytes | Lost]]:
        """A question that was lost is asked once more, of a worker that has nothing else to do."""
        with_it = self._lost_with.setdefault(question.text, [])
        with_it.append((member.address, lost))
        if len(with_it) < _TWICE:
            self._suspects.append(question)
        else:
            yield question, Lost(f"lost twice with what judged it: {', and '.join(words for _, words in with_it)}")

    def _starving(self) -> Iterator[tuple[Question, bytes | Lost]]:
        """Questions that nobody can answer are waited with for a while."""
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
        """What has been answered until now, once everybody was told to answer at once; the rest is cancelled."""
        self._waiting.clear()
        self._suspects.clear()
        self.tell(machine.interrupt)
        futures = [member.asked[key] for key, (_, member) in self._asked.items()]
        until = time.monotonic() + seconds
        while any(not future.done() for future in futures) and time.monotonic() < until:
            time.sleep(0.05)
        for future in futures:
            question, member = self._asked.pop(future.key)
            del member.asked[future.key]
            answer = self._answer(future)
            if isinstance(answer, bytes):
                yield question, answer

    def tell(self, what: Any) -> None:
        """Have every worker do something with the request."""
        try:
            there = self.threads()
            workers = [address for address in self.members if address in there]
            if workers:
                self.client.run(what, self.key, workers=workers, on_error="ignore")
        except Exception:  # nobody is there to be told
            return
