"""A verdict is computed: it turns where the opposite is planted."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.studies import norm_position
from normspec.studies.catalogue import STUDIES
from normspec.studies.study import Fact, Scale, Verdict, run

from .planted import lost, without_skips
from .quick import outcome


@pytest.mark.exhaustive  # NumPy's results do not depend on the Python version
@pytest.mark.parametrize("name", ["gradient-flow", "depth-dynamics", "residual-contributions"])
def test_the_verdict_turns_where_skip_paths_are_dropped(name):
    """A claim that holds, perhaps under conditions, does not hold for blocks that have lost the part it is about."""
    assert outcome(name).judgement.verdict is not Verdict.DOES_NOT_HOLD
    assert run(STUDIES[name], without_skips(), Scale(quick=True)).judgement.verdict is Verdict.DOES_NOT_HOLD


@pytest.mark.exhaustive  # NumPy's results do not depend on the Python version
@pytest.mark.parametrize("name", STUDIES)
def test_no_claim_holds_of_results_that_are_lost(name):
    """A NaN is neither small nor large, and counts for no claim, under no condition."""
    assert run(STUDIES[name], lost(), Scale(quick=True)).judgement.verdict is Verdict.DOES_NOT_HOLD


def facts_of_norm_position(p: dict[tuple[str, float], float], larger: float) -> dict[str, Fact]:
    """The facts of its rule: how certain it is that a warm-up is needed, and which gradient is larger."""
    named = {f"{kind} at {rate}: p of the difference": value for (kind, rate), value in p.items()}
    return {name: Fact(name, value) for name, value in {norm_position.LARGER: larger, **named}.items()}


@pytest.mark.parametrize(
    ("pre", "post", "larger", "verdict"),
    [
        ((1, 1, 1), (0, 0, 0), 4, Verdict.HOLDS),
        ((1, 1, 0), (1, 0, 0), 4, Verdict.UNDER_CONDITIONS),
        ((1, 1, 1), (1, 1, 1), 4, Verdict.DOES_NOT_HOLD),
        ((0, 0, 0), (0, 0, 0), 4, Verdict.DOES_NOT_HOLD),
        ((1, 1, 1), (0, 0, 0), 0.5, Verdict.DOES_NOT_HOLD),
    ],
)
def test_norm_position_turns_with_who_needs_a_warm_up(pre, post, larger, verdict):
    """It requires that post-norm needs one and pre-norm does not, at equal rates, and the gradient that explains it."""
    p = {("pre-norm", rate): one for rate, one in zip(norm_position.RATES, pre, strict=True)}
    p |= {("post-norm", rate): one for rate, one in zip(norm_position.RATES, post, strict=True)}
    judged = norm_position.STUDY.judge(facts_of_norm_position(p, larger))
    assert judged.verdict is verdict
    if verdict is Verdict.UNDER_CONDITIONS:
        assert judged.conditions == f"the rate is {norm_position.RATES[1]}"


def test_the_sign_test_counts_pairs_that_differ():
    """Five of five pairs happen by chance once in 32; equal pairs say nothing."""
    yes, no = np.ones(5, bool), np.zeros(5, bool)
    assert norm_position.sign_test(yes, no) == 1 / 32
    assert norm_position.sign_test(no, yes) == 1
    assert norm_position.sign_test(np.concatenate([yes, yes]), np.concatenate([no, yes])) == 1 / 32
    assert norm_position.sign_test(yes, yes) == 1
