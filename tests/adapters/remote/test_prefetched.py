"""Requests made ahead: several are sent in one message, and later single requests find the replies."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from normspec.adapters.remote.prefetched import Prefetched
from normspec.spec.errors import TargetLost, TargetRaised, Unsupported

LAYER_NORM = {"eps": 0.1, "axes": (-1,)}

#: Says how many calls there have been, raises for x = 1 and x = 3, and ends its process for x = 2.
COUNTING = """
    import os

    calls = [0]

    def layer_norm(x, gamma, beta, *, eps, axes):
        calls[0] += 1
        if (x == 1).all():
            raise ValueError("one")
        if (x == 3).all():
            raise MemoryError("three")
        if (x == 2).all():
            os._exit(3)
        return x * 0 + calls[0]
"""

#: The same, and does not return for x = 2.
HANGING = COUNTING.replace("os._exit(3)", "__import__('time').sleep(60)")


def _of(value):
    return {"x": np.full((2, 3), float(value)), "gamma": None, "beta": None}


@pytest.fixture
def target(function):
    """A function that counts its calls, in a worker."""
    return function(COUNTING)


@pytest.fixture
def session(target):
    """A session of it."""
    return target.session(target.bindings[0])


@pytest.fixture
def sent(target, monkeypatch):
    """The messages sent to the worker from now on."""
    worker, found = target.host._worker, []
    send = worker.send

    def noted(message, seconds):
        found.append(message["do"])
        send(message, seconds)

    monkeypatch.setattr(worker, "send", noted)
    return found


def _called(session, value):
    return session.call(_of(value), LAYER_NORM)[0]["y"][0, 0]


def test_the_calls_made_next_find_their_replies(session, sent):
    """Calls that were asked ahead are made once, all in one request, in their order."""
    session.prefetch(partial(_called, session, value) for value in (5, 6, 7))
    assert sent == ["several"]
    assert [_called(session, value) for value in (5, 6, 7)] == [1, 2, 3]
    assert sent == ["several"]
    assert _called(session, 5) == 4, "a reply is found once"


def test_another_call_ends_it(session, sent):
    """Replies are those to the very requests that are made, or they are let go of."""
    session.prefetch(partial(_called, session, value) for value in (5, 6, 7))
    assert [_called(session, value) for value in (5, 8, 7)] == [1, 4, 5]
    assert sent == ["several", "call", "call"]


def test_one_call_is_not_asked_ahead(session, sent):
    """A single call goes there as it is."""
    session.prefetch([partial(_called, session, 5)])
    assert sent == []
    assert _called(session, 5) == 1


def test_what_a_call_raises_is_raised_where_it_is_made(session, sent):
    """An exception belongs to its call, and the calls after it have been made."""
    session.prefetch(partial(_called, session, value) for value in (5, 1, 6))
    assert _called(session, 5) == 1
    with pytest.raises(TargetRaised, match="one"):
        _called(session, 1)
    assert _called(session, 6) == 3
    assert sent == ["several"]


def test_a_loss_belongs_to_the_call_that_is_to_blame(session):
    """Where the worker dies ahead, each call is made by itself, and that which kills it is lost once."""
    session.prefetch(partial(_called, session, value) for value in (5, 2, 6))
    assert _called(session, 5) == 1
    with pytest.raises(TargetLost, match="exit status 3"):
        _called(session, 2)
    assert sum(session.host.losses.values()) == 1
    assert _called(session, 6) == 1


def test_a_call_that_takes_too_long_is_to_blame_alone(function):
    """Its time is not counted against the calls that were asked together with it, nor is any of them lost for it."""
    target = function(HANGING, seconds=1.0)
    session = target.session(target.bindings[0])
    target.begin()
    assert not session.prefetch(partial(_called, session, value) for value in (5, 2))
    assert _called(session, 5) == 1
    target.begin()
    with pytest.raises(TargetLost, match="took longer"):
        _called(session, 2)
    target.begin()
    assert _called(session, 5) == 1


def test_a_loss_that_the_worker_survives_ends_it_too(target, session):
    """A call that is out of memory ends its worker where it is asked ahead, and again where it is made by itself."""
    session.prefetch(partial(_called, session, value) for value in (5, 3, 6))
    assert _called(session, 5) == 1
    with pytest.raises(TargetLost, match="out of memory"):
        _called(session, 3)
    assert target.host.generation == 2
    assert _called(session, 6) == 1


def test_what_is_asked_of_an_evaluation_that_was_not_made_ends_no_worker(target, session):
    """A call that raises leaves nothing to read. The worker goes on, and the calls after it keep their replies."""

    def asked(value):
        evaluation = session.start(_of(value), LAYER_NORM)
        yield evaluation.inputs
        pulled = evaluation.pull(np.ones((2, 3)))
        yield pulled.cotangent
        yield partial(_called, session, 5)

    assert session.prefetch(asked(1))
    with pytest.raises(TargetRaised, match="one"):
        session.start(_of(1), LAYER_NORM).outputs()
    assert target.host.generation == 0
    assert session.prefetch(asked(4))  # a function in NumPy has no gradients of its own
    evaluation = session.start(_of(4), LAYER_NORM)
    assert (evaluation.inputs()["x"] == 4).all()
    with pytest.raises(Unsupported):
        evaluation.pull(np.ones((2, 3))).gradients()
    assert target.host.generation == 0


def test_replies_that_a_check_leaves_are_not_found_by_the_next(target, session):
    """A check that ends early leaves replies behind; the next one has calls of its own made."""
    session.prefetch(partial(_called, session, value) for value in (5, 6))
    target.begin()
    assert [_called(session, value) for value in (5, 6)] == [3, 4]


def test_replies_that_are_kept_are_found_in_any_order(session, sent):
    """Each is found once, whatever is asked in between."""
    session.prefetch((partial(_called, session, value) for value in (5, 6, 7)), keep=True)
    assert [_called(session, value) for value in (7, 8, 5, 6, 5)] == [3, 4, 1, 2, 5]
    assert sent == ["several", "call", "call"]


def test_evaluations_are_read_as_they_were_then(opened):
    """start, pull and later reads are requested ahead too, each in the state between the requests around it."""
    target = opened("numpy")
    session = target.session(next(one for one in target.bindings if one.operator == "layer_norm"))
    inputs = {**_of(0), "x": np.arange(6.0).reshape(2, 3)}

    def asked():
        evaluation = session.start(inputs, LAYER_NORM)
        yield evaluation.inputs
        pulled = evaluation.pull(inputs["x"])
        yield pulled.cotangent
        yield evaluation.outputs

    def made():
        evaluation = session.start(inputs, LAYER_NORM)
        first, given = evaluation.outputs(), evaluation.inputs()
        pulled = evaluation.pull(inputs["x"])
        return first, given, pulled.gradients(), {"g": pulled.cotangent()}, evaluation.outputs()

    alone, before = made(), target.host.requests
    session.prefetch(asked())
    worker, sent = target.host._worker, []
    send, worker.send = worker.send, lambda *message: sent.append(message)
    together = made()
    worker.send = send
    assert not sent
    assert target.host.requests - before == 5, "each counts, however it was asked"
    for one, other in zip(alone, together, strict=True):
        assert one.keys() == other.keys()
        for name, value in one.items():
            np.testing.assert_array_equal(value, other[name])


def test_a_worker_that_takes_one_request_at_a_time_is_asked_so(session, sent):
    """Workers in other languages need not know the request for several."""
    session.host._several = False
    session.prefetch(partial(_called, session, value) for value in (5, 6))
    assert sent == []
    assert [_called(session, value) for value in (5, 6)] == [1, 2]


def test_requests_are_alike_to_the_last_bit():
    """Zeros of another sign, another dtype or another shape are another request; NaN is itself."""
    given = {"do": "call", "x": np.array([0.0, np.nan]), "eps": float("nan"), "axes": (-1,)}
    others = (
        {**given, "x": np.array([-0.0, np.nan])},
        {**given, "x": given["x"].astype(np.float32)},
        {**given, "x": given["x"][None]},
        {**given, "eps": 0.0},
        {**given, "axes": (-2, -1)},
        {"do": "call"},
    )
    for other in ({**given, "x": given["x"].copy(), "axes": [-1]}, *others):
        for held in (Prefetched.ordered, Prefetched.unordered):
            prefetched = Prefetched()
            held(prefetched, [given], ["reply"])
            assert prefetched.reply_to(other) == (None if any(other is one for one in others) else "reply")


def test_a_reply_is_kept_until_its_request_comes():
    """Requests that differ in one setting have a reply each, and neither takes one of the ordered replies."""
    training, inference = ({"do": "call", "inputs": {"x": np.ones(3)}, "mode": mode} for mode in ("a", "b"))
    for first, then in ((training, inference), (inference, training)):
        prefetched = Prefetched()
        prefetched.unordered([training, inference], ["a", "b"])
        prefetched.ordered([{"do": "pull"}, {"do": "pull", "keep": True}], ["c", "d"])
        assert [prefetched.reply_to(one) for one in (first, then)] == [first["mode"], then["mode"]]
        assert [prefetched.reply_to({"do": "pull", **more}) for more in ({}, {"keep": True})] == ["c", "d"]
        assert prefetched.reply_to(first) is None


def test_a_plan_ends_where_something_unexpected_is_raised():
    """A call that reads its result is planned up to there; a defect of ours shows where the call is made."""
    prefetched = Prefetched()

    def request():
        return prefetched.collect({"do": "call"})

    uses = (dict, len, bool, iter, lambda found: found["y"], lambda found: found.items(), lambda found: "y" in found)
    for use in uses:
        assert len(prefetched.requests_of([request, partial(lambda use: use(request()), use), request])) == 3
    assert len(prefetched.requests_of([request, lambda: 1 / 0, request])) == 1


def test_there_is_something_to_do_while_a_worker_imports(function):
    """Steps are made one after the other until the worker answers, or none is left."""
    target = function(COUNTING)
    steps = iter(range(1, 4))
    target.host.close()
    target.host.opened(steps)
    assert next(steps, None) is None, "it takes longer to start Python"
