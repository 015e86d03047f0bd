"""covariate-shift: the verdict, and what turns it."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.studies import covariate_shift
from normspec.studies.operators import Operators
from normspec.studies.study import Scale, Verdict, run

pytestmark = pytest.mark.exhaustive  # NumPy's results do not depend on the Python version

QUICK = Scale(quick=True)


@pytest.fixture(autouse=True)
def _forgotten():
    """Noise that is kept for the next step is not that of another test."""
    covariate_shift._noise.cache_clear()


def test_noise_that_drifts_does_not_take_the_advantage_away():
    """BatchNorm with noise drifts as much as no norm and still ends lower."""
    judgement = run(covariate_shift.STUDY, Operators.of("numpy"), QUICK).judgement
    assert judgement.verdict is Verdict.DOES_NOT_HOLD
    assert "with noise it drifts" in judgement.because


def test_where_noise_ruins_training_the_claim_holds(monkeypatch):
    """Noise fifty times as large drifts more and ends higher: then drift could be the reason."""
    for name in ("SHIFT", "FACTOR", "WITHIN"):
        monkeypatch.setattr(covariate_shift, name, 50 * getattr(covariate_shift, name))
    judgement = run(covariate_shift.STUDY, Operators.of("numpy"), QUICK).judgement
    assert judgement.verdict is Verdict.HOLDS, judgement.because


def test_drift_is_the_distance_of_moments_over_deviations():
    """Units of deviation 1 and 2 whose means move by 1 and 2, with no other change, drift by 1."""
    before = np.array([[[1.0, 2.0], [-1.0, -2.0]]])
    assert covariate_shift._drift([before], [before + np.array([1.0, 2.0])]) == pytest.approx([1.0], rel=1e-15)
