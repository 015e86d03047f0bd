"""The questions that wait for a worker of a cluster, and whose turn it is."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import attrs

from .cluster_worker import ClusterWorker

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


@attrs.frozen(eq=False)
class _Loss:
    """A question that was lost, the address of its worker, and with what it was lost."""

    question: Question
    address: str
    words: str


@attrs.define
class QuestionQueue:
    """
    The questions that no worker has.

    A question may be what ended its worker. So one that was lost is asked once more, alone on a worker: if it ends
    that one too, no other question is lost with it.
    """

    #: Those that nobody has asked for yet; there may be many, and they are read only as far as needed.
    _unread: Iterator[Question]
    #: Those about targets of workers that were not free.
    _waiting: deque[Question] = attrs.field(factory=deque)
    _lost_once: list[_Loss] = attrs.field(factory=list)
    #: The first loss of each question that was ever lost, by its text.
    _first_losses: dict[str, _Loss] = attrs.field(factory=dict)
    #: By target, how many looks in a row found no worker that has it.
    _looks_without_worker: Counter[str] = attrs.field(factory=Counter)

    def ended(self) -> bool:
        """Whether no question is left; reads one more, if none waits."""
        if not self._waiting and not self._lost_once:
            self._waiting.extend(islice(self._unread, 1))
        return not self._waiting and not self._lost_once

    @property
    def count_to_ask_alone(self) -> int:
        """How many questions wait for a worker of their own."""
        return len(self._lost_once)

    def to_ask_alone(self, member: ClusterWorker, members: Sequence[ClusterWorker]) -> Question | None:
        """A question that was lost before, with another worker unless only this one has its target."""
        for loss in self._lost_once:
            target = loss.question.target
            others = any(target in one.targets for one in members if one is not member)
            if target in member.targets and not (others and loss.address == member.address):
                self._lost_once.remove(loss)
                return loss.question
        return None

    def following(self, member: ClusterWorker) -> Question | None:
        """The first question about a target of the worker that was not asked yet."""
        found = next((one for one in self._waiting if one.target in member.targets), None)
        if found is not None:
            self._waiting.remove(found)
            return found
        while len(self._waiting) < _AHEAD:
            question = next(self._unread, None)
            if question is None or question.target in member.targets:
                return question
            self._waiting.append(question)
        return None

    def lost(self, question: Question, member: ClusterWorker, words: str) -> Lost | None:
        """Keep a lost question for a second try; the second time, return the answer to it."""
        loss = _Loss(question, member.address, words)
        first = self._first_losses.setdefault(question.text, loss)
        if first is not loss:
            return Lost(f"lost twice with what judged it: {first.words}, and {words}")
        self._lost_once.append(loss)
        return None

    def without_worker(self, members: Sequence[ClusterWorker], most_looks: float) -> list[Question]:
        """Look whether workers have the targets; remove the questions whose target none had in so many looks."""
        served = {target for member in members for target in member.targets}
        waiting = {question.target for question in self._all()} - served
        self._looks_without_worker = Counter({one: self._looks_without_worker[one] + 1 for one in waiting})
        over = {one for one, looks in self._looks_without_worker.items() if looks >= most_looks}
        found = [one for one in self._all() if one.target in over]
        self._waiting = deque(one for one in self._waiting if one.target not in over)
        self._lost_once = [one for one in self._lost_once if one.question.target not in over]
        return found

    def _all(self) -> list[Question]:
        return [*self._waiting, *(loss.question for loss in self._lost_once)]
