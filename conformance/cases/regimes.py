"""Named regimes: what one normalised group can look like, and the proof that it does.

Plain random data hides most faults. Each regime is a family of groups in which some fault shows, or which is hard for
some sound algorithm. A regime draws a group of any length from a generator, in float64; the case rounds it to the dtype
under test. ``reached`` says whether a group, once rounded, is as its regime promises; the project's tests hold every
regime to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from ...reference.formats import FORMATS, Format
from .parameters import edges
from .stream import Stream, deviation, mean
from .witnesses import WITNESSES

Array = NDArray[np.float64]


def _most(format: Format, n: int) -> float:
    """The largest magnitude of n values whose squares can be summed, in float32 for 16 bits: n x^2 <= largest/4."""
    computed = FORMATS["float32"] if format.narrow else format
    return min(format.largest / 4, math.sqrt(computed.largest / (4 * max(n, 1))))


@attrs.frozen
class Drawing:
    """What a regime may use to draw one group."""

    random: Stream
    #: Which member of the regime's family to draw; shrinking moves towards 0.
    index: int
    n: int
    eps: float
    #: The format that the group will be rounded to.
    format: Format

    @property
    def largest(self) -> float:
        """The largest magnitude whose squares can be summed."""
        return _most(self.format, self.n)

    def normal(self) -> Array:
        return self.random.standard_normal(self.n)


@attrs.frozen
class Regime:
    """A named family of groups."""

    name: str
    summary: str
    draw: Callable[[Drawing], Array]
    #: Whether a drawn group, rounded to its format, shows the regime: (group, eps, format) -> bool.
    reached: Callable[[Array, float, Format], bool]
    #: Whether groups are kept so small that the sum of squares cannot overflow (rule R1 of spec/accuracy.md).
    in_range: bool = True
    #: Whether generated cases have such groups.
    generated: bool = True


def _witness(drawing: Drawing) -> Array:
    values = WITNESSES[drawing.index % len(WITNESSES)].values(drawing.eps)
    return np.resize(np.array(values, dtype=np.float64), drawing.n)


def _normal(drawing: Drawing) -> Array:
    return drawing.normal()


def _near_eps(drawing: Drawing) -> Array:
    octaves = (0, -2, 2, -5, 5, -8, 8)[drawing.index % 7]
    sigma = math.sqrt(drawing.eps * 2.0**octaves) or 2.0**-10
    z = drawing.normal()
    return sigma * (z - mean(z)) / (deviation(z) or 1.0)


def _below_eps(drawing: Drawing) -> Array:
    sigma = math.sqrt(drawing.eps) * 2.0 ** -(8 + drawing.index % 4)
    return (sigma or 2.0**-20) * drawing.normal()


def _scaled(drawing: Drawing) -> Array:
    exponents = (3, -3, 6, -6, 10, -10, 13, -13)
    return drawing.normal() * 2.0 ** exponents[drawing.index % len(exponents)]


def _constant(drawing: Drawing) -> Array:
    values = (0.0, 1.0, 0.1, -7.3, 1234.0, 2.0**-7)
    return np.full(drawing.n, values[drawing.index % len(values)])


def _one_hot(drawing: Drawing) -> Array:
    group = np.zeros(drawing.n)
    place = (0, drawing.n - 1, drawing.n // 2)[drawing.index % 3]
    group[place] = (1.0, 1e3, 3.0e4)[drawing.index // 3 % 3]
    return group


def _offset(drawing: Drawing) -> Array:
    """A mean far above the deviation, which the format still resolves: from a few ulps to a 64th of the mean."""
    digits, place = int(-math.log2(drawing.format.unit_roundoff)), drawing.index % 4
    deviations = drawing.random.integers(-4, 5, drawing.n).astype(np.float64)
    if drawing.format.narrow:  # computed in float32, where deviations may be single ulps
        ratio = 2.0 ** (digits - 1 - (0, 1, 2, 2)[place])
    else:
        # A few digits of the deviations are kept, since an algorithm in that format has no others. The smallest mean is
        # for code that computes the variance in one pass up to some mean. Its deviations have all their digits, since
        # squares of small integers would be exact.
        most, least = min(digits - 4, 30), 8
        ratio = 2.0 ** (least + (most - least) * (3 - place) // 3)
        if place == 3:
            deviations += drawing.random.random(drawing.n) / 2
    sign = -1.0 if drawing.index % 2 else 1.0
    scale = (1.0, 0.25, 1.0, 2.0**-6)[drawing.index // 4 % 4]
    return sign * scale * (ratio + deviations)


def _heavy_tailed(drawing: Drawing) -> Array:
    z = drawing.normal()
    octaves = np.minimum(4 * np.abs(z), 13.0)
    whole = np.floor(octaves)  # 2^octaves, with straight lines between the powers: no library's exp
    return np.sign(z) * np.ldexp(1 + (octaves - whole), whole.astype(int))


def _integers(drawing: Drawing) -> Array:
    return drawing.random.integers(-8, 9, drawing.n).astype(np.float64)


def _edges(drawing: Drawing) -> Array:
    """Alternating signs, so that no mean is large compared with the deviation and no two values are equal."""
    signs = np.where((np.arange(drawing.n) + drawing.index) % 2, -1.0, 1.0)
    return signs * (1 + drawing.random.random(drawing.n)) * edges((drawing.n,))


def _subnormal(drawing: Drawing) -> Array:
    """A few times the smallest number; every other group has values up to the smallest normal number."""
    if drawing.index % 2:
        return drawing.random.uniform(-0.99, 0.99, drawing.n) * drawing.format.smallest_normal
    return drawing.random.integers(-9, 10, drawing.n).astype(np.float64) * drawing.format.smallest_subnormal


def _near_overflow(drawing: Drawing) -> Array:
    top = drawing.largest * (0.9, 0.5)[drawing.index % 2]
    return top * drawing.random.uniform(-1, 1, drawing.n)


def _wide(drawing: Drawing) -> Array:
    """Deviation 2^50: r^3 underflows in float32, although r and the gradient do not."""
    return 2.0**50 * drawing.normal()


def _huge(drawing: Drawing) -> Array:
    """Values whose squares overflow float32, although the result is of order one."""
    return 2.0 ** (100 + 5 * (drawing.index % 3)) * drawing.normal()


def _ramp(drawing: Drawing) -> Array:
    """A trend, which independent values lack: no two parts of the group have the same mean."""
    rising = np.linspace(-2, 2, drawing.n) * (-1 if drawing.index % 2 else 1)
    return rising + drawing.normal() / 8


#: How many members of the regime "tiny" are large enough for gradients.
_LESS_TINY = 2


def _tiny(drawing: Drawing) -> Array:
    """
    A variance of 2^-82, below the limits that code sets in place of an eps; r^3 is still far from overflow.

    From the third on it is 2^-110, still smaller, for y alone: below 1e-30, and near the smallest normal of float32.
    """
    deviation = 2.0**-41 if drawing.index < _LESS_TINY else 2.0**-55
    return max(deviation, 16 * drawing.format.smallest_normal) * drawing.normal()


def _spread(group: Array) -> float:
    return float(group.std())


#: How many deviations the mean of an offset group is from zero at least, once rounded to a narrow format.
_LEAST_OFFSET = 8.0

REGIMES: dict[str, Regime] = {
    regime.name: regime
    for regime in (
        Regime(
            "witness",
            "a few explicit numbers, each the smallest sign of some fault",
            _witness,
            lambda group, eps, format: len(np.unique(group)) <= 4,
        ),
        Regime("normal", "independent standard normal values", _normal, lambda g, e, f: True),
        Regime(
            "near_eps",
            "variance within 2^9 of eps, where its placement shows",
            _near_eps,
            lambda g, e, f: e > 0 and e * 2.0**-9 * 0.5 < g.var() < e * 2.0**9 * 2,
        ),
        Regime(
            "below_eps",
            "variance at most 2^-12 eps, where eps itself is measured",
            _below_eps,
            lambda g, e, f: bool(np.any(g)) and g.var() < e * 2.0**-12,
        ),
        Regime(
            "scaled",
            "deviations from 2^-13 to 2^13",
            _scaled,
            lambda g, e, f: not 0.5 < _spread(g) < 2,
        ),
        Regime("constant", "one value repeated", _constant, lambda g, e, f: bool(np.all(g == g[0]))),
        Regime(
            "one_hot",
            "one outlier among zeros",
            _one_hot,
            lambda g, e, f: int(np.count_nonzero(g)) == 1,
        ),
        Regime(
            "offset",
            "a mean far above the deviation, where one-pass variance cancels",
            _offset,
            lambda g, e, f: abs(g.mean()) > _LEAST_OFFSET * max(_spread(g), 1e-300),
        ),
        Regime(
            "heavy_tailed",
            "magnitudes from 1 to 2^13 in one group",
            _heavy_tailed,
            lambda g, e, f: len(g) < 8 or np.abs(g).max() > 8 * np.median(np.abs(g)),
        ),
        Regime(
            "integers",
            "small integers, whose sums are exact",
            _integers,
            lambda g, e, f: bool(np.all(g == np.rint(g)) and np.abs(g).max() <= 8),
        ),
        Regime(
            "subnormal",
            "subnormal values of the format",
            _subnormal,
            lambda g, e, f: bool(np.any(g) and np.abs(g).max() < f.smallest_normal),
        ),
        Regime(
            "near_overflow",
            "values whose sum of squares is just below overflow",
            _near_overflow,
            lambda g, e, f: len(g) < 8 or float(np.abs(g).max()) > _most(f, len(g)) / 8,
        ),
        Regime(
            "wide",
            "a deviation whose inverse cube underflows float32",
            _wide,
            lambda g, e, f: _spread(g) > 2.0**42,
            in_range=False,
        ),
        Regime(
            "huge",
            "values whose squares overflow float32",
            _huge,
            lambda g, e, f: float(np.abs(g).max()) > 2.0**64,
            in_range=False,
        ),
        Regime(
            "edges",
            "a few values of order one that end blocks, and small ones between",
            _edges,
            lambda g, e, f: 0.5 < np.abs(g).max() <= 2 and (len(g) <= 7 or float(np.median(np.abs(g))) < 0.07),
            generated=False,
        ),
        Regime(
            "ramp",
            "values that rise or fall along the group",
            _ramp,
            lambda g, e, f: len(g) < 8 or abs(g[: len(g) // 2].mean() - g[-(len(g) // 2) :].mean()) > _spread(g),
            generated=False,
        ),
        Regime(
            "tiny",
            "a variance near 2^-82, where eps = 0 must stay 0",
            _tiny,
            lambda g, e, f: 0 < _spread(g) < max(2.0**-39, 2.0**6 * f.smallest_normal),
            generated=False,
        ),
    )
}

#: The order in which cases are drawn and shrink, from the plainest to the oddest.
ORDER: tuple[str, ...] = tuple(REGIMES)
#: The regimes from which generated cases are drawn.
GENERATED: tuple[str, ...] = tuple(name for name in ORDER if REGIMES[name].in_range and REGIMES[name].generated)


def draw_group(regime: str, index: int, *, n: int, eps: float, format: Format, seed: int, row: int = 0) -> Array:
    """Return one group of ``n`` float64 values that are exact in ``format``.

    The values come from a counter-based generator keyed by all arguments, so the same arguments
    give the same group everywhere.
    """
    place = ORDER.index(regime)
    # The format is not in the key, so that one description gives corresponding groups in every dtype.
    drawing = Drawing(Stream(seed, place, index, n, row), index, n, eps, format)
    group = REGIMES[regime].draw(drawing)
    if not REGIMES[regime].in_range:
        return round_to(group, format)
    top = drawing.largest
    highest = float(np.abs(group).max(initial=0.0))
    if highest > top:  # an exact power of two keeps the shape of the group
        group = group * 2.0 ** -math.frexp(highest / top)[1]
    return round_to(group, format)


def round_to(values: Any, format: Format) -> Array:
    """Return the values rounded to the nearest numbers of ``format``, as float64."""
    with np.errstate(all="ignore"):
        return np.asarray(values, dtype=np.float64).astype(format.dtype).astype(np.float64)
