"""The report does not depend on how the work is shared, and nothing that was started is left behind."""

from __future__ import annotations

import threading

import pytest

from normspec import Report
from normspec.conformance.requests.request import Request
from normspec.conformance.running.answering_process import AnsweringProcess, ProcessEnded
from normspec.conformance.running.merging import judged
from normspec.conformance.running.processes import Processes
from normspec.conformance.running.single_process import SingleProcess
from normspec.conformance.running.unit import Unit

REQUEST = Request(
    targets=("numpy",), op=("residual",), framework=None, dtypes=None, device="cpu",
    conventions={}, profile="quick", seed=0,
)  # fmt: skip

UNITS = [
    Unit(operator, dtype, 0, ("one", "other"))
    for operator in ("layer_norm", "residual")
    for dtype in ("float16", "float32")
]


class Planned:
    """An executor whose units end in a given order, each with a lost target and a defect of its own."""

    def __init__(self, order: list[int]) -> None:
        self.order = order

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def units(self, seeds):
        return iter(UNITS)

    def judged(self, units, listener=None):
        for place in self.order:
            name = UNITS[place].targets[place % 2]
            defect = f"of unit {place}"
            yield UNITS[place], Report((), "quick", 0, partial=True, lost=(name,), defects=(defect,))

    def subjects(self):
        return ()

    def explained(self, report):
        return report


def test_the_order_in_which_units_end_does_not_show():
    """Lost targets and defects come in the order of the units, whatever process was faster."""
    first, *others = (judged(REQUEST, Planned(order)) for order in ([0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]))
    assert first.lost == ("one", "other") and len(first.defects) == len(UNITS)
    assert all((one.lost, one.defects) == (first.lost, first.defects) for one in others)


def test_processes_that_were_started_end_where_the_next_is_not_started(monkeypatch):
    """Ctrl-C may come while they are started."""
    started: list[str] = []

    class Started:
        def interrupt(self):
            started.append("interrupted")

        def close(self):
            started.append("closed")

    def start(message):
        if started:
            raise KeyboardInterrupt
        started.append("started")
        return Started()

    monkeypatch.setattr(AnsweringProcess, "started", start)
    with pytest.raises(KeyboardInterrupt):
        Processes(REQUEST, 3).__enter__()
    assert started == ["started", "interrupted", "closed"]


def test_ctrl_c_in_the_listener_keeps_the_unit_that_it_hears_of(monkeypatch):
    """The first unit that is finished is handed on before the listener hears that it is."""

    def pressed(_, event):
        if event.share == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(SingleProcess, "judge", lambda self, unit, listener: Report((), "quick", 0))
    with SingleProcess(REQUEST, prepares=False) as alone:
        found = alone.judged(UNITS, pressed)
        assert next(found)[0] is UNITS[0]
        with pytest.raises(KeyboardInterrupt):
            next(found)


class Other:
    """Another process, which answers every question in the same way."""

    def __init__(self, answer: Report | Exception) -> None:
        self.answer, self.asked = answer, threading.Event()

    def ask(self, _):
        self.asked.set()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def interrupt(self):
        pass

    def close(self):
        pass


class First:
    """The process that is here, which begins when the other has been asked for something."""

    def __init__(self, other: Other) -> None:
        self.other = other

    def measure(self):
        return {}

    def judged(self, units, listener=None):
        assert self.other.asked.wait(60)
        for unit in units:
            yield unit, Report((), "quick", 0, notes=("here",))


@pytest.mark.parametrize("listens", [True, False])
@pytest.mark.parametrize(
    ("answer", "elsewhere", "defects"),
    [
        (Report((), "quick", 0, notes=("there",)), True, 0),
        (ProcessEnded("killed"), False, 0),
        (RuntimeError("a mistake of ours"), False, 1),
    ],
    ids=["judges", "ends", "fails"],
)
def test_every_unit_is_judged_once_whatever_the_other_process_does(monkeypatch, answer, elsewhere, defects, listens):
    """What another process could not judge is judged here, and what it judged is told to the listener."""
    other, heard = Other(answer), []
    monkeypatch.setattr(AnsweringProcess, "started", lambda message: other)
    with Processes(REQUEST, 2, First(other)) as both:
        found = list(both.judged(UNITS, (lambda unit, progress: heard.append(unit)) if listens else None))
    assert {unit for unit, _ in found} == set(UNITS) and len(found) == len(UNITS)
    there = {unit for unit, report in found if report.notes == ("there",)}
    assert bool(there) is elsewhere and set(heard) == (there if listens else set())
    told = [one for _, report in found for one in report.defects]
    assert len(told) == defects and all("a mistake of ours" in one for one in told)
