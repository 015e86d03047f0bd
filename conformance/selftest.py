"""The suite against itself: every known fault is killed, no sound variant is accused."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from multiprocessing import get_context
from typing import Any

from ..adapters.loading import load_operators
from ..adapters.targets import check_operators
from ..spec.operators import files_of
from .api import DEFAULT_SEED, checked_dtypes
from .engine import Run
from .faults import Fault
from .faults import registered as faults_there
from .library import Library
from .matrix import FaultRow, Matrix, SoundRow
from .plan import Plan
from .profiles import profile_of
from .progress import Listener, Progress
from .report import Report
from .sound import Sound
from .sound import registered as variants_there
from .specimens import target_of
from .verdicts import Verdict

Row = FaultRow | SoundRow
#: A function of this module and its arguments, so that another process can run it.
Job = tuple[Callable[..., Row], tuple[Any, ...]]


def selftest(
    *,
    op: str | Sequence[str] | None = None,
    dtypes: Iterable[str] | None = None,
    profile: str = "quick",
    seed: int | None = None,
    others: bool = False,
    progress: Listener | None = None,
) -> Matrix:
    """Run the suite against every fault and every sound variant and return the matrix.

    A fault is run on the check of the requirement that must kill it, in each of ``dtypes`` that it declares, all by
    default, or in those it declares where none of ``dtypes`` is one; ``others``: on all checks, to find what else it
    violates, which takes many times as long. Where the profile's cases do not reach it (a size beyond them), it is
    run again with `standard`'s.

    Raises a NormspecError for unknown names.
    """
    operators = check_operators(op)
    wanted = checked_dtypes(dtypes)
    profile_of(profile)
    chosen = DEFAULT_SEED if seed is None else seed
    faults = [f for f in faults_there() if f.operator in operators]
    sound = [s for s in variants_there() if s.operator in operators]
    started = time.perf_counter()
    jobs: list[Job] = []
    for operator in operators:
        jobs += [(judge_sound, (s.name, wanted, profile, chosen)) for s in sound if s.operator == operator]
        jobs += [(judge_fault, (f.name, wanted, profile, chosen, others)) for f in faults if f.operator == operator]
    rows, partial = _in_parallel(jobs, files_of(operators), progress)
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
    """Make a process ready: Ctrl-C is the parent's, and operators from elsewhere are entered."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    load_operators(files)


def _in_parallel(jobs: Sequence[Job], files: tuple[str, ...], listener: Listener | None) -> tuple[list[Row], bool]:
    """Run the jobs, one process a core; on Ctrl-C return what is done, and that it is partial."""
    found: dict[int, Row] = {}
    wrong = 0
    # spawn: a forked child would inherit the threads of whatever framework is loaded.
    with get_context("spawn").Pool(os.cpu_count() or 1, _prepare, (files,)) as pool:
        try:
            for place, row in pool.imap_unordered(_numbered, enumerate(jobs)):
                found[place] = row
                wrong += not row.killed if isinstance(row, FaultRow) else bool(row.accused_by)
                if listener is not None:
                    name = row.fault if isinstance(row, FaultRow) else row.name
                    told = f"{name}; {wrong} not as they should be" if wrong else name
                    listener(Progress(len(found), len(jobs), told))
        except KeyboardInterrupt:
            return [found[place] for place in sorted(found)], True
    return [found[place] for place in sorted(found)], False


def _numbered(numbered: tuple[int, Job]) -> tuple[int, Row]:
    place, (work, arguments) = numbered
    return place, work(*arguments)


#: The libraries of the operator at hand, by operator, profile and seed: its cases and their truths are built once a
#: process for all its faults and sound functions, which come one after the other.
_libraries: dict[tuple[str, str, int], dict[Any, Library]] = {}


def _libraries_of(operator: str, profile: str, seed: int) -> dict[Any, Library]:
    key = operator, profile, seed
    if key not in _libraries:
        _libraries.clear()
    return _libraries.setdefault(key, {})


def _report(specimen: Fault | Sound, dtypes: Sequence[str], profile: str, seed: int, **plan: Any) -> Report:
    conventions = dict(getattr(specimen, "conventions", {}))
    target = target_of(specimen.name, specimen.operator, specimen.build(), conventions)
    shared = _libraries_of(specimen.operator, profile, seed) if profile == "quick" else None
    return Run(
        Plan(
            targets=(target,),
            dtypes=tuple(dtypes),
            device="cpu",
            conventions={},
            profile=profile_of(profile),
            seed=seed,
            explain=False,
            **plan,
        ),
        libraries=shared,
    ).report()


def judge_fault(name: str, dtypes: tuple[str, ...] | None, profile: str, seed: int, others: bool = False) -> FaultRow:
    """Return where the requirement that must kill one fault does; with ``others``, all requirements that kill it."""
    fault = next(f for f in faults_there() if f.name == name)
    shows = tuple(d for d in fault.dtypes if dtypes is None or d in dtypes) or fault.dtypes
    own = frozenset({fault.requirement})
    killed = _killed(_report(fault, shows, profile, seed, requirements=None if others else own))
    for dtype in shows if profile == "quick" else ():
        if (fault.requirement, dtype) not in killed:
            killed |= _killed(_report(fault, (dtype,), "standard", seed, requirements=own))
    return FaultRow(
        fault=fault.name,
        op=fault.operator,
        requirement=fault.requirement,
        killed_by=tuple(dict.fromkeys(requirement for requirement, _ in killed)),
        dtypes=shows,
        survived=tuple(dtype for dtype in shows if (fault.requirement, dtype) not in killed),
        summary=fault.summary,
    )


def _killed(report: Report) -> dict[tuple[str, str], None]:
    """The requirements that are violated, each with the dtype."""
    return {(r.requirement, r.dtype): None for r in report.results if r.verdict.is_violation}


def judge_sound(name: str, dtypes: tuple[str, ...] | None, profile: str, seed: int) -> SoundRow:
    """Return what one sound variant is accused of: a MUST violated, or not judged."""
    variant = next(s for s in variants_there() if s.name == name)
    names = dtypes or ("float16", "bfloat16", "float32", "float64")
    report = _report(variant, names, profile, seed)
    wrong = (Verdict.FAIL, Verdict.ERROR)
    accused = {r.requirement: None for r in report.results if r.level == "MUST" and r.verdict in wrong}
    return SoundRow(variant.name, variant.operator, tuple(accused), variant.summary)
