"""A derivative of a derivative that returns another number of values is wrong: it was supplied, and did not raise."""

from __future__ import annotations

import pytest

from normspec.conformance.judging.verdicts import Verdict

from .runs import VARIANT, function, result, run


@pytest.mark.parametrize("change", [lambda found: (*found, found[0]), lambda found: found[:-1]], ids=["more", "fewer"])
def test_second_order_returns_as_many_values_as_there_are(change):
    """Code that hands out one value more or less would else be unsupported, and the run would end in CONFORMS."""
    sound = VARIANT["ln-two-pass"].build()

    def vjp_vjp(*arguments, **settings):
        return change(sound.vjp_vjp(*arguments, **settings))

    report = run(function("layer_norm", sound.call, vjp=sound.vjp, vjp_vjp=vjp_vjp))
    found = result(report, "LN-G9")
    assert found.verdict is Verdict.FAIL
    assert "values in place of three gradients" in found.counterexample.note
