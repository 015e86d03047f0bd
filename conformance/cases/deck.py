"""The fixed deck: witnesses that every profile runs, and the sweep of sizes.

A deck is a list of descriptions. Each carries tags that say what it is for; a check picks its cases by
them (see checks/registry.py). Every knob stands away from its default somewhere, every dimension is distinct
from the others, and coincides with them on purpose elsewhere.
"""

from __future__ import annotations

import attrs

from ...spec.operators import OPERATORS, Groups
from .composed_deck import composed_deck
from .description import Description
from .sizes import repeated_deck, size_deck
from .witnesses import WITNESSES

Kinds = tuple[tuple[str, int], ...]

#: Well-conditioned groups of many kinds, for sums over groups too.
_EASY: Kinds = (
    ("normal", 0),
    ("witness", 0),
    ("near_eps", 0),
    ("near_eps", 3),
    ("integers", 0),
    ("scaled", 0),
    ("scaled", 1),
    ("witness", 6),
    ("normal", 1),
    ("below_eps", 0),
    ("near_eps", 2),
)
#: Ill-conditioned and extreme groups, each with its own envelope.
_HARD: Kinds = (
    ("offset", 0),
    ("one_hot", 1),
    ("constant", 2),
    ("heavy_tailed", 0),
    ("offset", 3),
    ("witness", 7),
    ("constant", 0),
    ("witness", 8),
    ("one_hot", 6),
    ("scaled", 6),
    ("witness", 9),
)
_EXTREME: Kinds = (("near_overflow", 0), ("normal", 0), ("near_overflow", 1), ("subnormal", 0))
#: eps so far below the variance that neither its value nor its place can show: what is wrong then is something else.
_NONE = 2.0**-100
#: Few values, where the divisor of the variance shows.
_FEW: Kinds = (("witness", 0), ("normal", 0), ("integers", 0), ("scaled", 2), ("witness", 6))
_NEAR: Kinds = (("near_eps", 0), ("near_eps", 1), ("near_eps", 2), ("near_eps", 5), ("witness", 2))
#: Beside variances far below eps two that are not: from these it shows whether eps is added to the variance at all.
_BELOW: Kinds = (("below_eps", 0), ("below_eps", 1), ("near_eps", 1), ("near_eps", 2))
_OFFSETS: Kinds = (*(("offset", i) for i in range(8)), ("witness", 7), ("witness", 10))
_LAWFUL: Kinds = (("normal", 0), ("near_eps", 0), ("integers", 1), ("scaled", 0), ("normal", 2))

#: Groups in which nothing but the formula shows.
_PLAIN: Kinds = (("normal", 0), ("integers", 1), ("scaled", 0), ("normal", 2), ("scaled", 3), ("witness", 6))


def _tags(*tags: str) -> frozenset[str]:
    return frozenset(tags)


def _describe(operator: str, n: int, groups: Kinds, *tags: str, **rest: object) -> Description:
    description = Description(operator, n, groups, tags=_tags(*tags))
    return attrs.evolve(description, **rest)  # type: ignore[arg-type]


def _both(operator: str) -> list[Description]:
    """What all normalisations (in training) share: n values in each of the groups."""

    def d(n: int, groups: Kinds, *tags: str, **rest: object) -> Description:
        return _describe(operator, n, groups, *tags, **rest)

    return [
        # Laws first: the smallest cases, on which most faults show at once.
        d(8, _LAWFUL, "law", "repeat", "layout", gamma="mixed", beta="mixed", eps=2.0**-10),
        d(6, (("integers", 0), ("integers", 1), ("integers", 2)), "law", "shift", gamma="powers"),
        d(7, (("constant", 0), ("normal", 0), ("constant", 2), ("constant", 3)), "law", "constant"),
        d(9, (("one_hot", 0), ("normal", 0), ("one_hot", 4)), "law", gamma="powers", eps=2.0**-20),
        d(4, (("normal", 0), ("normal", 1), ("integers", 2)), "derivative", eps=0.5),
        d(5, (("normal", 0), ("near_eps", 1)), "derivative", gamma="powers", eps=2.0**-7),
        # One thing at a time.
        d(2, _FEW, "few", eps=_NONE, beta="none", gamma="powers"),
        d(3, _FEW, "few", eps=_NONE),
        d(4, _FEW, "few", eps=_NONE),
        d(3, _NEAR, "near-eps", eps=1e-5, beta="none", gamma="ones"),
        d(6, _NEAR, "near-eps", eps=1e-3),
        d(4, _NEAR, "near-eps", "exact-eps", eps=0.5, gamma="powers"),
        d(3, _BELOW, "exact-eps", eps=1e-5, gamma="ones", beta="none"),
        d(7, _BELOW, "exact-eps", eps=1e-6, gamma="large", beta="none"),
        d(5, _BELOW, "exact-eps", eps=1e-3, gamma="powers", beta="none"),
        d(6, (("constant", 0), *_BELOW[1:]), "exact-eps", eps=1e-12, gamma="ones", beta="none"),
        d(5, _PLAIN[:4], "exact-eps", eps=0.0),
        d(7, _PLAIN, "affine", eps=_NONE, gamma="mixed", beta="large"),
        d(9, _PLAIN, "affine", eps=_NONE, gamma="zeros", beta="mixed"),
        d(5, _PLAIN, "affine", eps=_NONE, gamma="large", beta="mixed", cotangent="integers"),
        d(6, _PLAIN, "none", eps=_NONE, gamma="none", beta="none"),
        d(7, _PLAIN, "none", eps=_NONE, gamma="mixed", beta="none"),
        d(5, _PLAIN, "none", eps=_NONE, gamma="none", beta="mixed"),
        d(4, _OFFSETS, "offset", eps=_NONE, gamma="ones", beta="none"),
        d(16, _OFFSETS, "offset", eps=_NONE, gamma="powers"),
        # Everything together, over the lengths at which blocks and vectors end.
        d(4, tuple(("witness", i) for i in range(len(WITNESSES))), "value", eps=1e-3, gamma="powers"),
        d(2, _EASY, "value", eps=1e-3),
        d(4, _HARD, "value", gamma="mixed"),
        d(17, _EASY, "value", cotangent="one_hot"),
        d(6, _EASY, "value", eps=1e-3, cotangent="ones"),
        d(33, _HARD, "value", eps=1e-6, gamma="powers"),
        d(64, _EASY, "value", cotangent="small"),
        d(3, _EXTREME, "value", eps=1e-5, cotangent="integers"),
        d(65, _EASY, "value", eps=1e-12, gamma="small"),
        d(129, _HARD[:5], "value"),
        d(257, _LAWFUL[:3], "value", cotangent="one_hot"),
        # Data on which the plain formulas overflow or underflow, while the result does not.
        d(5, (("huge", 0), ("huge", 1), ("huge", 2)), "range", beta="none"),
        d(6, (("wide", 0), ("wide", 1)), "range", beta="none"),
        # 16-bit data with float32 parameters.
        d(8, _PLAIN, "mixed", eps=_NONE),
        d(33, _PLAIN, "mixed", eps=_NONE, cotangent="one_hot"),
    ]


def _trailing(operator: str) -> list[Description]:
    def d(n: int, groups: Kinds, *tags: str, **rest: object) -> Description:
        return _describe(operator, n, groups, *tags, **rest)

    nine = tuple(("normal", i) for i in range(9))
    return [
        d(1, (("normal", 0), ("scaled", 2), ("constant", 3)), "value", "constant"),
        d(20, nine[:3], "axes", eps=_NONE, features=(4, 5), leading=(3,)),
        d(3, nine[:6], "axes", eps=_NONE, features=(3,), leading=(2, 3)),
        d(9, nine[:3], "axes", "affine", eps=_NONE, features=(3, 3), leading=(3,)),
        d(8, nine[:5], "axes", eps=_NONE, features=(2, 2, 2), leading=(5,)),
        d(24, nine[:6], "axes", eps=_NONE, features=(2, 3, 2, 2), leading=(3, 2)),
        d(7, nine[:4], "axes", eps=_NONE, features=(7,), leading=(2, 1, 2)),
        d(6, nine[:6], "axes", eps=_NONE, features=(6,), leading=(1, 2, 3, 1)),
        d(6, nine[:1], "axes", eps=_NONE, features=(6,), leading=()),
        d(12, nine[:1], "axes", eps=_NONE, features=(3, 4), leading=()),
        d(10, nine[:6], "layout", "axes", eps=_NONE, features=(10,), leading=(2, 3)),
        d(6, nine[:8], "layout", "axes", eps=_NONE, features=(2, 3), leading=(2, 4)),
    ]


def _of_channels(operator: str) -> list[Description]:
    def d(n: int, groups: Kinds, *tags: str, **rest: object) -> Description:
        return _describe(operator, n, groups, *tags, **rest)

    nine = tuple(("normal", i) for i in range(9))
    return [
        d(12, nine[:5], "axes", eps=_NONE, rank=4),
        d(12, nine[:3], "axes", eps=_NONE, rank=3),
        d(24, nine[:2], "axes", eps=_NONE, rank=5),
        d(12, nine[:5], "axes", eps=_NONE, rank=4, channel_axis=-1),
        d(6, nine[:4], "axes", eps=_NONE, rank=3, channel_axis=2),
        d(6, nine[:4], "axes", eps=_NONE, rank=2, channel_axis=0),
        # Coinciding sizes: as many channels as samples, or as there are places along every axis.
        d(9, nine[:3], "axes", eps=_NONE, rank=3),
        d(9, nine[:3], "axes", eps=_NONE, rank=3, channel_axis=-1),
        d(5, nine[:5], "axes", eps=_NONE, rank=2),
        d(12, nine[:5], "layout", rank=4),
        d(8, nine[:3], "layout", rank=5),
        d(6, nine[:4], "layout", rank=3),
        d(1, nine[:3], "single", rank=2),
        d(8, _LAWFUL, "inference", "law", "layout", training=False, eps=2.0**-10),
        d(12, _EASY, "inference", "layout", "affine", training=False, rank=4, gamma="powers"),
        d(6, _NEAR, "inference", "near-eps", "exact-eps", training=False, eps=0.5),
        d(4, _NEAR, "inference", "exact-eps", training=False, eps=1e-6),
        d(3, _HARD, "inference", training=False, beta="none", eps=1e-3),
        d(5, _EASY, "inference", "none", training=False, gamma="none", beta="none"),
        d(1, _LAWFUL, "inference", training=False),
        d(9, _EXTREME, "inference", training=False, cotangent="integers"),
        d(6, _PLAIN, "mixed", eps=_NONE, training=False),
        d(2, _LAWFUL, "value", momentum=0.1),
        d(3, _LAWFUL, "value", momentum=0.9),
    ]


def _of_sample_channels(operator: str) -> list[Description]:
    def d(n: int, groups: Kinds, *tags: str, **rest: object) -> Description:
        return _describe(operator, n, groups, *tags, **rest)

    nine = tuple(("normal", i) for i in range(9))
    # Of one value a group instance_norm's page has a requirement of its own.
    of_one = ("single",) if OPERATORS[operator].channels_alone else ("value", "constant")
    return [
        d(12, nine[:6], "axes", eps=_NONE, rank=4, samples=3),
        d(12, nine[:4], "axes", eps=_NONE, rank=3, samples=2),
        d(24, nine[:6], "axes", eps=_NONE, rank=5, samples=2),
        d(12, nine[:6], "axes", eps=_NONE, rank=4, samples=2, channel_axis=-1),
        d(6, nine[:8], "axes", eps=_NONE, rank=3, samples=2, channel_axis=2),
        # Coinciding sizes: as many channels as samples, as positions, and as groups.
        d(9, nine, "axes", eps=_NONE, rank=3, samples=3, width=1),
        d(9, nine[:3], "axes", eps=_NONE, rank=3, samples=3, width=3),
        d(9, nine, "axes", "affine", eps=_NONE, rank=3, samples=3, width=3, channel_axis=-1),
        d(4, nine[:8], "axes", "affine", eps=_NONE, rank=3, samples=2, width=1, channel_axis=-1),
        # A channel in each group, all channels in one, and no positions.
        d(6, nine[:8], "axes", eps=_NONE, rank=3, samples=2, width=1),
        d(12, nine[:3], "axes", eps=_NONE, rank=4, samples=3, width=6),
        d(6, nine[:6], "axes", "layout", eps=_NONE, rank=2, samples=3),
        d(12, nine[:6], "layout", rank=4, samples=3),
        d(8, nine[:4], "layout", rank=5, samples=2),
        d(6, nine[:8], "layout", "affine", eps=_NONE, rank=3, samples=4, width=3),
        # Far from zero with the channels last in memory, for which kernels have a path of their own.
        d(16, _OFFSETS, "offset", eps=_NONE, rank=4, channel_axis=-1, samples=2, gamma="powers"),
        d(1, nine[:6], *of_one, samples=2, rank=3),
    ]


#: What an operator has beside what all share, by how its groups lie.
_OWN = {Groups.TRAILING: _trailing, Groups.CHANNEL: _of_channels, Groups.SAMPLE_CHANNELS: _of_sample_channels}
#: Dimensions of the shared cases where groups are channels of samples, in turn.
_RANKS = (3, 4, 2, 3, 5)


def deck(operator: str, profile: str, seed: int) -> list[Description]:
    """Return the fixed cases of an operator, in the order they run."""
    if OPERATORS[operator].composed:
        ordered = composed_deck(operator) + size_deck(operator, profile) + repeated_deck(operator, profile)
        return [attrs.evolve(description, seed=seed) for description in ordered]
    groups = OPERATORS[operator].groups
    own, both = _OWN[groups](operator), _both(operator)
    if groups is Groups.SAMPLE_CHANNELS:
        both = [attrs.evolve(one, rank=_RANKS[place % len(_RANKS)]) for place, one in enumerate(both)]
    laws = 6  # the law and derivative cases stay in front; the operator's own come next
    ordered = both[:laws] + own + both[laws:] + size_deck(operator, profile) + repeated_deck(operator, profile)
    return [attrs.evolve(description, seed=seed) for description in ordered]
