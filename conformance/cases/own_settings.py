"""Cases for a layer with settings and sizes of its own: these replace the description's before the case is drawn."""

from __future__ import annotations

import math
from typing import Any

import attrs

from ...adapters.fixed import FixedSettings
from ...spec.operators import OPERATORS, Groups
from .description import Description
from .recipes import ALONG_SEQUENCE
from .shapes import elements, factor

#: The most values of x in a case that a layer's own sizes have enlarged. The sweep of sizes also has 2^18 and more in
#: one case. An exact value takes about half a kilobyte.
MOST = 1 << 18

#: gamma and beta, as named in `Fixed.given`.
_AFFINE = ("gamma", "beta")


def with_own_settings(description: Description, fixed: FixedSettings) -> Description | None:
    """
    The description with the values that a binding cannot vary.

    None if that makes it too large to judge exactly, or leaves its parts no axis to read along.

    A mode that the binding lacks stays: the binding declines such a call, and is judged in the other mode.
    """
    if not fixed:
        return description
    changes: dict[str, Any] = {
        name: getattr(fixed, name) for name in ("eps", "momentum") if getattr(fixed, name) is not None
    }
    # LN-F6 is about absent parameters: its cases stay, and a binding that always has parameters declines them.
    if "LN-F6" not in description.requirements:
        changes.update(_affine(description, fixed))
    drawn = attrs.evolve(description, **changes)
    groups = OPERATORS[description.operator].groups
    if groups in (Groups.TRAILING, Groups.LAST):
        drawn = _trailing(drawn, fixed)
        if drawn.leading == () and drawn.recipe in ALONG_SEQUENCE:
            return None
    elif groups is Groups.CHANNEL and fixed.channels is not None:
        drawn = _repeated(drawn, fixed.channels)
    elif groups is Groups.SAMPLE_CHANNELS:
        drawn = _of_samples(drawn, fixed)
    return drawn if elements(drawn) <= max(MOST, elements(description)) else None


def _affine(description: Description, fixed: FixedSettings) -> dict[str, str]:
    """Kinds of gamma and beta that the binding takes: the combination nearest to that of the description."""
    wanted = {name for name in _AFFINE if getattr(description, name) != "none"}
    if not fixed.given or tuple(name for name in _AFFINE if name in wanted) in fixed.given:
        return {}
    nearest = min(fixed.given, key=lambda one: (len(wanted ^ set(one)), -len(one)))
    neutral = {name: "ones" for name in nearest if name not in wanted}  # beta's "ones" are zeros (parameters.py)
    return {**dict.fromkeys((name for name in _AFFINE if name not in nearest), "none"), **neutral}


def _trailing(description: Description, fixed: FixedSettings) -> Description:
    """The description with the binding's number and sizes of trailing axes, and as many other axes as it takes."""
    features = description.features or (description.n,)
    if fixed.shape:
        features = fixed.shape
    elif fixed.axes == 1:
        features = (description.n,)
    elif fixed.axes is not None and len(features) != fixed.axes:
        features = factor(description.n, fixed.axes)
    n = math.prod(features)
    count = description.count_of_groups
    leading = description.leading if description.leading is not None else (count,)
    ranks = fixed.ranks or fixed.native
    if ranks and len(leading) + len(features) not in ranks:
        others = min((rank - len(features) for rank in ranks if rank > len(features)), default=0)
        if not others:  # all axes are normalised together: one group
            description, leading, count = attrs.evolve(description, groups=description.groups[:1], repeat=None), (), 1
        else:
            leading = factor(count, others)
    if n > description.n and description.repeat is None and count * n > MOST:  # a group is as large as a whole case
        description, leading, count = attrs.evolve(description, groups=description.groups[:1]), (1,) * len(leading), 1
    plain = len(features) == 1 and description.features is None
    shaped = {"features": None if plain else features, "leading": None if leading == (count,) else leading}
    return attrs.evolve(description, n=n, **shaped)


def _repeated(description: Description, count: int) -> Description:
    """The description with ``count`` groups: its own in turn, or, if fewer, some from every stretch of them."""
    had = description.groups
    if count < len(had):
        return attrs.evolve(description, repeat=None, groups=tuple(had[i * len(had) // count] for i in range(count)))
    return attrs.evolve(description, repeat=None if count == len(had) else count)


def _of_samples(description: Description, fixed: FixedSettings) -> Description:
    """Samples with the binding's number of channels and of groups."""
    each = fixed.groups or _groups_of(description, fixed.channels)
    if each is None:
        return description
    samples = max(1, round(description.count_of_groups / each))
    if fixed.channels is None:
        return attrs.evolve(_repeated(description, samples * each), samples=samples)
    width = fixed.channels // each
    positions = 1 if fixed.ranks == (2,) else max(1, round(description.n / width))
    description = _repeated(attrs.evolve(description, n=width * positions, width=width), samples * each)
    least = 3 if positions > 1 or OPERATORS[description.operator].channels_alone else 2
    return attrs.evolve(description, samples=samples, rank=max(description.rank, least))


def _groups_of(description: Description, channels: int | None) -> int | None:
    """How many groups so many channels form: as near to the description's as divides them, or one a channel."""
    if channels is None or OPERATORS[description.operator].channels_alone:
        return channels
    wanted = description.count_of_groups // (description.samples or 1)
    return min((count for count in range(1, channels + 1) if not channels % count), key=lambda one: abs(one - wanted))
