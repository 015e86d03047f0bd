"""
Cases in which an aspect meets a path of its own.

A kernel has paths for calls without parameters, for float32 parameters, for rows in other places of memory, for many
rows, for one row. The deck tries each aspect (data far from zero, a small eps, NaN, no groups) on the plainest of them,
and a mistake in the aspect on another path shows only where both meet. `quick` goes without these cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from ...spec.operators import OPERATORS, Groups
from .description import NEGLIGIBLE_EPS, Description, Kinds

_NORMAL: Kinds = tuple(("normal", index) for index in range(9))
#: As many groups as rows in three axes hold.
_OFFSETS: Kinds = tuple(("offset", index) for index in range(12))
#: Far from zero, with a deviation of one step of bfloat16 or float16 among them.
_WITNESSES: Kinds = tuple(("witness", index) for index in (7, 10, 11))
#: Far from zero, beyond what a plain sum of 130 values may lose in float32.
_FAR: Kinds = tuple(("offset", index) for index in (2, 6))
_NEAR: Kinds = tuple(("near_eps", index) for index in (0, 1, 2, 5))

_LAYOUTS = frozenset(("CM-V1", "CM-V2", "CM-V3"))
_NON_FINITE = frozenset(("CM-N1", "CM-N3", "CM-N4", "CM-N6", "CM-N7"))
#: 16-bit data with float32 parameters.
_WIDE = {"mixed": True, "only": True, "requirements": frozenset(("CM-D1", "CM-D2", "CM-D3"))}
_NO_PARAMETERS = {"gamma": "none", "beta": "none"}


def paths_deck(operator: str, axes: frozenset[str]) -> list[Description]:
    """The cases of a normalisation; ``axes``: the requirements about which values form a group."""
    record = OPERATORS[operator]
    plain = Description(operator, 6, _NORMAL[:3], eps=NEGLIGIBLE_EPS)
    several = {
        Groups.TRAILING: _of_rows,
        Groups.CHANNEL: _of_channels,
        Groups.SAMPLE_CHANNELS: _of_sample_channels,
    }[record.groups]
    found = [*_of_any(centred=record.centred), *several(axes)]
    if record.channels_alone:  # one value a channel of one sample: all that is left is beta
        found.append({"n": 1, "rank": 3, "samples": 1, "only": True, "requirements": frozenset(("IN-E1",))})
    rank = {"rank": 4, "samples": 2} if record.groups is Groups.SAMPLE_CHANNELS else {}
    made = [attrs.evolve(plain, **{**rank, **fields}) for fields in found]
    if "beta" not in record.arguments:  # then of two cases without gamma one is enough
        made = [one for one in made if one.gamma != "none" or one.beta == "none"]
    return made


def _of_any(*, centred: bool) -> Iterator[dict[str, Any]]:
    """No parameters, one of them, float32 parameters."""
    if centred:
        far = {"n": 16, "groups": _OFFSETS}
        yield {**far, **_NO_PARAMETERS}
        yield {**far, "groups": _OFFSETS[:9] + _WITNESSES, **_WIDE}
    yield {"n": 16, "groups": _NEAR, "eps": 2.0**-30, "requirements": frozenset(("CM-V1",))}
    yield {**_NO_PARAMETERS, "requirements": _NON_FINITE | {"CM-S2"}}
    yield {"beta": "none", "requirements": _LAYOUTS}
    yield {"gamma": "none", "requirements": _LAYOUTS | {"CM-S2"}}


def _of_rows(axes: frozenset[str]) -> Iterator[dict[str, Any]]:
    """Several axes, many rows, one row, heads between the rows of a sequence."""
    yield {"n": 16, "groups": _OFFSETS, "features": (4, 4), "leading": (3, 4)}
    yield {"n": 130, "groups": _FAR, "repeat": 67, "gamma": "ones", "beta": "none"}
    yield {"n": 12, "groups": _NORMAL[:4], "features": (3, 4), **_WIDE}
    yield {"n": 9, "groups": _NORMAL[:4], "features": (3, 3), "leading": (2, 2), "requirements": _LAYOUTS | axes}
    heads = {"features": (6,), "leading": (2, 3, 4), "repeat": 24}
    yield {**heads, "groups": _NORMAL, "requirements": _LAYOUTS | {"CM-S2"}}
    yield {"features": (6,), "leading": (2, 2), "groups": _NORMAL[:4], "requirements": frozenset(("CM-S2",))}
    for gamma, beta in (("none", "mixed"), ("none", "none"), ("mixed", "none")):
        yield {"groups": _NORMAL[:1], "features": (6,), "leading": (), "gamma": gamma, "beta": beta}


def _of_channels(axes: frozenset[str]) -> Iterator[dict[str, Any]]:
    """Channels first, of as many as the axis after them is long; and last, in inference too; one value a channel."""
    for training in (True, False):
        yield {"n": 27, "rank": 4, "samples": 3, "channel_axis": 0, "training": training, "requirements": axes}
    last = {"n": 16, "groups": _NORMAL[:2], "rank": 5, "samples": 2, "channel_axis": -1}
    yield {**last, "training": False, "requirements": axes}
    yield {"n": 16, "groups": _OFFSETS, "rank": 4, "samples": 2, "channel_axis": -1}
    yield {"rank": 4, "samples": 2, "channel_axis": -1, **_WIDE}
    yield {"training": False, **_NO_PARAMETERS, "requirements": frozenset(("BN-E3",))}
    yield {"n": 1, "rank": 4, "samples": 1, "only": True, "requirements": frozenset(("BN-E1", "BN-E5"))}


def _of_sample_channels(axes: frozenset[str]) -> Iterator[dict[str, Any]]:
    """Several channels a group where they come last of five axes."""
    yield {"channel_axis": -1, **_WIDE}
    yield {"n": 24, "groups": _NORMAL[:4], "rank": 5, "width": 2, "channel_axis": -1, "requirements": axes}
