"""Gradients of parameters whose sums lose additions, or begin with what was there before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from .runs import VARIANT, function, others_at_night, run

Array = np.ndarray


def _described(changed: Callable[[Array, Array], Array]) -> str:
    """What is said of a layer norm whose dbeta is a function of the right one and of the cotangent's rows."""
    sound = VARIANT["ln-two-pass"].build()

    def vjp(x: Array, gamma: Any, beta: Any, g: Array, **settings: Any) -> tuple[Any, ...]:
        *others, dbeta = sound.vjp(x, gamma, beta, g, **settings)
        rows = None if dbeta is None else g.reshape(-1, *dbeta.shape)
        return (*others, None if rows is None else changed(dbeta, rows).astype(dbeta.dtype))

    with np.errstate(all="ignore"):
        (cause,) = run(function("layer_norm", sound.call, vjp=vjp), explain=True).causes
    assert not cause.faults
    return cause.sentence


@pytest.mark.parametrize("seed", others_at_night([0, 2], [0]))
def test_additions_that_a_race_loses_are_told(seed):
    """Which ones are lost differs between calls: both is said, and not that they depend on the call before."""
    random = np.random.default_rng(seed)
    sentence = _described(lambda dbeta, rows: rows[random.random(len(rows)) < 0.6].sum(0))
    assert "with the same arguments" in sentence
    assert "each wrong value is the sum over some of them, as if the additions of the others were lost" in sentence


@pytest.mark.parametrize(
    "changed",
    [
        lambda dbeta, rows: np.where(np.abs(rows).max(0, initial=0) > 1, dbeta + np.abs(rows).max(0, initial=0), dbeta),
        lambda dbeta, rows: dbeta + 1,
        lambda dbeta, rows: np.where(np.arange(dbeta.size).reshape(dbeta.shape) % 3 == rows.size % 3, 0, dbeta),
    ],
    ids=["a-value-too-many", "a-constant-too-much", "zero"],
)
def test_another_wrong_sum_is_no_lost_addition(changed):
    """What is too large in a way that no choice of groups gives has no such words, nor has a constant, nor zero."""
    sentence = _described(changed)
    assert "additions" not in sentence
    assert "earlier call" not in sentence
