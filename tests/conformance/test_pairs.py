"""Two mistakes in one function: both are named, and neither wrongly."""

from __future__ import annotations

import pytest

from .pairs import Pair, drawn, together
from .runs import FAULT, others_at_night

#: Pairs whose faults are of different kinds: one that hides the other, NaN that two calls share, and state.
SAMPLE = (
    ("ln-missing-gamma-refused", "ln-strides-ignored"),
    ("in-jvp-detached", "in-median-for-mean"),
    ("hw-squashed-twice", "hw-nan-leaks"),
    ("ln-first-stride-ignored", "ln-nan-leaks-to-neighbour"),
    ("rm-nan-leaks-to-neighbour", "rm-zero-cotangent-nan"),
    ("gn-dbeta-times-gamma", "gn-drifts-after-ten-calls"),
)


def named(pair: Pair) -> list[tuple[str, ...]]:
    """The names that are given to the causes of a pair."""
    return [cause.faults for cause in pair.report(explain=True).causes if cause.faults]


@pytest.mark.parametrize("names", others_at_night([(one,) for one in SAMPLE], [(SAMPLE[0],), (SAMPLE[4],)]))
def test_two_mistakes_of_different_kinds_are_both_named(names):
    """Violations that one mistake leaves unexplained are explained by the other."""
    pair = together(*(FAULT[name] for name in names))
    assert pair is not None
    found = named(pair)
    assert len(found) == 2
    assert all(any(name in cause for cause in found) for name in names), found


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_of_pairs_drawn_at_random_no_name_is_wrong():
    """In seventy pairs (the share with both names is printed), no cause has a name other than the two."""
    both = 0
    for pair in drawn():
        found = named(pair)
        assert all(set(cause) & set(pair.names) for cause in found), (pair.names, found)
        own = [name for name in pair.names if any(name in cause for cause in found)]
        both += len(own) == 2
        print(f"{len(own)} of {' and '.join(pair.names)}: {found}")
    print(f"both named: {both} of 70")
