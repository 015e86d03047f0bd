"""invariances: the verdict, and what turns it."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from normspec.studies import invariances
from normspec.studies.operators import Operators
from normspec.studies.study import Scale, Verdict, run

pytestmark = pytest.mark.exhaustive  # NumPy's results do not depend on the Python version

QUICK = Scale(quick=True)


def test_the_printed_tables_hold_where_eps_shows_nowhere():
    """Scales cancel with an eps that is negligible beside the variance, but not with a practical eps."""
    judgement = run(invariances.STUDY, Operators.of("numpy"), QUICK).judgement
    assert judgement.verdict is Verdict.UNDER_CONDITIONS
    assert "eps is 0" in judgement.conditions


@pytest.mark.parametrize("fault", ["ln-over-batch", "bn-over-positions-only", "bn-running-stats-in-training"])
def test_another_normalisation_turns_the_verdict(planted, fault):
    """One over other values, or by statistics that are not the batch's, has other invariances than are printed."""
    assert run(invariances.STUDY, planted(fault), QUICK).judgement.verdict is Verdict.DOES_NOT_HOLD


def test_an_eps_that_is_ignored_makes_the_tables_hold(planted):
    """If eps is left out every entry is as printed; for other norms than layer normalisation this is not tested."""
    facts = {one.name: one for one in run(invariances.STUDY, planted("ln-eps-missing"), QUICK).findings.facts}
    assert facts["LayerNorm, eps = 1e-05: the largest residual where the table says invariant"].values.max() <= 1


def test_what_is_no_number_bears_no_table_out():
    """A normalisation that returns NaN is neither invariant nor not, and the tables do not hold for it."""
    facts = {one.name: one for one in run(invariances.STUDY, Operators.of("numpy"), QUICK).findings.facts}
    name = next(one for one in facts if one.startswith("RMSNorm, eps = 2^"))
    facts[name] = attrs.evolve(facts[name], values=np.full(3, np.nan))
    judgement = invariances.judge(facts)
    assert judgement.verdict is Verdict.DOES_NOT_HOLD
    assert name in judgement.because
