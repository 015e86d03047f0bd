"""The functions of a function's own known violations, which its worker evaluates."""

from __future__ import annotations

import pytest

from normspec.spec.errors import TargetRaised

RAISING = """
from normspec import KnownViolation

def layer_norm(x, gamma, beta, *, eps, axes):
    return x

layer_norm_expected = (KnownViolation("LN-F1", "as it is", cases=lambda inputs, settings: inputs["no such"]),)
"""


def test_a_function_of_an_entry_that_raises_loses_no_worker(function, inputs):
    """The judge learns what it raised, and the next call needs no new worker."""
    target = function(RAISING)
    (known,) = target.bindings[0].known_violations
    for _ in range(2):
        with pytest.raises(TargetRaised) as raised:
            known.shows_in(inputs, {"eps": 0.1, "axes": (-1,)})
        assert raised.value.words == "KeyError: 'no such'"
    assert target.host.generation == 0
