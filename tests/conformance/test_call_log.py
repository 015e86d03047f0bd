"""The log of a check's calls: it has each call once, and a reading only where the target was called in between."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.adapters.targets import resolve
from normspec.conformance.judging.call_log import LoggingSession
from normspec.spec.errors import TargetRaised

X, SETTINGS = np.array([[1.0, 2.0, 4.0]], np.float32), {"eps": 1e-5, "axes": (-1,)}
INPUTS = {"x": X, "gamma": None, "beta": None}


@pytest.fixture
def session() -> LoggingSession:
    """Calls of NumPy's layer_norm, with a log."""
    target = resolve("numpy", op="layer_norm")
    return LoggingSession(target.session(target.bindings[0]), [])


def done(session: LoggingSession) -> list[tuple[str, int | None]]:
    """What the log says was done, and to which call each entry belongs."""
    return [(call.does, call.of) for call in session.log]


def test_results_read_at_once_are_no_entry(session):
    """Whoever repeats the call by hand has its results then."""
    evaluation = session.start(INPUTS, SETTINGS)
    evaluation.outputs()
    evaluation.outputs()
    pulled = evaluation.pull(X)
    pulled.gradients()
    assert done(session) == [("call", None), ("vjp", 0)]
    assert session.calls == 2


def test_results_read_after_another_call_are(session):
    """That call may have changed them, which is what the check is about."""
    first = session.start(INPUTS, SETTINGS)
    pulled = first.pull(X)
    session.start(INPUTS, SETTINGS)
    first.outputs()
    pulled.gradients()
    first.inputs()
    pulled.cotangent()
    assert done(session)[2:] == [
        ("call", None),
        ("read the outputs again", 0),
        ("read the gradients again", 1),
        ("read the inputs again", 0),
        ("read the cotangent again", 1),
    ]


def test_repetitions_are_one_entry_and_count_each(session):
    """The number of calls of the target is that of its repetitions."""
    session.call(INPUTS, SETTINGS, times=3)
    session.vjp(INPUTS, SETTINGS, X, times=2)
    assert [(call.does, call.times) for call in session.log] == [("call", 3), ("vjp", 2)]
    assert session.calls == 5


def test_an_exception_stands_at_the_call_that_raised_it(session):
    """Its class and its words."""
    session.start(INPUTS, SETTINGS)
    with pytest.raises(TargetRaised):
        session.start({**INPUTS, "gamma": np.ones(2, np.float32)}, SETTINGS)
    session.start(INPUTS, SETTINGS)
    assert [call.raised and call.raised.type for call in session.log] == [None, "ValueError", None]


def test_both_calls_on_one_memory_are_entries(session):
    """The second says how it uses the memory of the first."""
    session.recall(INPUTS, SETTINGS, {"x": X + 1}, fresh=True)
    assert [call.does for call in session.log] == ["call", "call with new tensors on the memory of the last call"]
