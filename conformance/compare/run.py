"""The run: every probe of every binding that is compared."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import attrs
import numpy as np

from ...adapters.binding import Binding
from ...adapters.declarations import NOTHING_DECLARED
from ...adapters.dtypes import check_dtype
from ...adapters.frameworks import KNOWN
from ...adapters.remote.host import Limits
from ...adapters.target import Target
from ...adapters.targets import TARGETS, check_operators
from ...spec.errors import CALL_FAILED, TargetRaised, UnknownDtype, Unsupported
from ..cores import cores
from ..engine.progress import Listener, Progress
from ..requests.arguments import (
    declared_of,
    flag_of,
    framework_of,
    interpreters_of,
    limits_of,
    listener_of,
    targets_of,
    text_of,
    texts_of,
)
from ..requests.naming import named_targets
from ..requests.request import Request
from .bench import Bench
from .catalogue import probes_of
from .comparison import Comparison
from .failing import UnclearAnswer, cell_of
from .plain import plain_case
from .probe import Probe
from .table import Cell, Column, Kind, Row, Section

#: What `check` takes, or a Target.
OneTarget = str | os.PathLike[str] | Callable[..., Any] | Target

#: The operators compared by default. Frameworks compose the others from plain arithmetic.
DEFAULT = ("layer_norm", "batch_norm")

#: The limits on targets, unless the caller gives others.
DEFAULT_LIMITS = Limits()

#: After this many losses in one column the target is left alone: each may cost the whole time limit.
LOSSES = 3


def compare(
    targets: OneTarget | Iterable[OneTarget],
    *,
    op: str | Sequence[str] | None = None,
    dtype: str = "float32",
    device: str = "cpu",
    framework: str | None = None,
    all_bindings: bool = False,
    python: str | Mapping[str, str] | None = None,
    time_limit: float | None = DEFAULT_LIMITS.seconds,
    memory_limit: int | None = DEFAULT_LIMITS.memory,
    parameters: Mapping[str, str] | None = None,
    layout: str | None = None,
    fixed: Mapping[str, object] | None = None,
    progress: Listener | None = None,
) -> Comparison:
    """
    Measure what targets do where implementations differ, and return the table.

    ``targets``: several, each as `check` takes it. ``op``: some operators; by default layer_norm and batch_norm.
    ``dtype``: the dtype of every row that is not about another one. ``framework``: the framework whose tensors
    functions take, if their imports do not tell. ``all_bindings``: measure all bindings of an operator that a target
    has, and not only the first. ``python``, ``time_limit``, ``memory_limit``: as in `check`; the time is for one row.
    ``parameters``, ``layout``, ``fixed``: as in `check`, for every layer and function among the targets.
    ``progress`` receives a Progress after every cell.

    Raises a NormspecError, before anything is measured, if the request cannot be carried out.
    """
    return measure(
        targets, op=op, dtype=dtype, device=device, framework=framework, all_bindings=all_bindings, python=python,
        time_limit=time_limit, memory_limit=memory_limit, parameters=parameters, layout=layout, fixed=fixed,
        progress=progress,
    )  # fmt: skip


def measure(
    targets: Any, *, op: Any, dtype: Any, device: Any, framework: Any, all_bindings: Any, python: Any, time_limit: Any,
    memory_limit: Any, parameters: Any, layout: Any, fixed: Any, progress: Any, every_operator: bool = False,
) -> Comparison:  # fmt: skip
    """Like `compare`; ``every_operator``: if no operator is named, take all operators of functions and layers."""
    check_dtype(text_of(dtype, "dtype", "float32"))
    operators = None if op is None else check_operators(texts_of(op, "op", "layer_norm"))
    given = _named(targets, operators)
    request = Request(
        targets=(),
        op=operators,
        framework=framework_of(framework),
        dtypes=None,
        device=text_of(device, "device", "cpu"),
        conventions={},
        profile="quick",
        seed=0,
        pythons=interpreters_of(python),
        limits=limits_of(time_limit, memory_limit, device),
        declared=declared_of(parameters, layout, fixed),
    )
    every, listener = flag_of(all_bindings, "all_bindings"), listener_of(progress)
    opened = _opened(given, request)
    try:
        for target in opened:
            if dtype not in target.dtypes:
                raise UnknownDtype(f"{target.name} has no {dtype}; choose from {', '.join(target.dtypes)}")
        asked = operators or _asked(opened, every_operator)
        return Measuring(_told_apart(opened), asked, dtype, device, every, listener).comparison()
    finally:
        for target in opened:
            if not any(target is one for one in given):
                target.close()


def _named(targets: Any, operators: tuple[str, ...] | None) -> list[Any]:
    """The targets in the order given. A file becomes its functions; an object stays as it is."""
    return [
        one
        for target in targets_of(targets)
        for one in (named_targets((target,), operators) if isinstance(target, str | os.PathLike) else (target,))
    ]


def _opened(given: Sequence[Any], request: Request) -> list[Target]:
    """
    The targets in the order given, opened; a Target stays as it is.

    What is said of functions and layers, their framework and how they are called, does not apply to targets known by
    name, if there are others.
    """
    known_names = [one for one in given if isinstance(one, str) and one in TARGETS]
    functions = [one for one in given if not isinstance(one, Target) and one not in known_names]
    found: dict[int, Target] = {place: one for place, one in enumerate(given) if isinstance(one, Target)}
    about_known = attrs.evolve(request, framework=None, declared=NOTHING_DECLARED if functions else request.declared)
    groups = [(known_names, about_known), (functions, request)]
    if request == about_known:  # open all at once, so that all workers start together
        groups = [([one for one in given if not isinstance(one, Target)], request)]
    try:
        for members, asked in groups:
            if not members:
                continue
            places = [place for place, one in enumerate(given) if place not in found and any(one is m for m in members)]
            opened = attrs.evolve(asked, targets=tuple(given[place] for place in places)).open()
            found.update(zip(places, opened, strict=True))
    except BaseException:
        for place, target in found.items():
            if target is not given[place]:
                target.close()
        raise
    return [found[place] for place in range(len(given))]


def _asked(targets: Sequence[Target], every_operator: bool) -> tuple[str, ...]:
    """
    The operators to measure if none is named: the default ones, if every target has one of these.

    Otherwise, or with ``every_operator``, those of functions and layers; for frameworks, the default ones.
    """
    everyone = all(any(binding.operator in DEFAULT for binding in target.bindings) for target in targets)
    if everyone and not every_operator:
        return DEFAULT
    functions = [target for target in targets if target.name not in KNOWN]
    own = tuple(dict.fromkeys(binding.operator for target in functions for binding in target.bindings))
    return own if len(functions) == len(targets) else tuple(dict.fromkeys((*own, *DEFAULT)))


def _told_apart(targets: list[Target]) -> list[Target]:
    """The targets under different names: a second layer_norm is "layer_norm (2)"."""
    seen: dict[str, int] = {}
    found = []
    for target in targets:
        seen[target.name] = seen.get(target.name, 0) + 1
        number = seen[target.name]
        found.append(target if number == 1 else replace(target, name=f"{target.name} ({number})"))
    return found


@attrs.define
class Measuring:
    """One run in progress."""

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

    def _section(self, operator: str, benches: Sequence[Bench]) -> Section | None:
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
        return Section(operator, tuple(heads), rows)

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
