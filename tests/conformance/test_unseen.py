"""Mistakes that the library lacks: they get no name, and the output describes the findings."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from normspec.conformance.diagnosis.patterns.numbers import Interval, simplest, written

from .runs import run
from .unseen import UNSEEN
from .unseen.table import kept, printed, row

#: Mistakes of several kinds and operators; the tests marked `campaign` use all of them.
SAMPLE = (
    "half-eps",
    "unbiased-and-eps-outside",
    "zeros-after-300",
    "every-third-call",
    "residual-weighed",
    "highway-temperature",
    "mhc-roots-of-weights",
)


def _told_as_kept(name: str) -> None:
    faults, sentence = printed(UNSEEN[name])
    assert faults == (), "no mistake of the library is this one"
    assert row(UNSEEN[name], sentence) == kept()[name]


@pytest.mark.parametrize("name", SAMPLE)
def test_what_the_library_lacks_is_described(name):
    """A mistake without a name has the table's description."""
    _told_as_kept(name)


@pytest.mark.nightly  # half a minute: each size is tried again for the description
def test_a_mistake_of_size_is_headed_by_the_requirement_on_sizes():
    """Calls of other layouts and later calls are large too, but a wrong size breaks CM-S1 before their requirements."""
    with np.errstate(all="ignore"):
        target = UNSEEN["mean-too-large-from-1030"].target()
        (cause,) = run(target, requirements=["CM-S1", "CM-V1", "CM-P2", "CM-P4"], explain=True).causes
    assert cause.explains[0] == "CM-S1"


@pytest.mark.campaign
@pytest.mark.parametrize("name", UNSEEN)
def test_the_table_is_up_to_date(name):
    """Every mistake has the table's description, and none gets a name."""
    _told_as_kept(name)


def test_every_mistake_is_in_the_table():
    """The table has each mistake once, of every operator at least four."""
    assert list(kept()) == list(UNSEEN)
    number = Counter(one.operator for one in UNSEEN.values())
    assert len(number) == 10
    assert min(number.values()) >= 4


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.49999, 0.50001, "1/2"),
        (0.33333, 0.33334, "1/3"),
        (1.0099, 1.0101, "1.01"),
        (9.99e-7, 1.001e-6, "1e-06"),
        (0.000487, 0.000489, "2^-11"),
        (-2.001, -1.999, "-2"),
        (0.707104, 0.70711, "1/sqrt(2)"),
        (-1.0, 1.0, "0"),
        (1e-30, 1.1e-30, "1e-30"),
        (1.1e308, 1.5e308, "1.3e+308"),
        (-1.79e308, -1.73e308, "-1.76e+308"),
    ],
)
def test_the_plainest_number_is_told(low, high, words):
    """Of all numbers that the values allow, the one that a person would have written is printed."""
    assert written(simplest(Interval(low, high))) == words


def test_no_number_is_told_that_is_not_known():
    """Contradictory bounds leave no number, and wide ones none that is certain."""
    assert Interval().within(np.array([1.0, 3.0]), np.array([2.0, 4.0])).empty
    assert not Interval(0.5, 2.0).known(1.0)
    assert Interval(1.99, 2.01).known(1.0)
    assert not Interval(1e308, 1.7e308).known(1.0)
