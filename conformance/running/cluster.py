"""The executor for a Dask cluster: it sends units to workers that have their target, and receives reports."""

from __future__ import annotations

import base64
import os
import pickle
import threading
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from distributed import Client  # pyright: ignore[reportMissingImports]

from ...spec.errors import NormspecError, NotImportable, one_line
from ..judging.verdicts import Result
from ..kept.cache_folder import NO_CACHE
from ..requests.request import Request
from ..results.report import Report
from .cluster_worker import ClusterWorker
from .executor import Judged, UnitListener, finished
from .machine import forget, state
from .message import Message, question_of, question_to_judge
from .question_queue import Lost, Question
from .target_description import TargetDescription, commonest, difference
from .unit import Unit, units
from .worker_pool import WorkerPool

#: Seconds to wait for the scheduler to answer.
_CONNECTING = 10.0

#: Seconds to wait after Ctrl-C for the partial reports of workers.
_ANSWERING = 10.0

#: An error names at most this many workers, and counts the rest.
_NAMED = 4


class NoCluster(NormspecError):
    """There is no cluster at the address, or it cannot judge the target."""


class _ClientClosedOnFailure(Client):
    """A client that closes when it cannot connect.

    Dask's own stays open after some errors. The garbage collector then closes it in whichever thread it runs, which
    blocks when that thread is starting another client.
    """

    def start(self, **options: Any) -> None:
        try:
            super().start(**options)
        except BaseException:
            self.close()
            raise


class Cluster:
    """Judges units on the workers of a running Dask cluster."""

    def __init__(self, request: Request, address: str, jobs: int | None = None) -> None:
        self._request, self._address, self._jobs = request, address, jobs
        self._told = Message.of(request)
        self._described: dict[str, TargetDescription] = {}
        self._paces: dict[str, str] = {}
        self._known: set[str] = set()
        self._over = False
        #: Notes for the report: which workers do not judge or were lost, and why.
        self.notes: list[str] = []

    # -- opening -----------------------------------------------------------------------------------------------

    def __enter__(self) -> Cluster:
        names = [name if isinstance(name, str) else None for name in self._told.request.targets]
        if None in names:
            raise NoCluster("a cluster finds a function by its name: put it into a file, and name it FILE.py:NAME")
        self._names = tuple(name for name in names if name is not None)
        files = {file: _content(file) for file in self._told.files()}
        told = {name: self._alone(name).to_json() for name in self._names}
        client = self._connected()
        self._pool = WorkerPool(client, f"normspec-{uuid.uuid4().hex}", told, files, self._joined)
        try:
            self._assemble()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _alone(self, name: str) -> Message:
        """The request for only one of its targets."""
        request = self._told.request
        # Our cache folder means nothing there: workers keep truths in their usual place, or nowhere.
        cache = NO_CACHE if request.cache == NO_CACHE else ""
        return attrs.evolve(self._told, request=attrs.evolve(request, targets=(name,), part=True, cache=cache))

    def _connected(self) -> Client:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # _fit reports workers with other versions
                return _ClientClosedOnFailure(self._address, timeout=_CONNECTING, set_as_default=False, name="normspec")
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            raise NoCluster(
                f"no Dask scheduler answers at {self._address} within {_CONNECTING:g} seconds ({one_line(error)}):"
                " give its address, such as tcp://127.0.0.1:8786"
            ) from None

    def _assemble(self) -> None:
        """Open the targets on all workers. Raises NoCluster if no worker has a target."""
        threads = self._pool.threads() or {}
        if not threads:
            raise NoCluster(f"the cluster at {self._address} has no workers: start some")
        members = self._fit(threads)
        lacking: dict[str, str] = {}
        for name in self._names:
            found = self._opened(name, members, lacking)
            if not found:
                why = [*self.notes, *lacking.values()]
                more = f"; and {len(why) - _NAMED} more" if len(why) > _NAMED else ""
                raise NoCluster(
                    f"no worker of {self._address} can judge {name}: {'; '.join(why[:_NAMED]) or 'all were lost'}{more}"
                )
            chosen = self._described[name] = commonest(list(found.values()))
            self._take_in(name, found)
            self._pool.members = {one.address: one for one in members if one.targets}
            first = next(one for one, described in found.items() if described is chosen)
            (answer,) = self._pool.all_answer([(first, Question(name, question_of("measure")))])
            measured = pickle.loads(answer) if isinstance(answer, bytes) else {}
            if isinstance(measured, NormspecError):  # the user's own mistake, such as a NAME_accepts that returns False
                raise measured
            self._paces.update(measured)
        self.notes += lacking.values()

    def _fit(self, threads: Mapping[str, int]) -> list[ClusterWorker]:
        """The workers with the same versions as this machine; the others are noted."""
        self._known.update(threads)
        try:
            states = self._pool.client.run(state, workers=list(threads), on_error="return")
        except Exception:  # the scheduler is gone, which shows in many ways: note each worker as left out
            states = {}
        own, members = state()["versions"], []
        for address, count in threads.items():
            found = states.get(address)
            if not isinstance(found, dict):
                self._left_out(str(ClusterWorker(address, self._name(address), count)), self._has(address))
                continue
            member = ClusterWorker(address, found["name"], min(count, self._jobs or count))
            differing = [
                f"{one} {found['versions'].get(one)}, and this is {number}"
                for one, number in own.items()
                if found["versions"].get(one) != number
            ]
            if differing:
                self._left_out(str(member), f"has {'; '.join(differing)}")
            else:
                members.append(member)
        return members

    def _has(self, address: str) -> str:
        """Describes a worker without normspec, or with another one."""
        try:
            found = self._pool.client.get_versions(packages=["normspec"])["workers"][address]["packages"]
            python = ".".join(found["python"].split(".")[:3])
            return f"cannot import this normspec: it has version {found['normspec'] or 'none'}, under Python {python}"
        except Exception:  # the worker is gone, or an older Dask has another form
            return "cannot import this normspec"

    def _name(self, address: str) -> str:
        """The name of a worker, from the scheduler: used if the worker's normspec did not return it."""
        try:
            return str(self._pool.client.scheduler_info()["workers"][address]["name"])
        except Exception:  # as above: its address will do
            return ""

    def _opened(
        self, name: str, members: Sequence[ClusterWorker], lacking: dict[str, str]
    ) -> dict[ClusterWorker, TargetDescription]:
        """The descriptions by the workers that have a target; ``lacking`` receives why the others do not."""
        found: dict[ClusterWorker, TargetDescription] = {}
        answers = self._pool.all_answer([(member, Question(name, question_of("describe"))) for member in members])
        for member, answer in zip(members, answers, strict=True):
            told = pickle.loads(answer) if isinstance(answer, bytes) else answer
            if isinstance(told, TargetDescription):
                found[member] = told
            else:
                words = told.reason if isinstance(told, Lost) else str(told)
                alone = "No module named" in words and name.rpartition(":")[0] in self._pool.files
                hint = "; only the file itself is sent to a cluster, not the files next to it" if alone else ""
                lacking[f"{member} {name}"] = f"worker {member} does not judge {name}: {words}{hint}"
        return found

    def _take_in(self, name: str, found: Mapping[ClusterWorker, TargetDescription]) -> None:
        """Add a target to the workers whose description agrees with the chosen one; the others are noted."""
        for member, described in found.items():
            differs = difference(described, self._described[name])
            if differs:
                self.notes.append(f"worker {member} does not judge {name}: it {differs}")
            else:
                member.targets.add(name)

    def _left_out(self, worker: str, why: str) -> None:
        self.notes.append(f"worker {worker} judges nothing: it {why}")

    def _joined(self, addresses: Sequence[str]) -> None:
        """Start to open the targets on new workers, which then join."""
        self._known.intersection_update(addresses)  # a worker that comes back is new
        new = [address for address in addresses if address not in self._known]
        if new:
            self._known.update(new)
            thread = threading.Thread(target=self._admit, args=(new,), daemon=True, name="normspec: new workers")
            thread.start()

    def _admit(self, addresses: Sequence[str]) -> None:
        try:
            self._take_in_all(addresses)
        except Exception as error:  # perhaps the run is over, and the client is closed
            if not self._over:
                self.notes.append(f"workers that came later judge nothing: {one_line(error)}")

    def _take_in_all(self, addresses: Sequence[str]) -> None:
        threads = self._pool.threads() or {}
        self._known.difference_update(set(addresses) - threads.keys())  # asked again when the workers are next listed
        members, lacking = self._fit({one: threads[one] for one in addresses if one in threads}), dict[str, str]()
        for name in self._names:
            self._take_in(name, self._opened(name, members, lacking))
        self.notes += lacking.values()
        self._pool.members.update({one.address: one for one in members if one.targets})

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._pool.tell(forget)
        self._pool.client.close(timeout=_CONNECTING)

    # -- judging -----------------------------------------------------------------------------------------------

    def units(self, seeds: Iterable[int]) -> Iterator[Unit]:
        """All units, each for one target."""
        return units([self._described[name].offer for name in self._names], seeds, together=False)

    def judged(self, units: Iterable[Unit], listener: UnitListener | None = None) -> Iterator[Judged]:
        """Each unit with its report, as soon as it is judged."""

        def questions() -> Iterator[Question]:
            for unit in units:
                (name,) = unit.targets
                yield Question(name, question_to_judge(unit, self._paces), unit)

        for question, answer in self._pool.answers(questions()):
            report = self._report(question.about, answer)
            yield question.about, report  # first, so that it is kept if Ctrl-C meets the listener
            if listener is not None:
                listener(question.about, finished(question.about, report))

    def _report(self, unit: Unit, answer: bytes | Lost) -> Report:
        """
        The report in an answer, which our own process on a worker wrote.

        Raises the answer if it is a NormspecError, which would have ended a run on this machine too.
        """
        found = answer if isinstance(answer, Lost) else pickle.loads(answer)
        if isinstance(found, NormspecError):
            raise found
        if isinstance(found, Lost):
            request = self._request
            described = self._described[unit.targets[0]]
            told = {"profile": request.profile, "device": request.device, "required": request.required}
            return described.lost(unit, found.reason, **told)
        return found

    def stop(self) -> Sequence[Judged]:
        """The reports so far: workers are told to answer at once, and queued units are cancelled."""
        return [
            (question.about, self._report(question.about, answer))
            for question, answer in self._pool.interrupted(_ANSWERING)
            if isinstance(question.about, Unit)
        ]

    def subjects(self) -> tuple[Mapping[str, Any], ...]:
        """The subjects, as they stand in a report."""
        return tuple(
            {**subject, "slow": self._paces.get(subject["target"], "")}
            for name in self._names
            for subject in self._described[name].subjects
        )

    def explained(self, report: Report) -> Report:
        """The report with causes, and the declarations under which bindings would conform; workers search for them."""
        explained = self._explained(report)
        return attrs.evolve(explained, notes=(*explained.notes, *self.notes))

    def _explained(self, report: Report) -> Report:
        if report.stopped:
            return report
        # A target that was lost may have taken its machine with it.
        failing = dict.fromkeys(one.target for one in report.failures() if one.target not in report.lost)
        questions = []
        for name in failing:
            part = attrs.evolve(
                report,
                results=tuple(one for one in report.results if one.target == name),
                subjects=tuple(one for one in report.subjects if one["target"] == name),
            )
            told = base64.b64encode(pickle.dumps(part)).decode()
            questions.append(Question(name, question_of("explain", report=told, paces=self._paces)))
        found: dict[str, Report] = {}
        for question, answer in self._pool.answers(questions):
            part = answer if isinstance(answer, Lost) else pickle.loads(answer)
            if isinstance(part, Report):
                found[question.target] = part
            else:
                why = part.reason if isinstance(part, Lost) else one_line(part)
                self.notes.append(f"the violations of {question.target} are not explained: {why}")
        explained = {(*_place(one), one.dtype, one.requirement): one for part in found.values() for one in part.results}
        declared = {_place_of(one): one["passes_under"] for part in found.values() for one in part.subjects}
        return attrs.evolve(
            report,
            results=tuple(explained.get((*_place(one), one.dtype, one.requirement), one) for one in report.results),
            subjects=tuple({**one, "passes_under": declared.get(_place_of(one), ())} for one in report.subjects),
            causes=tuple(cause for name in failing if name in found for cause in found[name].causes),
            notes=tuple(dict.fromkeys((*report.notes, *(note for part in found.values() for note in part.notes)))),
        )


def _place(result: Result) -> tuple[str, str, str]:
    return result.target, result.op, result.binding


def _place_of(subject: Mapping[str, Any]) -> tuple[str, str, str]:
    return subject["target"], subject["op"], subject["binding"]


def _content(file: str) -> bytes:
    """The content of a file, to be sent to a cluster. Raises NotImportable."""
    try:
        return Path(os.path.expanduser(file)).read_bytes()  # Path.expanduser raises where there is no such user
    except OSError as error:
        raise NotImportable(f"{file} cannot be read ({error.strerror or error}): give a Python file") from None
