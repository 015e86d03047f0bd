"""The measurement: every probe of every binding that is compared."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import attrs
import numpy as np

from ...adapters.binding import Binding
from ...adapters.target import Target
from ...spec.errors import CALL_FAILED, TargetRaised, Unsupported
from ..cores import cores
from ..engine.progress import Listener, Progress
from .bench import Bench
from .catalogue import probes_of
from .comparison import Comparison
from .failing import UnclearAnswer, cell_of
from .plain import plain_case
from .probe import Probe
from .table import Cell, Column, Kind, OperatorTable, Row

#: After this many losses in one column the target is left alone: each may cost the whole time limit.
LOSSES = 3


@attrs.define
class Measuring:
    """One measurement in progress."""

    targets: list[Target]
    operators: tuple[str, ...]
    dtype: str
    device: str
    all_bindings: bool
    listener: Listener | None
    _done: int = 0
    _total: int = 0
    _stopped: bool = False
    #: The columns measured so far.
    _found: dict[Bench, list[Cell]] = attrs.field(factory=dict)
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def comparison(self) -> Comparison:
        """Measure everything; after Ctrl-C, return what is complete."""
        started = time.perf_counter()
        benches = {operator: self._benches(operator) for operator in self.operators}
        self._total = sum(len(found) * len(probes_of(operator)) for operator, found in benches.items())
        self._measure([bench for found in benches.values() for bench in found])
        sections = [self._section(operator, found) for operator, found in benches.items()]
        complete = tuple(section for section in sections if section is not None)
        present = {column.target for section in complete for column in section.columns}
        return Comparison(
            sections=complete,
            dtype=self.dtype,
            device=self.device,
            left_out=() if self._stopped else tuple(t.name for t in self.targets if t.name not in present),
            partial=self._stopped,
            seconds=time.perf_counter() - started,
        )

    def _measure(self, benches: Sequence[Bench]) -> None:
        """
        Fill the columns, one target after the other, because its process and its caches stay warm.

        Targets in processes of their own are measured at the same time, as many as there are processors.
        """
        apart = [target for target in self.targets if _elsewhere(target)]
        with ThreadPoolExecutor(max_workers=cores()) as pool:
            waiting = [pool.submit(self._columns, target, benches) for target in apart]
            try:
                for target in self.targets:
                    if not _elsewhere(target):
                        self._columns(target, benches)
                for one in waiting:
                    one.result()
            except KeyboardInterrupt:
                self._stopped = True
                pool.shutdown(wait=False, cancel_futures=True)
                for target in apart:
                    target.close()  # this ends a call in progress

    def _columns(self, target: Target, benches: Sequence[Bench]) -> None:
        with np.errstate(all="ignore"):  # probes use NaN and infinity; errstate is per thread
            for bench in (one for one in benches if one.target is target):
                self._found[bench] = self._column(bench, probes_of(bench.operator))

    def _benches(self, operator: str) -> list[Bench]:
        found: list[Bench] = []
        for target in self.targets:
            bindings: list[Binding] = [b for b in target.bindings if b.operator == operator and b.seams is None]
            for binding in bindings if self.all_bindings else bindings[:1]:
                bench = Bench(target, binding, self.dtype, self.device)
                _ = bench.opened  # a missing device is reported before any measurement
                found.append(bench)
        return found

    def _section(self, operator: str, benches: Sequence[Bench]) -> OperatorTable | None:
        """The operator's table; None if no target has the operator, or if the table is not complete."""
        probes = probes_of(operator)
        columns = [self._found.get(bench, []) for bench in benches]
        if not columns or any(len(column) < len(probes) for column in columns):
            return None
        rows = tuple(
            Row(one.key, one.title, one.dtype or self.dtype, tuple(column[place] for column in columns))
            for place, one in enumerate(probes)
        )
        heads = (Column(b.target.name, b.binding.name, b.target.framework, b.target.version) for b in benches)
        return OperatorTable(operator, tuple(heads), rows)

    def _column(self, bench: Bench, probes: Sequence[Probe]) -> list[Cell]:
        cells: list[Cell] = []
        for one in probes:
            if self._stopped:
                break
            lost = [cell for cell in cells if cell.kind is Kind.LOST]
            cells.append(lost[-1] if len(lost) >= LOSSES else measured(one, bench))
            with self._lock:
                self._done += 1
                if self.listener is not None:
                    self.listener(Progress(self._done, self._total, f"{bench.binding.name}: {one.title}"))
        return cells


def _elsewhere(target: Target) -> bool:
    """Whether the target lives in a process of its own: its bridge is there and not here."""
    return target.bridge is None


def measured(one: Probe, bench: Bench) -> Cell:
    """The cell of one probe, whatever the target does."""
    try:
        bench.target.begin()
        return one.body(bench if one.dtype is None else bench.at(one.dtype))
    except (*CALL_FAILED, UnclearAnswer) as failure:
        if one.dtype is not None and isinstance(failure, TargetRaised) and failure.stage == "call" and _works(bench):
            failure = Unsupported(f"a call in {one.dtype} raises {failure}")
        return cell_of(failure)


def _works(bench: Bench) -> bool:
    """
    Whether a plain call in the table's own dtype returns. If one in another dtype raises, that dtype is unsupported.
    """
    try:
        bench.outputs(plain_case(bench))
    except CALL_FAILED:
        return False
    return True
