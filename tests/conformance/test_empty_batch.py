"""A training batch without samples: to raise is as good as an empty y, and CM-T1 has nothing to say about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from normspec.adapters.target import Target
from normspec.conformance.results.report import Report

from .runs import VARIANT, function, run, verdicts

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

RULES = ("CM-T1", "BN-E2", "BN-E3")


def batch_norm(answer: Callable[[np.ndarray, Any], Any]) -> Target:
    """A batch_norm that is sound except for a training batch without samples."""
    made = VARIANT["bn-plain"].build()

    def call(x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
        if settings["training"] and not x.size:
            return answer(x, arguments)
        return made.call(x, *arguments, **settings)

    return function("batch_norm", call, vjp=made.vjp)


def refused(x: np.ndarray, arguments: Any) -> Any:
    """There is no mean of nothing."""
    raise ValueError("a training batch needs samples")


def kept(x: np.ndarray, arguments: Any) -> Any:
    """An empty y and the statistics as given."""
    return x.copy(), arguments[2].copy(), arguments[3].copy()


def spoilt(x: np.ndarray, arguments: Any) -> Any:
    """The formula to the letter: 0/0."""
    return x.copy(), arguments[2] * np.float32(np.nan), arguments[3] * np.float32(np.nan)


def padded(x: np.ndarray, arguments: Any) -> Any:
    """A y of one sample, and the statistics as given."""
    return np.zeros((1, *x.shape[1:]), x.dtype), arguments[2].copy(), arguments[3].copy()


@pytest.mark.parametrize("answer", [refused, kept])
def test_either_answer_conforms(answer: Callable[[np.ndarray, Any], Any]) -> None:
    """A function that raises, or returns an empty y and the statistics as given, violates nothing."""
    report = run(batch_norm(answer), requirements=RULES)
    assert report.conforms
    assert verdicts(report) == dict.fromkeys(RULES, "pass")


def test_nan_in_the_statistics_is_advised_against() -> None:
    """Statistics that become NaN violate BN-E2, which is advice, and no requirement of every call."""
    judged_as_advice(run(batch_norm(spoilt), requirements=RULES))


def test_a_row_from_nowhere_is_advised_against() -> None:
    """So does a y with a sample in it, though no other check could use such a result."""
    judged_as_advice(run(batch_norm(padded), requirements=RULES))


def judged_as_advice(report: Report) -> None:
    """The target conforms, and BN-E2 is advice."""
    assert report.conforms
    assert verdicts(report) == {"CM-T1": "pass", "BN-E2": "advice", "BN-E3": "pass"}
