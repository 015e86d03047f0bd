"""Which unit a process gets next."""

from __future__ import annotations

from normspec.conformance.running.unit import Unit
from normspec.conformance.running.unit_queue import UnitQueue


def _queue(*units: tuple[str, str, int]) -> UnitQueue:
    return UnitQueue(Unit(operator, dtype, seed, ("torch",)) for operator, dtype, seed in units)


def _taken(queue: UnitQueue, *processes: int) -> list[tuple[str, str] | None]:
    found = [queue.take(process) for process in processes]
    return [None if unit is None else (unit.operator, unit.dtype) for unit in found]


def test_a_process_keeps_to_its_operator():
    """It has what the operator's other dtypes need. The second takes the next operator."""
    queue = _queue(*((operator, dtype, 0) for operator in ("mhc", "highway") for dtype in ("float32", "float64")))
    assert _taken(queue, 0, 1, 0, 1) == [
        ("mhc", "float32"),
        ("highway", "float32"),
        ("mhc", "float64"),
        ("highway", "float64"),
    ]
    assert _taken(queue, 0, 1) == [None, None]


def test_no_process_waits_while_there_is_work():
    """If all operators are taken, the last unit is shared: its owner would have met it last."""
    queue = _queue(("mhc", "float16", 0), ("mhc", "float32", 0), ("mhc", "float64", 0))
    assert _taken(queue, 0, 1, 0) == [("mhc", "float16"), ("mhc", "float64"), ("mhc", "float32")]


def test_a_seed_is_done_before_the_next_begins():
    """A process takes no unit of the next seed for its operator's sake."""
    queue = _queue(("mhc", "float32", 0), ("highway", "float32", 0), ("highway", "float64", 0), ("mhc", "float32", 1))
    assert _taken(queue, 0, 1, 0, 0) == [
        ("mhc", "float32"),
        ("highway", "float32"),
        ("highway", "float64"),
        ("mhc", "float32"),
    ]


def test_nothing_is_taken_after_the_end():
    """Ctrl-C drops what is left."""
    queue = _queue(("mhc", "float32", 0), ("mhc", "float64", 0))
    assert _taken(queue, 0) == [("mhc", "float32")]
    queue.clear()
    assert _taken(queue, 0, 1) == [None, None]
