"""norm-axes: the verdict, and what turns it."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.studies import norm_axes
from normspec.studies.operators import Operators
from normspec.studies.study import Scale, Verdict, run

pytestmark = pytest.mark.exhaustive  # NumPy's results do not depend on the Python version

QUICK = Scale(quick=True)


def test_each_normalises_its_own_groups_and_unions_of_these():
    """No others are normalised, by any seed."""
    outcome = run(norm_axes.STUDY, Operators.of("numpy"), QUICK)
    assert outcome.judgement.verdict is Verdict.UNDER_CONDITIONS
    assert "unions of its own groups" in outcome.judgement.because
    facts = {fact.name: fact for fact in outcome.findings.facts}
    assert facts["BatchNorm: change by other samples"].values.min() > 0
    assert not facts["LayerNorm: change by other samples"].values.any()


@pytest.mark.parametrize("fault", ["ln-over-last-axis-only", "ln-over-batch", "bn-running-stats-in-training"])
def test_a_norm_over_other_values_turns_the_verdict(planted, fault):
    """With another axis, other groups are normalised; with running statistics, none is."""
    assert run(norm_axes.STUDY, planted(fault), QUICK).judgement.verdict is Verdict.DOES_NOT_HOLD


def test_unions_are_told_by_the_indices_of_the_groups():
    """A channel's values are unions of those of a channel in each sample; halves differ from channels."""
    assert set(norm_axes.NORMS["InstanceNorm"].unions()) == {
        "channel", "sample", "sample, half of the channels", "whole batch",
    }  # fmt: skip
    assert norm_axes.NORMS["BatchNorm"].unions() == ["whole batch"]
    assert "sample" in norm_axes.NORMS["GroupNorm"].unions()


def test_means_are_those_of_each_group():
    """For 2 samples, 4 channels and 3 positions, against NumPy's means over the axes that a kind leaves out."""
    values = np.arange(24.0).reshape(1, 2, 4, 3) ** 2
    for kind, axes in (("channel", (1, 3)), ("sample", (2, 3)), ("sample, channel", 3), ("sample, position", 2)):
        found = norm_axes._spread(values, kind)
        assert np.allclose(found, values.mean(axis=axes, keepdims=True), rtol=1e-15, atol=0)
    halves = values.reshape(1, 2, 2, 6).mean(axis=3)
    assert np.allclose(norm_axes._spread(values, "sample, half of the channels")[0, :, ::2, 0], halves[0], rtol=1e-15)
