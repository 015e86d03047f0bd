"""The report does not depend on how the work is shared, and nothing that was started is left behind."""

from __future__ import annotations

import pytest

from normspec import Report
from normspec.conformance.requests.request import Request
from normspec.conformance.running.judging import judged
from normspec.conformance.running.judging_process import JudgingProcess
from normspec.conformance.running.processes import Processes
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

    monkeypatch.setattr(JudgingProcess, "started", start)
    with pytest.raises(KeyboardInterrupt):
        Processes(REQUEST, 3).__enter__()
    assert started == ["started", "interrupted", "closed"]
