"""eps-matters: the verdict, and what turns it."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.studies.eps_matters import BESIDE, EPS, LEFT_OUT, STUDY, _forms
from normspec.studies.operators import Operators
from normspec.studies.study import Scale, Verdict, run

pytestmark = pytest.mark.exhaustive  # NumPy's results do not depend on the Python version

QUICK = Scale(quick=True)


def test_eps_shows_below_some_variance_in_each_dtype():
    """The wider the dtype, the larger the variance has to be for eps to show nowhere."""
    outcome = run(STUDY, Operators.of("numpy"), QUICK)
    assert outcome.judgement.verdict is Verdict.UNDER_CONDITIONS
    facts = {fact.name: fact for fact in outcome.findings.facts}
    needed = [
        facts[f"{one}: variance from which {LEFT_OUT} is the same"].median for one in ("float16", "float32", "float64")
    ]
    assert needed == sorted(needed)
    assert needed[0] < needed[-1] / 2**20


@pytest.mark.parametrize(
    ("fault", "because"),
    [
        ("ln-eps-missing", "not stable"),
        ("ln-eps-on-std", "does not stand in the root"),
        ("ln-eps-double", "does not stand in the root"),
    ],
)
def test_another_formula_turns_the_verdict(planted, fault, because):
    """Without eps constant groups are not finite; with eps elsewhere, or another eps, results are others."""
    judgement = run(STUDY, planted(fault), QUICK).judgement
    assert judgement.verdict is Verdict.DOES_NOT_HOLD
    assert because in judgement.because


def test_the_gradient_of_each_formula_is_its_derivative():
    """The gradient of the formula with eps outside the root is that of central differences of its y."""
    x, g = np.array([[[1.0, 2.0, 4.0, 8.0]]]) / 64, np.array([[[1.0, -2.0, 0.5, 3.0]]])
    for name in (BESIDE, LEFT_OUT):
        step, found = 2.0**-26, np.zeros(4)
        for place in range(4):
            moved = np.zeros(4)
            moved[place] = step
            ahead, behind = (_forms(x + sign * moved, g)[name].y for sign in (1, -1))
            found[place] = ((ahead - behind) * g).sum() / (2 * step)
        # Central differences err by step^2 times a third derivative, and by 2^-52 / step.
        np.testing.assert_allclose(_forms(x, g)[name].dx[0, 0], found, rtol=2.0**-18)
    assert EPS == 1e-5
