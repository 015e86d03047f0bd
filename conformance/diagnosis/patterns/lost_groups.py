"""Lost groups: a parameter's gradient that is the sum over some of the groups, other groups from value to value."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .observing import ObservedResult

#: The most groups of which each combination is tried.
_MOST_GROUPS = 12
#: Wrong results that must tell it; a value tells it if it is a combination by chance less often than this.
_MIN_TELLING, _BY_CHANCE = 5, 0.01


def lost_groups_in_words(seen: Iterable[ObservedResult]) -> str:
    """What wrong results are, if each is the sum over some groups; empty if one is not, or too few can be told."""
    told = [found for one in seen if (found := _is_sum_of_some(one)) is not None]
    if len(told) < _MIN_TELLING or not all(told):
        return ""
    return (
        f"with up to {_MOST_GROUPS} groups, each wrong value is the sum over some of them, as if the additions of the"
        " others were lost"
    )


def _is_sum_of_some(one: ObservedResult) -> bool | None:
    """Whether each wrong value is the sum over some of the groups; None if that cannot be told."""
    if one.name not in ("dgamma", "dbeta") or one.case.record.composed or not one.wrong.any():
        return None
    steps = one.steps
    groups, each = steps.count, steps.g * steps.xhat if one.name == "dgamma" else steps.g
    terms = steps.rows(each)
    if not 1 < groups <= _MOST_GROUPS or terms.shape[1] != one.got.size:
        return None
    if not np.allclose(terms.sum(axis=0), steps.total(each).reshape(-1), equal_nan=True):
        return None
    chosen = np.arange(1 << groups)[:, None] >> np.arange(groups) & 1
    sums, slack = chosen @ terms, one.slack.reshape(-1)
    apart = np.abs(sums - one.got.reshape(-1))
    nearest = apart.min(axis=0)
    by_chance = len(sums) * 2 * slack / np.ptp(sums, axis=0)
    tells = one.wrong.reshape(-1) & (by_chance < _BY_CHANCE)
    if (nearest[tells] > slack[tells]).any():
        return False
    # Zero is the sum over none, and says nothing of which were added.
    return True if (tells & (apart.argmin(axis=0) > 0)).any() else None
