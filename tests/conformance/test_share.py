"""The share of a run that is done: the total is known beforehand, whichever process judges the units."""

from __future__ import annotations

import normspec
from normspec.conformance.engine.progress import Progress
from normspec.conformance.running.share import Share
from normspec.conformance.running.unit import Unit

FIRST, SECOND = (Unit("layer_norm", dtype, 0, ("f", "g")) for dtype in ("float32", "float64"))
SUBJECTS = tuple({"target": name, "op": "layer_norm", "binding": name} for name in ("f", "g"))


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def test_the_total_is_known_before_anything_is_judged():
    """Units that are judged at the same time add up, and the rest is estimated from the finished work."""
    heard: list[Progress] = []
    clock = Clock()
    share = Share((FIRST, SECOND), SUBJECTS, heard.append, clock)
    share(FIRST, Progress(0, 2, "f layer_norm float32"))
    clock.now += 10
    share(FIRST, Progress(1, 2, "g layer_norm float32", 1))
    share(SECOND, Progress(1, 1, "another process", 2))
    share(FIRST, Progress(2, 2, "g layer_norm float32", 3))
    assert [event.share for event in heard] == [0, 0.25, 0.75, 1]
    assert len({event.total for event in heard}) == 1
    assert [event.violations for event in heard] == [0, 1, 3, 5]
    assert [event.seconds_left for event in heard] == [None, 30, 10 / 3, 0]


def test_a_run_of_several_processes_tells_its_whole_share():
    """Another process's work counts like this one's: the last share is all of it."""
    heard: list[Progress] = []
    options = {"dtypes": ("float32", "float64"), "profile": "quick", "only": ("LN-F1", "LN-F2")}
    report = normspec.check("sound:ln-two-pass", jobs=2, progress=heard.append, **options)
    assert report.conforms
    shares = [event.share for event in heard]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert len({event.total for event in heard}) == 1
