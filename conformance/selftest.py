"""The suite against itself: every known fault is killed, no sound variant is accused."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from multiprocessing import get_context
from typing import Any

from ..adapters.targets import check_operators
from .api import DEFAULT_SEED, checked_dtypes
from .engine import Run
from .faults import FAULTS, Fault
from .matrix import FaultRow, Matrix, SoundRow
from .plan import Plan
from .profiles import profile_of
from .progress import Listener, Progress
from .report import Report
from .sound import DECLARED, SOUND, Sound
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
    progress: Listener | None = None,
) -> Matrix:
    """Run the suite against every fault and every sound variant and return the matrix.

    A fault is run in the dtypes in which it shows. One that the profile's cases do not reach (a size
    beyond them) is run again with `standard`'s. Raises a NormspecError for unknown names.
    """
    operators = check_operators(op)
    wanted = checked_dtypes(dtypes)
    profile_of(profile)
    chosen = DEFAULT_SEED if seed is None else seed
    faults = [f for f in FAULTS if f.operator in operators]
    sound = [s for s in (*SOUND, *DECLARED) if s.operator in operators]
    started = time.perf_counter()
    jobs: list[Job] = [(judge_sound, (s.name, wanted, profile, chosen)) for s in sound]
    jobs += [(judge_fault, (f.name, wanted, profile, chosen)) for f in faults]
    rows, partial = _in_parallel(jobs, progress)
    return Matrix(
        faults=tuple(row for row in rows if isinstance(row, FaultRow)),
        sound=tuple(row for row in rows if isinstance(row, SoundRow)),
        profile=profile,
        seed=chosen,
        partial=partial,
        seconds=time.perf_counter() - started,
    )


def _in_parallel(jobs: Sequence[Job], listener: Listener | None) -> tuple[list[Row], bool]:
    """Run the jobs, one process a core; on Ctrl-C return what is done, and that it is partial."""
    found: dict[int, Row] = {}
    failing = 0
    # spawn: a forked child would inherit the threads of whatever framework is loaded. Ctrl-C is the parent's.
    with get_context("spawn").Pool(os.cpu_count() or 1, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        try:
            for place, row in pool.imap_unordered(_numbered, enumerate(jobs)):
                found[place] = row
                failing += not row.killed if isinstance(row, FaultRow) else bool(row.accused_by)
                if listener is not None:
                    name = row.fault if isinstance(row, FaultRow) else row.name
                    listener(Progress(len(found), len(jobs), name, failing))
        except KeyboardInterrupt:
            return [found[place] for place in sorted(found)], True
    return [found[place] for place in sorted(found)], False


def _numbered(numbered: tuple[int, Job]) -> tuple[int, Row]:
    place, (work, arguments) = numbered
    return place, work(*arguments)


def _report(specimen: Fault | Sound, dtypes: Sequence[str], profile: str, seed: int, **plan: Any) -> Report:
    conventions = dict(getattr(specimen, "conventions", {}))
    target = target_of(specimen.name, specimen.operator, specimen.build(), conventions)
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
        )
    ).report()


def judge_fault(name: str, dtypes: tuple[str, ...] | None, profile: str, seed: int) -> FaultRow:
    """Return which requirements kill one fault."""
    fault = next(f for f in FAULTS if f.name == name)
    shows = tuple(d for d in fault.dtypes if dtypes is None or d in dtypes) or fault.dtypes
    killed = _killed(_report(fault, shows, profile, seed))
    if fault.requirement not in killed and profile == "quick":
        again = _report(fault, shows, "standard", seed, requirements=frozenset({fault.requirement}))
        killed |= _killed(again)
    return FaultRow(
        fault=fault.name,
        op=fault.operator,
        requirement=fault.requirement,
        killed_by=tuple(killed),
        summary=fault.summary,
    )


def _killed(report: Report) -> dict[str, None]:
    return {r.requirement: None for r in report.results if r.verdict is Verdict.FAIL}


def judge_sound(name: str, dtypes: tuple[str, ...] | None, profile: str, seed: int) -> SoundRow:
    """Return what one sound variant is accused of: a MUST violated, or not judged."""
    variant = next(s for s in (*SOUND, *DECLARED) if s.name == name)
    names = dtypes or ("float16", "bfloat16", "float32", "float64")
    report = _report(variant, names, profile, seed)
    wrong = (Verdict.FAIL, Verdict.ERROR)
    accused = {r.requirement: None for r in report.results if r.level == "MUST" and r.verdict in wrong}
    return SoundRow(variant.name, variant.operator, tuple(accused), variant.summary)
