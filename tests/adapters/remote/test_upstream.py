"""The framework's own layers in a worker: asked for once, called like the target's, and gone with a lost worker."""

from __future__ import annotations

import numpy as np

LAYER_NORM = {"eps": 0.1, "axes": (-1,)}

#: A function whose framework has a layer of its own, which returns 2 x.
TWICE = """
import os
import normspec.adapters.target
from normspec.adapters.binding import Binding
from normspec.adapters.known import KnownViolation

def layer_norm(x, gamma, beta, *, eps, axes):
    if x.max() > 1e9:
        os._exit(3)
    return x

def twice(x, gamma, beta, *, eps, axes):
    return 2 * x

def own(framework, operator):
    {}
    known = KnownViolation("LN-F1", "it returns 2 x", cases=lambda inputs, settings: inputs["beta"] is None)
    return (Binding(operator, f"{{framework}} twice", twice, known_violations=(known,)),)

normspec.adapters.target.upstream_bindings = own
"""


def test_a_layer_of_the_framework_is_described_and_called(function, inputs):
    """Beside the function itself, and its entries are asked in the worker."""
    target = function(TWICE.format("pass"))
    (binding,) = target.upstream("layer_norm")
    (known,) = binding.known_violations
    assert (binding.name, known.reason) == ("numpy twice", "it returns 2 x")
    assert known.shows_in({**inputs, "beta": None}, LAYER_NORM)
    assert not known.shows_in(inputs, LAYER_NORM)
    for one, factor in ((binding, 2), (target.bindings[0], 1)):
        outputs = target.session(one).start(inputs, LAYER_NORM).outputs()
        np.testing.assert_array_equal(outputs["y"], factor * inputs["x"])


def test_it_is_asked_for_again_where_a_worker_was_lost(function, call, inputs):
    """A new worker does not know it otherwise; while the worker lives it is asked for once."""
    target = function(TWICE.format("pass"))
    first = target.upstream("layer_norm")
    asked = target.host.requests
    assert target.upstream("layer_norm") is first and target.host.requests == asked
    target.close()
    call(target)
    (binding,) = target.upstream("layer_norm")
    outputs = target.session(binding).start(inputs, LAYER_NORM).outputs()
    np.testing.assert_array_equal(outputs["y"], 2 * inputs["x"])


def test_a_worker_that_dies_of_it_is_not_asked_again(function, call):
    """The function itself is called as before."""
    target = function(TWICE.format("os._exit(3)"))
    assert target.upstream("layer_norm") == ()
    assert call(target)["y"].shape == (4, 7)
    generation = target.host.generation
    assert target.upstream("layer_norm") == ()
    assert target.host.generation == generation == 1
    target.close()  # as after a loss for another reason
    assert call(target)["y"].shape == (4, 7)
    assert target.upstream("layer_norm") == ()
    assert target.host.generation == 2


def test_an_entry_that_makes_no_sense_is_left_out(function, call, monkeypatch):
    """It decides nothing, and is no defect."""
    target = function(TWICE.format("pass"))
    said = {"bindings": [{"operator": "layer_norm", "name": "odd", "known": [
        {"requirement": "LN-F1", "reason": "", "failures": ["bogus"]}]}], "place": 1}  # fmt: skip
    monkeypatch.setattr(target.host, "aside", lambda message: said)
    assert target.upstream("layer_norm") == ()
