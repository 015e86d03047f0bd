"""Hypothesis strategies for properties of a user's own."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

import normspec
from normspec.spec.errors import NormspecError, UnknownDtype, UnknownOperator
from normspec.testing import OutsideEnvelope
from normspec.testing.strategies import NoHypothesis, cases

hypothesis = pytest.importorskip("hypothesis")

#: One run is as good as another, and none looks for constants in our files, which takes seconds.
FEW = hypothesis.settings(
    max_examples=100,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(hypothesis.HealthCheck),
    phases=set(hypothesis.Phase) - {hypothesis.Phase.explain},
)


def normalised(x, gamma, beta, root):
    """layer_norm over the last axis, with the root given as a function."""
    d = x - x.mean(-1, keepdims=True)
    y = d / root(np.square(d).mean(-1, keepdims=True))
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def test_a_mistake_shrinks_to_one_short_group_and_explains_itself():
    """eps outside the root is found, in one group of at most four values; the case shows its content."""
    found = []

    @FEW
    @hypothesis.given(case=normspec.strategies.cases("layer_norm", dtypes=["float32"]))
    def property_of_ones_own(case):
        x, gamma, beta = case.inputs.values()
        if len(case.settings["axes"]) == 1:
            try:
                with np.errstate(all="ignore"):
                    eps = np.float32(case.settings["eps"])
                    case.judge(normalised(x, gamma, beta, lambda variance: np.sqrt(variance) + eps))
            except AssertionError:
                found.append(case)
                raise

    with pytest.raises(OutsideEnvelope) as caught:
        property_of_ones_own()
    told = re.search(r"case=layer_norm in float32, 1 group of (\d+) \(\w+\): x=", "".join(caught.value.__notes__))
    assert told is not None
    assert int(told[1]) <= 4
    assert min(case.inputs["x"].size for case in found) == int(told[1])
    assert "Divides by sqrt(var) + eps." in str(caught.value)


@pytest.mark.parametrize("op", ["layer_norm", "rms_norm", "batch_norm", "group_norm", "instance_norm"])
def test_sound_functions_have_the_property(op):
    """The NumPy implementation passes on all cases, gradients too, and most of them are judged."""
    from normspec.adapters.numpy.operators import IMPLEMENTATIONS

    made, judged = IMPLEMENTATIONS[op]().implementation(), []

    @hypothesis.settings(FEW, max_examples=30)
    @hypothesis.given(case=cases(op))
    def property_of_ones_own(case):
        with np.errstate(all="ignore"):
            outputs = made.call(*case.inputs.values(), **case.settings)
            gradients = made.vjp(*case.inputs.values(), case.g, **case.settings)
        found = case.judge(*(outputs if isinstance(outputs, tuple) else (outputs,)))
        judged.append(found["y"].judged > 0)
        case.judge_gradients(*gradients)

    property_of_ones_own()
    assert np.mean(judged) > 0.5


def test_what_cannot_be_drawn_is_one_clear_error(monkeypatch):
    """An operator that takes parts, an unknown dtype, and missing Hypothesis."""
    with pytest.raises(UnknownOperator, match="highway is handed parts"):
        cases("highway")
    with pytest.raises(UnknownDtype, match="float8"):
        cases("layer_norm", dtypes=["float8"])
    for wrong, told in (("float8", "unknown dtype 'float8'"), ([], "dtypes is empty"), (7, "dtypes is of type int")):
        with pytest.raises(NormspecError, match=told):
            cases("layer_norm", dtypes=wrong)
    with pytest.raises(NormspecError, match="op is of type list: give a text"):
        cases(["layer_norm"])
    for longest in (0, "all", True):
        with pytest.raises(ValueError, match=f"longest is {longest!r}: pass a whole number from 1 on"):
            cases("layer_norm", longest=longest)
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(NoHypothesis, match=r"python -m pip install '\.\[hypothesis\]'"):
        cases("layer_norm")
