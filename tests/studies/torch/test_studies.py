"""Studies on PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.studies.operators import Operators

from ..quick import outcome, same_conclusion, same_numbers


def test_the_numbers_of_a_deterministic_study_are_those_of_numpy():
    """Every number and the verdict, as they are written."""
    assert same_numbers("depth-dynamics", "torch")


def test_a_study_that_trains_has_the_same_verdict():
    """Training amplifies a rounding error into another path; the conclusion stays."""
    ours, theirs = (outcome("residual-contributions", target).judgement for target in ("numpy", "torch"))
    assert (theirs.verdict, theirs.conditions) == (ours.verdict, ours.conditions)


def test_a_call_is_made_of_a_layer_that_takes_it():
    """x of rank 3 goes to BatchNorm1d, and of rank 4 to BatchNorm2d."""
    operators = Operators.of("torch")
    for shape, name in (((2, 3, 4), "torch.nn.BatchNorm1d"), ((2, 3, 4, 5), "torch.nn.BatchNorm2d")):
        x = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
        assert operators.session("batch_norm", shape, {"eps": 1e-5, "training": True}).binding.name == name
        assert operators.batch_norm(x, eps=1e-5).y.shape == shape


@pytest.mark.parametrize("name", ["norm-axes", "loss-landscape", "covariate-shift"])
def test_what_is_concluded_is_what_numpy_shows(name):
    """Verdict, conditions and reason agree, except for a last digit that rounding moves."""
    assert same_conclusion(name, "torch")


@pytest.mark.parametrize("name", ["eps-matters", "invariances"])
def test_what_is_measured_in_envelopes_has_the_same_verdict(name):
    """An envelope is that of the target's own class of accuracy, and so are the numbers; the verdict is one."""
    assert outcome(name, "torch").judgement.verdict is outcome(name).judgement.verdict
