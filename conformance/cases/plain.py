"""
Plain cases: which of two descriptions tells a reader more, and the plainest cases that may show a violation.

A case tells most if eps and the magnitude of its data are ordinary; next if it has few values; next if its numbers are
easy to remember and nothing unnecessary is given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs
import numpy as np

from ...reference.formats import FORMATS
from ...spec.operators import OPERATORS, Groups
from .description import Description, Kinds
from .parameters import BALANCED, EDGES, HUGE, LATE, NEGATIVE, VAST
from .shapes import elements, shape_of

#: The usual range of eps, and the largest ordinary magnitude: values one would try by hand.
_ORDINARY_EPS = (1e-6, 1.0)
_ORDINARY = 2.0**10
#: Beyond this many octaves a case is about its magnitude.
_FAR = 24

#: Regimes, the most readable numbers first; the others come after them.
_READ = ("witness", "integers", "constant", "one_hot")
#: An absent parameter needs no explanation; ones and zeros need little.
_AFFINE = ("none", "ones", "powers", NEGATIVE, "mixed", "small", "large", HUGE, "zeros")
_COTANGENTS = ("integers", "one_hot", "ones", BALANCED, "mixed", LATE, "small", "large", EDGES, VAST)

#: The eps to try. The first shows with (-1, 1) even in 16 bits if it is in the wrong place; the second is not exact
#: in float32; with the third the variance is as small as eps.
_EPS = (2.0**-10, 1e-5, 0.5)


def oddness(description: Description) -> tuple[float, ...]:
    """How odd a case is: of two cases, the less odd tells more."""
    least, most = _ORDINARY_EPS
    record = OPERATORS[description.operator]
    dimensions = description.leading or () if record.composed else shape_of(description)
    return (
        record.normalises and not least <= description.eps <= most,
        _magnitude(description),
        elements(description) * (description.count if record.has_branches else 1),
        description.count_of_groups,
        len(dimensions),
        sum(_READ.index(name) + 1 if name in _READ else 9 for name, _ in description.groups),
        sum(index for _, index in description.groups),
        _AFFINE.index(description.gamma) + _AFFINE.index(description.beta),
        _COTANGENTS.index(description.cotangent),
        _EPS.index(description.eps) if description.eps in _EPS else len(_EPS),
    )


def _magnitude(description: Description) -> int:
    """0 if all values except zeros are ordinary, 1 if not, 2 if they are far from ordinary."""
    values = np.abs(attrs.evolve(description, repeat=None).group_values(FORMATS["float64"]))
    given = values[values > 0]
    if not given.size or (given.min() >= 1 / _ORDINARY and given.max() <= _ORDINARY):
        return 0
    return 1 + bool(given.min() < 2.0**-_FAR or given.max() > 2.0**_FAR)


# The plainest cases ----------------------------------------------------------------------------------------------

#: (-1, 1); (0, 1); (-sqrt(eps), sqrt(eps)); (0, 0, 3); (1, 2, 4, -3) or its beginning; a constant. Each has few values
#: and shows some mistakes.
_GROUPS: tuple[tuple[int, Kinds], ...] = (
    (2, (("witness", 0),)),
    (2, (("witness", 1),)),
    (2, (("witness", 2),)),
    (3, (("witness", 3),)),
    (3, (("witness", 6),)),
    (3, (("constant", 2),)),
    (2, (("witness", 0), ("witness", 1))),
    (2, (("witness", 2), ("witness", 1))),
    (4, (("witness", 6),)),
    (2, (("integers", 0), ("witness", 0), ("witness", 1))),
    (3, (("witness", 6), ("integers", 1))),
    (4, (("witness", 6), ("integers", 0), ("witness", 3))),
)
#: gamma and beta: absent, neutral, of either sign. Some targets need both.
_PARAMETERS = (("none", "none"), ("ones", "ones"), ("powers", "none"), ("powers", "powers"))


def plainest(like: Description) -> Iterator[Description]:
    """The plainest cases with the purpose, mode and parts of a description, those with few values first."""
    record = OPERATORS[like.operator]
    plain = attrs.evolve(
        like, repeat=None, features=None, leading=None, rank=2, channel_axis=1, samples=None, width=None,
        cotangent=_COTANGENTS[0], far=False, fast_only=False, count=min(like.count, 2),
    )  # fmt: skip
    for n, groups in _GROUPS:
        for gamma, beta in _PARAMETERS if record.has_gain else _PARAMETERS[:1]:
            for eps in _EPS if record.normalises else (like.eps,):
                yield attrs.evolve(plain, n=n, groups=groups, gamma=gamma, beta=beta, eps=eps)


# From a case to plainer ones -------------------------------------------------------------------------------------


def plainer(description: Description) -> Iterator[Description]:
    """Descriptions that differ from one in a single respect and may be plainer, those with fewer values first."""
    yield from _of_fewer_values(description)
    yield from _along_shorter_axes(description)
    for eps in _EPS if OPERATORS[description.operator].normalises else ():
        yield attrs.evolve(description, eps=eps)
    for place in range(min(len(description.groups), 4)):
        for other in (("witness", 0), ("witness", 1), ("witness", 6), ("integers", 0), ("normal", 0)):
            yield attrs.evolve(
                description, groups=(*description.groups[:place], other, *description.groups[place + 1 :])
            )
    if OPERATORS[description.operator].has_gain:
        for name in ("gamma", "beta"):
            for kind in _AFFINE[: _AFFINE.index(getattr(description, name))]:
                yield attrs.evolve(description, **{name: kind})
    for cotangent in _COTANGENTS[:2]:
        yield attrs.evolve(description, cotangent=cotangent)


def _of_fewer_values(description: Description) -> Iterator[Description]:
    record, shaped = (
        OPERATORS[description.operator],
        {"features": None, "leading": None, "samples": None, "width": None},
    )
    by_channel = record.groups is Groups.CHANNEL
    if record.has_branches:
        for count in _less(description.count, 1, 2):
            yield attrs.evolve(description, count=count)
    if by_channel and description.samples is not None and description.samples < description.n:  # fewer positions
        positions = description.n // description.samples
        for fewer in dict.fromkeys((1, positions // 2, positions - 1)):
            yield attrs.evolve(description, n=description.samples * fewer)
    if description.repeat is not None:
        for fewer in (None, *_less(description.repeat, description.repeat // 2)):
            yield attrs.evolve(description, repeat=fewer, leading=None)
    if len(description.groups) > 1:
        flat = {**shaped, "samples": description.samples}  # a channel has as many samples as before
        for group in description.groups:
            yield attrs.evolve(description, groups=(group,), **flat)
        half = len(description.groups) // 2
        yield attrs.evolve(description, groups=description.groups[:half], **flat)
        yield attrs.evolve(description, groups=description.groups[half:], **flat)
    for n in (less for less in _less(description.n, 2, 3, 4) if less > 1):  # a group of one value is a special case
        yield attrs.evolve(description, n=n, **shaped)
        if by_channel and description.samples is not None:
            yield attrs.evolve(description, n=n, samples=n)


def _along_shorter_axes(description: Description) -> Iterator[Description]:
    """Descriptions with the same number of axes, one of them shorter; or with fewer channels or samples."""
    if description.features is not None:
        for features in _shorter(description.features):
            if math.prod(features) > 1:
                yield attrs.evolve(description, features=features, n=math.prod(features))
    leading = description.leading
    if leading is not None and description.repeat is None and math.prod(leading) == len(description.groups):
        for fewer in _shorter(leading):
            yield attrs.evolve(description, leading=fewer, groups=description.groups[: math.prod(fewer)])
    if OPERATORS[description.operator].has_channels and description.leading is None:
        for n in (less for less in _less(description.n, 2, 4) if less > 1):
            yield attrs.evolve(description, n=n)
        if description.repeat is None:
            for count in _less(len(description.groups), 2, 4):
                yield attrs.evolve(description, groups=description.groups[:count])
        for samples in _less(description.samples or 1, 1, 2):
            yield attrs.evolve(description, samples=samples)


def _shorter(sizes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for axis, size in enumerate(sizes):
        for less in _less(size, 1, 2):
            yield (*sizes[:axis], less, *sizes[axis + 1 :])


def _less(size: int, *sizes: int) -> list[int]:
    """Some sizes below ``size``: those given, its half, and one less."""
    return [less for less in dict.fromkeys((*sizes, size // 2, size - 1)) if 0 < less < size]
