"""The fixed deck: witnesses that every profile runs, and the sweep of sizes.

A deck is a list of descriptions. Each names the requirements that it is made for, besides those that judge any case: a
check runs on the cases that name one of its ids (checks/registry.py). Cases that operators share name layer_norm's ids,
which stand for the other operators' ids at the same check. Every setting is away from its default somewhere. Dimensions
differ from one another, and coincide on purpose in some cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import attrs

from ...spec.operators import OPERATORS, Groups
from .absent_parameters import absent_parameters_deck
from .composed_deck import DERIVATIVES as COMPOSED_DERIVATIVES
from .composed_deck import composed_deck
from .description import NEGLIGIBLE_EPS, Description, Kinds
from .every_layout import every_layout_deck
from .images import images_deck
from .large import large_deck
from .large_derivatives import large_derivatives_deck
from .parameters import BALANCED, HUGE, LATE, NEGATIVE, VAST
from .paths import paths_deck
from .six_axes import six_axes_deck
from .sizes import repeated_deck, size_deck
from .two_extents import two_extents_deck
from .usual_shapes import usual_shapes_deck
from .witnesses import WITNESSES

#: Well-conditioned groups of many kinds, also for sums over groups.
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
_EXTREME: Kinds = (("near_overflow", 0), ("normal", 0), ("near_overflow", 1), ("subnormal", 0), ("subnormal", 1))
#: Few values, where the divisor of the variance shows.
_FEW: Kinds = (("witness", 0), ("normal", 0), ("integers", 0), ("scaled", 2), ("witness", 6))
_NEAR: Kinds = (("near_eps", 0), ("near_eps", 1), ("near_eps", 2), ("near_eps", 5), ("witness", 2))
#: Variances far below eps, and two that are not: these two show whether eps is added to the variance at all.
_BELOW: Kinds = (("below_eps", 0), ("below_eps", 1), ("near_eps", 1), ("near_eps", 2))
_OFFSETS: Kinds = (*(("offset", i) for i in range(8)), ("witness", 7), ("witness", 10), ("witness", 11))
_LAWFUL: Kinds = (("normal", 0), ("near_eps", 0), ("integers", 1), ("scaled", 0), ("normal", 2))

#: An eps below 1e-20: code puts 1e-12 or less in place of a smaller one, and may spare 0.
_LEAST = 2.0**-70
#: An eps above any that is usual, which code may limit.
_LARGE = 16.0
#: Groups whose reciprocal roots are so small that dx is moderate where gamma g is beyond float16's largest number. The
#: first two have one large term each in one sum over groups, where the terms may be beyond it, and the sum is not.
_STEEP: Kinds = (("one_hot", 6), ("one_hot", 6), ("scaled", 6), ("scaled", 4))
#: Variances so small that an eps that replaces 0 shows.
_TINY: Kinds = (("scaled", 7), ("scaled", 5), ("normal", 0))
_ZEROS: Kinds = (("constant", 0),) * 3
#: Well-conditioned groups of one kind.
_NORMAL: Kinds = tuple(("normal", i) for i in range(9))
#: Groups in which only the formula shows.
_PLAIN: Kinds = (("normal", 0), ("integers", 1), ("scaled", 0), ("normal", 2), ("scaled", 3), ("witness", 6))


#: The laws, and other requirements that need a few small cases.
LAWS = frozenset(
    (
        *("LN-L1", "LN-L2", "LN-L3", "LN-L4", "LN-L5", "LN-L6", "LN-L7", "LN-L8", "LN-L9", "LN-L11", "LN-L12"),
        *("LN-L14", "LN-L15", "LN-L16", "LN-L17", "BN-L5", "BN-L12"),
        *("LN-G4", "LN-G5", "LN-G6", "LN-G7", "LN-G8", "LN-G11"),
        *("BN-S3", "BN-S4", "BN-S5", "BN-E2", "BN-E3", "BN-E4", "BN-A1", "CM-A1", "CM-A2", "CM-S2"),
        *("CM-P1", "CM-P4", "CM-P5", "CM-N1", "CM-N3", "CM-N4"),
    )
)
#: Laws that need data to which a number can be added.
SHIFTS = ("LN-L10", "BN-L13")
REPEATED = ("CM-P2", "CM-P3")
LAYOUTS = ("CM-V1", "CM-V2", "CM-V3")
#: Second-order and forward-mode derivatives, and other requirements that need equally small cases.
DERIVATIVES = frozenset(
    ("LN-G9", "LN-G10", "LN-G12", "LN-G13", "LN-G14", "CM-N6", "CM-N7", "CM-N8", "BN-I5"),
)
#: Those that are derivatives of derivatives, or of forward mode.
_NESTED = ("LN-G9", "LN-G10", "LN-G12", "LN-G13", "LN-G14")
AXES = ("LN-F7", "BN-L12")
MIXED = ("CM-D1", "CM-D2", "CM-D3", "CM-P1")
_NON_FINITE = ("CM-N3", "CM-N4", "CM-N6", "CM-N7")
#: What code for 16-bit data with float32 parameters may get wrong although its numbers are right.
_PATHS_OF_MIXED = ("CM-V1", "CM-V3", "CM-P2", "CM-S2", "LN-G11")


def _describe(operator: str, n: int, groups: Kinds, *requirements: str, **rest: object) -> Description:
    description = Description(operator, n, groups, requirements=frozenset(requirements))
    return attrs.evolve(description, **rest)  # type: ignore[arg-type]


def _of_all(operator: str) -> list[Description]:
    """The cases that all normalisations (in training) share: n values in each of the groups."""

    d = partial(_describe, operator)
    return [
        # Laws first: the smallest cases, on which most faults show at once.
        d(8, _LAWFUL, *LAWS, *REPEATED, *LAYOUTS, gamma="mixed", beta="mixed", eps=2.0**-10),
        d(6, (("integers", 0), ("integers", 1), ("integers", 2)), *LAWS, *SHIFTS, gamma="powers"),
        d(7, (("constant", 0), ("normal", 0), ("constant", 2), ("constant", 3)), *LAWS, "LN-L13"),
        d(9, (("one_hot", 0), ("normal", 0), ("one_hot", 4)), *LAWS, gamma="powers", eps=2.0**-20),
        d(4, (("normal", 0), ("normal", 1), ("integers", 2)), *DERIVATIVES, eps=0.5),
        d(5, (("normal", 0), ("near_eps", 1)), *DERIVATIVES, gamma="powers", eps=2.0**-7),
        d(6, _FEW[:4], "LN-G8", cotangent=BALANCED),
        # One aspect at a time.
        d(2, _FEW, "LN-F2", eps=NEGLIGIBLE_EPS, beta="none", gamma="powers"),
        d(3, _FEW, "LN-F2", "CM-N1", eps=NEGLIGIBLE_EPS),  # groups shorter than any vector
        d(4, _FEW, "LN-F2", eps=NEGLIGIBLE_EPS),
        d(2, (("witness", 0), ("witness", 0)), eps=0.5, gamma="none", beta="none"),  # mean 0, variance 1
        d(3, _NEAR, "LN-F3", eps=1e-5, beta="none", gamma="ones"),
        d(6, _NEAR, "LN-F3", eps=1e-3),
        d(4, _NEAR, "LN-F3", "LN-F4", eps=0.5, gamma="powers"),
        d(6, _NEAR, "LN-F3", "LN-F4", eps=_LARGE),
        d(3, _BELOW, "LN-F4", eps=1e-5, gamma="ones", beta="none"),
        d(7, _BELOW, "LN-F4", eps=1e-6, gamma=HUGE, beta="none"),
        d(5, _BELOW, "LN-F4", eps=1e-3, gamma="powers", beta="none"),
        d(6, (("constant", 0), *_BELOW[1:]), "LN-F4", eps=1e-12, gamma="ones", beta="none"),
        d(5, _PLAIN[:4], "LN-F4", eps=0.0),
        d(6, _TINY, eps=0.0, gamma="powers"),
        d(7, (("tiny", 0), ("tiny", 1)), eps=0.0, gamma="powers"),
        d(6, (("tiny", 2), ("tiny", 3)), "LN-F1", eps=0.0, gamma="powers", only=True),
        d(7, _PLAIN, "LN-F5", eps=NEGLIGIBLE_EPS, gamma="mixed", beta=HUGE),
        d(9, _PLAIN, "LN-F5", eps=NEGLIGIBLE_EPS, gamma="zeros", beta="mixed"),
        d(5, _PLAIN, "LN-F5", eps=NEGLIGIBLE_EPS, gamma="large", beta="mixed", cotangent="integers"),
        d(8, _PLAIN, "LN-F5", eps=NEGLIGIBLE_EPS, gamma=NEGATIVE, beta="mixed"),
        d(6, _PLAIN, "LN-F6", eps=NEGLIGIBLE_EPS, gamma="none", beta="none"),
        d(7, _PLAIN, "LN-F6", eps=NEGLIGIBLE_EPS, gamma="mixed", beta="none"),
        d(5, _PLAIN, "LN-F6", eps=NEGLIGIBLE_EPS, gamma="none", beta="mixed"),
        d(7, _OFFSETS, "LN-F8", "CM-V1", eps=NEGLIGIBLE_EPS, gamma="ones", beta="none"),
        d(16, _OFFSETS, "LN-F8", eps=NEGLIGIBLE_EPS, gamma="powers"),
        # Everything together, over the lengths at which blocks and vectors end.
        d(4, tuple(("witness", i) for i in range(len(WITNESSES))), eps=1e-3, gamma="powers"),
        d(2, _EASY, eps=1e-3),
        d(4, _HARD, gamma="mixed"),
        d(17, _EASY, cotangent="one_hot"),
        d(6, _EASY, eps=1e-3, cotangent="ones"),
        d(33, _HARD, eps=1e-6, gamma="powers"),
        d(64, _EASY, cotangent="small"),
        d(3, _EXTREME, eps=1e-5, cotangent="integers"),
        d(65, _EASY, eps=1e-12, gamma="small", cotangent="large"),
        d(129, _HARD[:5]),
        d(257, _LAWFUL[:3], cotangent=LATE),
        # Data on which plain formulas overflow or underflow, while the result does not.
        d(5, (("huge", 0), ("huge", 1), ("huge", 2)), "LN-R1", beta="none", only=True),
        d(6, (("wide", 0), ("wide", 1)), "LN-R2", beta="none", only=True),
        # 16-bit data with float32 parameters.
        d(8, _PLAIN, *MIXED, *_NON_FINITE, *_PATHS_OF_MIXED, eps=NEGLIGIBLE_EPS, only=True, mixed=True),
        # An eps of 1e-8 is 0 in float16. In bfloat16 its rounding shows in the gradient of a float32 gamma.
        d(9, (*_NEAR, ("constant", 1)), *MIXED, eps=1e-8, only=True, mixed=True),
        d(33, _PLAIN, *MIXED, eps=NEGLIGIBLE_EPS, cotangent="one_hot", only=True, mixed=True),
        # Derivatives of groups longer than a wavefront; and a gain that 16 bits do not hold, in inference mode too.
        d(130, (("normal", 0), ("near_eps", 1)), *DERIVATIVES, "LN-L15", eps=0.5),
        # Derivatives that are written out have a path for each parameter that may be absent.
        *(
            d(4, (("normal", 0), ("normal", 1), ("integers", 2)), *_NESTED, gamma=gamma, beta=beta, eps=0.5, only=True)
            for gamma, beta in (("none", "none"), ("none", "mixed"), ("mixed", "none"))
            if "beta" in OPERATORS[operator].arguments or gamma == beta
        ),
        # Zeros alone, as code may pass by with y = x or without derivatives; and a beta of zeros (parameters.py), as it
        # is at first.
        d(10, _ZEROS, eps=2.0**-10, beta="ones"),
        d(9, _ZEROS, eps=2.0**-10, gamma="none", beta="none"),
        d(6, _PLAIN, gamma="ones", beta="ones"),  # those of a new layer, as code may leave out
        d(5, _NEAR, "LN-F4", eps=_LEAST, beta="none"),
        d(7, _STEEP, gamma="large", cotangent=VAST),
    ]


def _trailing(operator: str) -> list[Description]:
    d = partial(_describe, operator)
    return [
        d(1, (("normal", 0), ("scaled", 2), ("constant", 3)), "CM-P1"),
        d(1, _NORMAL[:1], eps=0.5),  # x is one value, whose axes a function may squeeze
        d(20, _NORMAL[:3], *AXES, eps=NEGLIGIBLE_EPS, features=(4, 5), leading=(3,)),
        d(3, _NORMAL, *AXES, eps=NEGLIGIBLE_EPS, features=(3,), leading=(3, 3)),
        d(9, _NORMAL[:3], *AXES, "LN-F5", eps=NEGLIGIBLE_EPS, features=(3, 3), leading=(3,)),
        d(8, _NORMAL[:5], *AXES, eps=NEGLIGIBLE_EPS, features=(2, 2, 2), leading=(5,)),
        d(24, _NORMAL[:1], *AXES, eps=NEGLIGIBLE_EPS, features=(4, 3, 2), leading=()),
        # Both axes longer than a block of a tiled kernel.
        d(323, _NORMAL[:3], *AXES, "LN-F5", eps=NEGLIGIBLE_EPS, features=(17, 19), leading=(3,)),
        d(24, _NORMAL[:6], *AXES, eps=NEGLIGIBLE_EPS, features=(2, 3, 2, 2), leading=(3, 2)),
        d(7, _NORMAL[:4], *AXES, eps=NEGLIGIBLE_EPS, features=(7,), leading=(2, 1, 2)),
        d(6, _NORMAL[:6], *AXES, eps=NEGLIGIBLE_EPS, features=(6,), leading=(1, 2, 3, 1)),
        d(5, _NORMAL[:4], *AXES, eps=NEGLIGIBLE_EPS, features=(5,), leading=(4, 1)),  # one step of several sequences
        d(6, _NORMAL[:1], *AXES, eps=NEGLIGIBLE_EPS, features=(6,), leading=()),
        d(10, _NORMAL[:6], *LAYOUTS, *AXES, eps=NEGLIGIBLE_EPS, features=(10,), leading=(3, 2)),
        d(6, _NORMAL[:8], *LAYOUTS, *AXES, eps=NEGLIGIBLE_EPS, features=(2, 3), leading=(2, 4)),
        d(12, _NORMAL[:4], *DERIVATIVES, "LN-G11", eps=0.5, features=(3, 4), leading=(2, 2)),
        d(12, _NORMAL[:1], *AXES, "CM-V1", eps=NEGLIGIBLE_EPS, features=(3, 4), leading=()),
        # A square beside which a parameter is absent: transposing the other one raises nowhere.
        *(
            d(9, _NORMAL[:8], *AXES, eps=NEGLIGIBLE_EPS, features=(3, 3), leading=(2, 2, 2), gamma=gamma, beta=beta)
            for gamma, beta in (("none", "mixed"), ("mixed", "none"))
            if "beta" in OPERATORS[operator].arguments
        ),
    ]


def _of_channels(operator: str) -> list[Description]:
    d = partial(_describe, operator)
    return [
        d(12, _NORMAL[:5], *AXES, eps=NEGLIGIBLE_EPS, rank=4),
        d(12, _NORMAL[:3], *AXES, eps=NEGLIGIBLE_EPS, rank=3),
        d(24, _NORMAL[:2], *AXES, eps=NEGLIGIBLE_EPS, rank=5),
        d(12, _NORMAL[:5], *AXES, eps=NEGLIGIBLE_EPS, rank=4, channel_axis=-1),
        d(6, _NORMAL[:4], *AXES, eps=NEGLIGIBLE_EPS, rank=3, channel_axis=2),
        d(6, _NORMAL[:4], *AXES, eps=NEGLIGIBLE_EPS, rank=2, channel_axis=0),
        # Channels between other axes, before them, and counted from the end.
        d(12, _NORMAL[:5], *AXES, eps=NEGLIGIBLE_EPS, rank=4, channel_axis=2),
        d(6, _NORMAL[:4], *AXES, eps=NEGLIGIBLE_EPS, rank=3, channel_axis=0),
        d(12, _NORMAL[:5], *AXES, eps=NEGLIGIBLE_EPS, rank=4, channel_axis=-3),
        d(12, _NORMAL[:5], *AXES, eps=NEGLIGIBLE_EPS, rank=4, channel_axis=-2, training=False),
        # One sample, whose positions are all the values there are.
        d(6, _NORMAL[:4], *AXES, eps=NEGLIGIBLE_EPS, rank=3, samples=1),
        d(12, _NORMAL[:5], *AXES, eps=NEGLIGIBLE_EPS, rank=4, samples=1, training=False),
        *_one_parameter_last(d),
        # Coinciding sizes: as many channels as samples, or as positions along every axis.
        d(9, _NORMAL[:3], *AXES, eps=NEGLIGIBLE_EPS, rank=3),
        d(9, _NORMAL[:3], *AXES, eps=NEGLIGIBLE_EPS, rank=3, channel_axis=-1),
        d(6, _NORMAL[:3], *AXES, eps=NEGLIGIBLE_EPS, rank=3, samples=2, channel_axis=2),
        d(5, _NORMAL[:5], *AXES, eps=NEGLIGIBLE_EPS, rank=2),
        d(27, _NORMAL[:3], *AXES, eps=NEGLIGIBLE_EPS, rank=4, samples=3),
        d(27, _NORMAL[:3], *AXES, eps=NEGLIGIBLE_EPS, rank=4, samples=3, channel_axis=-1),
        d(18, _NORMAL[:3], *AXES, eps=NEGLIGIBLE_EPS, rank=4, samples=2, channel_axis=-2),
        d(16, _NORMAL[:2], *AXES, eps=NEGLIGIBLE_EPS, rank=5, samples=2),
        d(16, _NORMAL[:2], *AXES, eps=NEGLIGIBLE_EPS, rank=5, samples=2, channel_axis=-1),
        d(12, _NORMAL[:5], *LAYOUTS, rank=4),
        d(8, _NORMAL[:3], *LAYOUTS, rank=5),
        # Far from zero, in every layout: a path for one may take the variance in one pass.
        d(16, _OFFSETS, "CM-V1", eps=NEGLIGIBLE_EPS, rank=4, samples=2, gamma="ones", beta="none"),
        d(6, _NORMAL[:4], *LAYOUTS, rank=3),
        # More values than a block has, and a tail: a path for one layout may lose it.
        d(105, _NORMAL[:3], *LAYOUTS, eps=NEGLIGIBLE_EPS, rank=4),
        d(1, _NORMAL[:3], "BN-E1", "BN-E5", rank=2, only=True),
        d(8, _LAWFUL, *LAWS, *LAYOUTS, training=False, eps=2.0**-10),
        d(12, _EASY, *LAYOUTS, "LN-F5", training=False, rank=4, gamma="powers"),
        d(6, _NEAR, "LN-F3", "LN-F4", training=False, eps=0.5),
        d(5, _NEAR, "LN-F3", "LN-F4", training=False, eps=_LARGE),
        d(4, _NEAR, "LN-F4", training=False, eps=1e-6),
        d(6, _TINY, training=False, eps=0.0),
        d(3, _HARD, training=False, beta="none", eps=1e-3),
        d(5, _EASY, "LN-F6", training=False, gamma="none", beta="none", cotangent="small"),
        d(24, _NORMAL[:2], *AXES, eps=NEGLIGIBLE_EPS, rank=5, training=False),
        d(6, _NORMAL[:4], *AXES, eps=NEGLIGIBLE_EPS, rank=3, channel_axis=0, training=False),
        d(1, _LAWFUL, training=False, momentum=0.0),
        # A new layer: code may think that its running statistics were never set.
        d(6, _LAWFUL, training=False, gamma="ones", beta="ones"),
        d(6, _LAWFUL, gamma="ones", beta="ones"),
        d(9, _EXTREME, training=False, cotangent="integers", momentum=1.0),
        d(6, _PLAIN, *MIXED, *_NON_FINITE, eps=NEGLIGIBLE_EPS, training=False, only=True, mixed=True),
        d(4, _LAWFUL, "CM-P1", momentum=1.0),
        d(2, _LAWFUL, momentum=0.1),
        d(3, _LAWFUL, momentum=0.9),
        d(4, _LAWFUL, momentum=0.01),
        d(5, _LAWFUL, momentum=0.001),
        d(3, _LAWFUL, momentum=0.0),
        d(12, _NORMAL[:3], *DERIVATIVES, "LN-G11", eps=0.5, rank=4),
        d(4, _NORMAL[:3], *_NESTED, eps=0.5, training=False),
        d(12, _NORMAL[:3], *_NESTED, eps=0.5, rank=4, training=False),
        d(12, _NORMAL[:1], "CM-V1", rank=3),  # x is one group
    ]


def _of_sample_channels(operator: str) -> list[Description]:
    d = partial(_describe, operator)
    # instance_norm's page has a requirement for one value a group.
    of_one = {"requirements": frozenset(("IN-E1",)), "only": True} if OPERATORS[operator].channels_alone else {}
    return [
        d(12, _NORMAL[:6], *AXES, eps=NEGLIGIBLE_EPS, rank=4, samples=3),
        d(12, _NORMAL[:4], *AXES, eps=NEGLIGIBLE_EPS, rank=3, samples=2),
        d(24, _NORMAL[:6], *AXES, eps=NEGLIGIBLE_EPS, rank=5, samples=2),
        d(12, _NORMAL[:6], *AXES, eps=NEGLIGIBLE_EPS, rank=4, samples=2, channel_axis=-1),
        d(6, _NORMAL[:8], *AXES, eps=NEGLIGIBLE_EPS, rank=3, samples=2, channel_axis=2),
        d(12, _NORMAL[:6], *AXES, eps=NEGLIGIBLE_EPS, rank=4, samples=3, channel_axis=2),
        d(12, _NORMAL[:6], *AXES, eps=NEGLIGIBLE_EPS, rank=4, samples=2, channel_axis=-3),
        *_one_parameter_last(d),
        # Coinciding sizes: as many channels as samples, as positions, and as groups.
        d(9, _NORMAL, *AXES, eps=NEGLIGIBLE_EPS, rank=3, samples=3, width=1),
        d(9, _NORMAL[:3], *AXES, eps=NEGLIGIBLE_EPS, rank=3, samples=3, width=3),
        d(9, _NORMAL, *AXES, "LN-F5", eps=NEGLIGIBLE_EPS, rank=3, samples=3, width=3, channel_axis=-1),
        d(4, _NORMAL[:8], *AXES, "LN-F5", eps=NEGLIGIBLE_EPS, rank=3, samples=2, width=1, channel_axis=-1),
        d(4, _NORMAL[:8], *AXES, "LN-F5", eps=NEGLIGIBLE_EPS, rank=3, samples=2, width=1, channel_axis=2),
        d(9, _NORMAL, *AXES, "LN-F5", eps=NEGLIGIBLE_EPS, rank=4, samples=3, width=1),
        d(9, _NORMAL, *AXES, "LN-F5", eps=NEGLIGIBLE_EPS, rank=4, samples=3, width=1, channel_axis=-1),
        d(9, _NORMAL[:6], *AXES, "LN-F5", eps=NEGLIGIBLE_EPS, rank=4, samples=2, width=1, channel_axis=-2),
        d(8, _NORMAL[:4], *AXES, "LN-F5", eps=NEGLIGIBLE_EPS, rank=5, samples=2, width=1),
        d(8, _NORMAL[:4], *AXES, eps=NEGLIGIBLE_EPS, rank=5, samples=2, width=1, channel_axis=-1),
        # One channel in each group, all channels in one group, and no positions.
        d(6, _NORMAL[:8], *AXES, eps=NEGLIGIBLE_EPS, rank=3, samples=2, width=1),
        d(12, _NORMAL[:3], *AXES, eps=NEGLIGIBLE_EPS, rank=4, samples=3, width=6),
        d(6, _NORMAL[:6], *AXES, *LAYOUTS, eps=NEGLIGIBLE_EPS, rank=2, samples=3, channel_axis=-1),
        d(12, _NORMAL[:6], *LAYOUTS, rank=4, samples=3),
        d(8, _NORMAL[:4], *LAYOUTS, rank=5, samples=2),
        # More values than a block has, and a tail: a path for one layout may lose it.
        d(105, _NORMAL[:4], *LAYOUTS, eps=NEGLIGIBLE_EPS, rank=4, samples=2, width=1),
        d(6, _NORMAL[:8], *LAYOUTS, "LN-F5", eps=NEGLIGIBLE_EPS, rank=3, samples=4, width=3),
        # Far from zero, with the channels last in memory, for which kernels have a path of their own.
        d(16, _OFFSETS, "LN-F8", eps=NEGLIGIBLE_EPS, rank=4, channel_axis=-1, samples=2, gamma="powers"),
        d(16, _OFFSETS, "CM-V1", eps=NEGLIGIBLE_EPS, rank=4, samples=2, gamma="ones", beta="none"),
        d(1, _NORMAL[:6], samples=2, rank=3, **of_one),
        *(d(1, _NORMAL[:6], samples=2, rank=2, channel_axis=axis, **of_one) for axis in (1, -1) if of_one),
        d(12, _NORMAL[:4], *DERIVATIVES, "LN-G11", eps=0.5, rank=4, samples=2),
        d(12, _NORMAL[:1], "CM-V1", rank=4, samples=1),  # x is one group
        *(() if of_one else _whole_vectors_and_more(d)),
    ]


def _one_parameter_last(d: Callable[..., Description]) -> Iterator[Description]:
    """Channels that lie last, and one parameter: a path for such x may treat it in its own way."""
    for gamma, beta in (("mixed", "none"), ("none", "mixed")):
        yield d(
            12, _NORMAL[:6], "LN-F6", eps=NEGLIGIBLE_EPS, rank=4, samples=2, channel_axis=-1, gamma=gamma, beta=beta
        )


def _whole_vectors_and_more(d: Callable[..., Description]) -> Iterator[Description]:
    """Channels that lie last: of two in a group, and one more than a vector has, so that groups begin within one."""
    yield d(16, _NORMAL[:4], *AXES, eps=NEGLIGIBLE_EPS, rank=5, samples=2, width=2, channel_axis=-1)
    for width in (5, 9, 20):
        yield d(2 * width, _NORMAL[:8], *AXES, eps=NEGLIGIBLE_EPS, rank=3, samples=2, width=width, channel_axis=-1)


#: The operator's own cases besides the shared ones, by how its groups lie.
_OWN = {Groups.TRAILING: _trailing, Groups.CHANNEL: _of_channels, Groups.SAMPLE_CHANNELS: _of_sample_channels}
#: The numbers of dimensions of shared cases, in turn, where groups are channels of samples.
_RANKS = (3, 4, 2, 3, 5)


def deck(operator: str, profile: str, seed: int) -> list[Description]:
    """Return the fixed cases of an operator, in the order they run."""
    if OPERATORS[operator].composed:
        ordered = composed_deck(operator) + _of_size(operator, profile)
        return [attrs.evolve(description, seed=seed) for description in ordered]
    groups = OPERATORS[operator].groups
    own, both = _OWN[groups](operator) if groups in _OWN else [], _of_all(operator)
    if groups is Groups.SAMPLE_CHANNELS:
        both = [attrs.evolve(one, rank=_RANKS[place % len(_RANKS)]) for place, one in enumerate(both)]
    laws = 6  # law and derivative cases come first, the operator's own cases next
    axes = frozenset(AXES)
    more = every_layout_deck(operator, profile, frozenset(_NESTED))
    if profile != "quick":
        more += six_axes_deck(operator, axes) + paths_deck(operator, axes)
    more += absent_parameters_deck(operator, profile)
    ordered = both[:laws] + own + both[laws:] + more + _of_size(operator, profile)
    return [attrs.evolve(description, seed=seed) for description in ordered]


def _of_size(operator: str, profile: str) -> list[Description]:
    """The sweep of sizes, other cases of large data, and the repeated calls."""
    found = size_deck(operator, profile) + images_deck(operator, profile) + usual_shapes_deck(operator)
    found += large_deck(operator, profile) + repeated_deck(operator, profile)
    if profile == "quick":
        return found
    derivatives = COMPOSED_DERIVATIVES if OPERATORS[operator].composed else frozenset(_NESTED)
    return found + two_extents_deck(operator) + large_derivatives_deck(operator, derivatives)
