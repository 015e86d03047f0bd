"""
The result store: kept reports on targets and on their units, each under a key of all that it depends on.

Nothing is taken from it for a target that cannot be followed completely, except units of an interrupted run that the
caller asks to continue.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

import attrs

from ..judging.verdicts import Result, Verdict
from ..kept.store import Store
from ..requests.request import Request
from ..results.report import Report
from ..running.unit import Unit
from .dependencies import Dependencies, dependencies_of
from .installed import Installed
from .pickled import Unreadable, Unwritable, pickled, unpickled

#: Prefixes of keys: for the report on a target, for one on a unit, and for the name of a target's current run.
_WHOLE, _UNIT, _RUN = b"whole", b"unit", b"run"


#: Reasons that may be temporary: another process may have used the memory, the disk or the time.
_TRANSIENT = re.compile(
    "(out|want) of memory|MemoryError|bad_alloc|can.?t allocate|failed to allocate|RESOURCE.?EXHAUSTED|no space left"
    "|took longer|timed? ?out|TimeoutError|SIG[A-Z]{3}|connection (refused|reset)",
    re.IGNORECASE,
)


@attrs.define
class ResultStore:
    """The kept reports on the targets of one request."""

    _store: Store
    _request: Request
    #: The dependencies of each target at the start of the run, by name; and the targets that each also depends on.
    _dependencies: Mapping[str, Dependencies]
    _other_targets: tuple[str, ...]
    #: The random name of the current run of each target with an obstacle. Keys of its units contain the name.
    _runs: dict[str, bytes] = attrs.field(factory=dict)

    @classmethod
    def of(
        cls, store: Store, request: Request, targets: Sequence[str], *, interdependent: bool, resume: bool
    ) -> ResultStore:
        """
        The results of these targets.

        With ``interdependent``, each also depends on the others. With ``resume``, an interrupted run's units are found.
        """
        other_targets = tuple(targets) if interdependent else ()
        there = Installed.now()
        kept = cls(
            store,
            request,
            {name: dependencies_of(request, name, other_targets, there) for name in targets},
            other_targets,
        )
        for name, dependencies in kept._dependencies.items():
            if dependencies.obstacle:
                going_on = store.find(_key(_RUN, dependencies.key)) if resume else None
                kept._runs[name] = going_on or os.urandom(16)
                kept._keep(_key(_RUN, dependencies.key), kept._runs[name])
        return kept

    @classmethod
    def of_one_target(cls, store: Store, request: Request, target: str, *, interdependent: bool) -> ResultStore | None:
        """The results of the units of one target; None if the target cannot be followed completely."""
        other_targets = (target,) if interdependent else ()
        dependencies = dependencies_of(request, target, other_targets, Installed.now())
        return None if dependencies.obstacle else cls(store, request, {target: dependencies}, other_targets)

    # -- targets -----------------------------------------------------------------------------------------------

    def whole(self, name: str) -> Report | None:
        """The whole kept report on a target, causes included; None if the target has to be judged."""
        dependencies = self._dependencies[name]
        return None if dependencies.obstacle else self._found(_key(_WHOLE, dependencies.key), name)

    def keep_whole(self, names: Sequence[str], report: Report) -> None:
        """Keep the report on each target that was judged completely, if all that it depends on is still the same."""
        there = Installed.now()
        for name in names:
            dependencies, alone = self._dependencies[name], report.target(name) if name in report.targets else None
            if alone is None or not _is_final(alone):
                continue
            if dependencies.obstacle:
                self._keep(_key(_RUN, dependencies.key), b"")  # the run is complete: there is nothing to continue
            elif dependencies_of(self._request, name, self._other_targets, there) == dependencies:
                self._keep_report(_key(_WHOLE, dependencies.key), alone)

    # -- units -------------------------------------------------------------------------------------------------

    def unit(self, name: str, unit: Unit, pace: str, foremost: str) -> Report | None:
        """
        The kept report on a target in a unit, from this run or one like it; None if it has to be judged.

        ``pace`` says why fewer cases run on the target. ``foremost`` is the dtype that is checked most thoroughly.
        """
        return self._found(self._unit_key(name, unit, pace, foremost), name)

    def keep_unit(self, name: str, unit: Unit, pace: str, foremost: str, report: Report) -> None:
        """Keep the report on a target in a unit; it is on disk when this returns."""
        alone = report.target(name)
        if _is_final(alone) and self._dependencies[name].files_unchanged():
            self._keep_report(self._unit_key(name, unit, pace, foremost), attrs.evolve(alone, seconds=0.0))

    def _unit_key(self, name: str, unit: Unit, pace: str, foremost: str) -> bytes:
        told = f"{unit.operator} {unit.dtype} {unit.seed} {bool(pace)} {foremost}"
        return _key(_UNIT, self._dependencies[name].units_key, self._runs.get(name, b""), told.encode())

    # -- the underlying store ----------------------------------------------------------------------------------

    def _keep_report(self, key: bytes, report: Report) -> None:
        since = datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
        results = tuple(attrs.evolve(one, kept=one.kept or since) for one in report.results)
        with contextlib.suppress(Unwritable):
            self._keep(key, pickled(attrs.evolve(report, results=results)))

    def _keep(self, key: bytes, data: bytes) -> None:
        self._store.put(key, data)
        self._store.flush()

    def _found(self, key: bytes, name: str) -> Report | None:
        data = self._store.find(key)
        try:
            report = None if data is None else unpickled(data)
        except Unreadable:
            return None
        whole = isinstance(report, Report) and set(report.targets) == {name} and _is_final(report)
        return report if whole else None


def _is_final(report: Report) -> bool:
    """
    Whether the report would be the same another time.

    Time limits, crashes and defects of normspec need not occur again. Nor need exceptions for lack of memory, which
    other processes may have used, nor the end of a search that a busy machine made slow.
    """
    passing = any(_is_transient(one) for one in report.results)
    return not (passing or report.partial or report.lost or report.defects or report.notes or report.cut_short)


def _is_transient(result: Result) -> bool:
    words = (result.reason, *result.declined)
    return result.verdict is Verdict.ERROR or bool(result.traceback) or any(map(_TRANSIENT.search, words))


def _key(*parts: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(4, "little") + part)
    return digest.digest()
