"""The suite against itself: every known fault is killed, no sound variant is accused."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker
from typing import Any

from ...adapters.loading import load_operators
from ...adapters.targets import check_operators
from ...reference.formats import ALL_DTYPES
from ...spec.operators import files_of
from ..api import DEFAULT_SEED, checked_dtypes
from ..cores import cores
from ..diagnosis.causes import diagnosed
from ..engine.engine import Run
from ..engine.progress import Listener, Progress
from ..faults import Fault
from ..faults import registered as faults_there
from ..judging.library import Library
from ..judging.verdicts import Result, Verdict
from ..requests.implementation_targets import implementation_target
from ..requests.plan import Plan
from ..requests.profiles import profile_of
from ..requests.words import names_of
from ..results.report import Report
from ..sound import Sound
from ..sound import registered as variants_there
from .matrix import DiagnosisInDtype, FaultRow, KillInDtype, Matrix, SoundRow

Row = FaultRow | SoundRow
#: A function of this module and its arguments, which another process can run.
Job = tuple[Callable[..., Row], tuple[Any, ...]]


def selftest(
    *,
    op: str | Sequence[str] | None = None,
    dtypes: Iterable[str] | None = None,
    profile: str = "quick",
    seed: int | None = None,
    others: bool = False,
    table: bool = False,
    jobs: int | None = None,
    progress: Listener | None = None,
) -> Matrix:
    """Run the suite against every fault and every sound variant and return the matrix.

    A fault is run on the check of the requirement that must kill it, in each of ``dtypes`` (all by default) that it
    declares. If it declares none of them, it is run in all that it declares. If the profile's cases do not reach it,
    for example because it needs a larger size, it is run again with the cases of `standard`.

    With ``others``, faults are run on all checks to find what else they violate, which takes many times as long. With
    ``table``, faults are also diagnosed, and each dtype says after how many cases the fault was killed, or why the
    fault does not declare it. ``jobs`` is the number of processes, by default one a core.

    Raises a NormspecError for unknown names.
    """
    operators = check_operators(None if op is None else names_of((op,) if isinstance(op, str) else op))
    wanted = None if dtypes is None else checked_dtypes(names_of(dtypes))
    profile_of(profile)
    chosen = DEFAULT_SEED if seed is None else seed
    faults = [f for f in faults_there() if f.operator in operators]
    sound = [s for s in variants_there() if s.operator in operators]
    started = time.perf_counter()
    work: list[Job] = []
    for operator in operators:
        work += [(judge_sound, (s.name, wanted, profile, chosen)) for s in sound if s.operator == operator]
        work += [
            (judge_fault, (f.name, wanted, profile, chosen, others, table)) for f in faults if f.operator == operator
        ]
    rows, partial = _in_parallel(work, files_of(operators), jobs or cores(), progress)
    return Matrix(
        faults=tuple(row for row in rows if isinstance(row, FaultRow)),
        sound=tuple(row for row in rows if isinstance(row, SoundRow)),
        profile=profile,
        seed=chosen,
        whole=others,
        partial=partial,
        seconds=time.perf_counter() - started,
    )


def _prepare(files: tuple[str, ...]) -> None:
    """Prepare a process: leave Ctrl-C to the parent, and load user-defined operators."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    load_operators(files)


@contextmanager
def _without_interruption() -> Iterator[None]:
    """Start processes in which Ctrl-C waits: they import for a second before `_prepare` leaves it to the parent."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # its start, which comes with that of the first process, would end the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _in_parallel(
    jobs: Sequence[Job], files: tuple[str, ...], processes: int, listener: Listener | None
) -> tuple[list[Row], bool]:
    """Run the jobs in several processes. On Ctrl-C return the finished rows, and True for partial."""
    found: dict[int, Row] = {}
    wrong = 0
    # spawn: a forked child would inherit the threads of whatever framework is loaded.
    with _without_interruption():
        started = get_context("spawn").Pool(processes, _prepare, (files,))
    with started as pool:
        try:
            for place, row in pool.imap_unordered(_done_in_order, enumerate(jobs)):
                found[place] = row
                wrong += not row.killed if isinstance(row, FaultRow) else bool(row.accused_by)
                if listener is not None:
                    name = row.fault if isinstance(row, FaultRow) else row.name
                    told = f"{name}; {wrong} not as they should be" if wrong else name
                    listener(Progress(len(found), len(jobs), told))
        except KeyboardInterrupt:
            return [found[place] for place in sorted(found)], True
    return [found[place] for place in sorted(found)], False


def _done_in_order(numbered: tuple[int, Job]) -> tuple[int, Row]:
    place, (work, arguments) = numbered
    return place, work(*arguments)


#: The libraries of the current operator, by operator, profile and seed. Its faults and sound functions run one after
#: the other, so each process builds the cases and their truths only once.
_libraries: dict[tuple[str, str, int], dict[Any, Library]] = {}


def _libraries_of(operator: str, profile: str, seed: int) -> dict[Any, Library]:
    key = operator, profile, seed
    if key not in _libraries:
        _libraries.clear()
    return _libraries.setdefault(key, {})


def _report(specimen: Fault | Sound, dtypes: Sequence[str], profile: str, seed: int, **plan: Any) -> Report:
    return _run(specimen, dtypes, profile, seed, **plan).report()


def _run(
    specimen: Fault | Sound, dtypes: Sequence[str], profile: str, seed: int, *, explain: bool = False, **plan: Any
) -> Run:
    conventions = dict(getattr(specimen, "conventions", {}))
    target = implementation_target(specimen.name, specimen.operator, specimen.build(), conventions)
    shared = _libraries_of(specimen.operator, profile, seed) if profile == "quick" else None
    return Run(
        Plan(
            targets=(target,),
            dtypes=tuple(dtypes),
            device="cpu",
            conventions={},
            profile=profile_of(profile),
            seed=seed,
            explain=explain,
            **plan,
        ),
        libraries=shared,
    )


def judge_fault(
    name: str, dtypes: tuple[str, ...] | None, profile: str, seed: int, others: bool = False, table: bool = False
) -> FaultRow:
    """
    Run one fault on the requirement that must kill it, and return the dtypes in which it was killed.

    With ``others``, also return all requirements that kill it. With ``table``, also return its row of the table of
    kills.
    """
    fault = next(f for f in faults_there() if f.name == name)
    shows = tuple(d for d in fault.dtypes if dtypes is None or d in dtypes) or fault.dtypes
    own = frozenset({fault.requirement})
    killed = _killed(_report(fault, shows, profile, seed, requirements=None if others else own))
    for dtype in shows if profile == "quick" else ():
        if (fault.requirement, dtype) not in killed:
            killed |= _killed(_report(fault, (dtype,), "standard", seed, requirements=own))
    seen = _kills(fault, shows, dtypes or ALL_DTYPES, killed, profile, seed) if table else ()
    return FaultRow(
        fault=fault.name,
        op=fault.operator,
        requirement=fault.requirement,
        killed_by=tuple(dict.fromkeys(requirement for requirement, _ in killed)),
        dtypes=shows,
        survived=tuple(dtype for dtype in shows if (fault.requirement, dtype) not in killed),
        summary=fault.summary,
        seen=seen,
        named=_diagnosed(fault, shows, profile, seed) if table else (),
    )


def _killed(report: Report) -> dict[tuple[str, str], int]:
    """By violated requirement and dtype: the number of cases after which the fault was killed."""
    return {(r.requirement, r.dtype): r.cases for r in report.results if r.verdict.is_violation}


def _kills(
    fault: Fault,
    shows: Sequence[str],
    dtypes: Sequence[str],
    killed: Mapping[tuple[str, str], int],
    profile: str,
    seed: int,
) -> tuple[KillInDtype, ...]:
    """For each dtype, the number of cases after which the fault was killed, or why the fault does not declare it."""
    seen = [KillInDtype(dtype, killed.get((fault.requirement, dtype), 0)) for dtype in dtypes if dtype in shows]
    others = [dtype for dtype in dtypes if dtype not in fault.dtypes]
    results = (
        _report(fault, others, profile, seed, requirements=frozenset({fault.requirement})).results if others else ()
    )
    found = {result.dtype: result for result in results}
    seen += [KillInDtype(dtype, unseen=_why_unseen(fault, found.get(dtype))) for dtype in others]
    return tuple(sorted(seen, key=lambda one: ALL_DTYPES.index(one.dtype)))


def _why_unseen(fault: Fault, result: Result | None) -> str:
    """Why a fault does not declare a dtype, according to this result in it."""
    if result is None:
        return f"{fault.requirement} is not about it"
    if result.verdict.is_violation:
        return f"{fault.requirement} is violated here too, on case {result.cases}: no promise that it always is"
    if result.verdict in (Verdict.NOT_EXERCISED, Verdict.UNSUPPORTED, Verdict.ERROR):
        return result.reason
    if not result.ratio:
        return "nothing that it returns is wrong"
    return f"what it returns is wrong by no more than {result.ratio:.2g} envelopes"


def _diagnosed(fault: Fault, shows: Sequence[str], profile: str, seed: int) -> tuple[DiagnosisInDtype, ...]:
    """
    The diagnosis of a fault in each of these dtypes, as in a user's run over all of them, where each helps the next.

    The requirement that must kill the fault counts as a MUST. In dtypes in which the profile's cases do not reach the
    fault, the cases of `standard` are used.
    """
    own = frozenset({fault.requirement})
    run = _run(fault, shows, profile, seed, explain=True, required=own)
    report = run.report()
    missed = tuple(dtype for dtype in shows if (fault.requirement, dtype) not in _killed(report))
    if missed != tuple(shows):
        found = {one.dtype: one for one in _diagnoses(diagnosed(run, report), shows)}
    else:
        found = {}
    if missed:
        run = _run(fault, missed, "standard", seed, explain=True, required=own)
        found |= {one.dtype: one for one in _diagnoses(diagnosed(run, run.report()), missed)}
    return tuple(found[dtype] for dtype in shows)


def _diagnoses(report: Report, dtypes: Sequence[str]) -> Iterator[DiagnosisInDtype]:
    """The diagnosis in each of these dtypes, from a report with causes."""
    for dtype in dtypes:
        violated = [one for one in report.results if one.verdict is Verdict.FAIL and one.dtype == dtype]
        yield DiagnosisInDtype(
            dtype,
            tuple(cause.faults for cause in report.causes if dtype in cause.dtypes),
            tuple(dict.fromkeys(one.requirement for one in violated if not one.follows_from)),
            sum(bool(one.follows_from) for one in violated),
        )


def judge_sound(name: str, dtypes: tuple[str, ...] | None, profile: str, seed: int) -> SoundRow:
    """Run one sound variant, and return the MUSTs that it violates or could not be judged on."""
    variant = next(s for s in variants_there() if s.name == name)
    names = dtypes or ALL_DTYPES
    report = _report(variant, names, profile, seed)
    wrong = (Verdict.FAIL, Verdict.ERROR)
    musts = [r for r in report.results if r.level == "MUST"]
    accused = {r.requirement: None for r in musts if r.verdict in wrong}
    largest = max(musts, key=lambda r: r.ratio or 0.0, default=None)
    where = ("", "") if largest is None else (largest.requirement, largest.dtype)
    ratio = None if largest is None else largest.ratio
    return SoundRow(variant.name, variant.operator, tuple(accused), variant.summary, ratio, where)
