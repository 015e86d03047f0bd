"""exp, the logistic function, tanh and softmax in double-double, for arguments of any size.

The relative error is below 2^-96. Results are `Scaled`, so that nothing underflows: exp(-10000) and its product
with 1e300 keep all their digits. Below -10^6 the exponential is zero.

exp(z) = 2^k exp(i/256) exp(s), z = k ln2 + i/256 + s, |s| <= 2^-9. ln2 is cut into pieces whose products with k
are exact. The second factor comes from a table and the third from its Taylor series.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np

from . import double_double as dd
from .double_double import DD
from .scaled import Scaled

ONE = Scaled.of(1.0)

#: Below this exp(z) counts as zero: 2^-1442695, which no float64 factor brings back into range.
LEAST_ARGUMENT = -1e6

#: |i| <= 89, since |z - k ln2| <= ln2/2 = 0.34658; 90 allows for the rounding of that quotient.
TABLE_STEPS, TABLE_REACH = 256, 90

#: For |z| below this, tanh(z) is z: z^2/3 is 2^-109.
LINEAR_BELOW = 2.0**-54

#: For |z| up to this, expm1(z) is the series itself: k = i = 0.
SERIES_BELOW = 2.0**-10


@cache
def _ln2() -> tuple[float, ...]:
    """ln 2 in three pieces of 30 bits, whose products with k < 2^22 are exact, and the remainder."""
    rest = sum(Fraction(1, k * 2**k) for k in range(1, 220))
    pieces = []
    for bits in (30, 60, 90):
        piece = Fraction(int(rest * 2**bits), 2**bits)
        pieces.append(float(piece))
        rest -= piece
    return (*pieces, float(rest))


def _pair(value: Fraction) -> tuple[float, float]:
    """A rational number as hi + lo."""
    hi = float(value)
    return hi, float(value - Fraction(hi))


@cache
def _table() -> DD:
    """exp(i / 256) for i = -90 .. 90, from 40 terms of the series in fixed point of 200 bits."""
    found = []
    for i in range(-TABLE_REACH, TABLE_REACH + 1):
        total = term = 2**200
        for n in range(1, 40):
            term = term * i // (TABLE_STEPS * n)
            total += term
        found.append(_pair(Fraction(total, 2**200)))
    hi, lo = np.array(found).T
    return DD(hi, lo)


#: 1/6, 1/24 and 1/120 in double-double.
_SIXTH, _24TH, _120TH = (DD(*(np.array(word) for word in _pair(Fraction(1, n)))) for n in (6, 24, 120))


def _expm1_series(s: DD) -> DD:
    """exp(s) - 1 for |s| <= 2^-9.

    s (1 + s/2 + s^2/6 + s^3/24 + s^4/120 + ...). The terms after 1/120 are below 2^-18 and are multiplied by
    s^4 <= 2^-36, so plain float64 is enough for them: its error is 2^-106. The series stops at s^10/10!, because
    s^10/11! is 2^-115.
    """
    x = s.hi
    tail = x * (1 / 720 + x * (1 / 5040 + x * (1 / 40320 + x * (1 / 362880 + x / 3628800))))
    zero = np.zeros_like(x)
    total = dd.add(_120TH, DD(tail, zero))
    total = dd.add(dd.mul(total, s), _24TH)
    total = dd.add(dd.mul(total, s), _SIXTH)
    total = dd.add(dd.mul(total, s), DD(zero + 0.5, zero))
    total = dd.add(dd.mul(total, s), DD(zero + 1.0, zero))
    return dd.mul(total, s)


def _exp(z: DD) -> Scaled:
    """exp(z) for z <= 10^6; NaN and +inf stay what they are."""
    vanishes = z.hi < LEAST_ARGUMENT
    hi = np.where(vanishes | ~np.isfinite(z.hi), 0.0, z.hi)
    zero = np.zeros_like(hi)
    rest = DD(hi, np.where(vanishes | ~np.isfinite(z.lo), 0.0, z.lo))
    k = np.rint(hi / 0.6931471805599453)
    for piece in _ln2():
        rest = dd.add(rest, DD(-k * piece, zero))
    i = np.rint(rest.hi * TABLE_STEPS)
    p = _expm1_series(dd.add(rest, DD(-i / TABLE_STEPS, zero)))
    entry = i.astype(np.intp) + TABLE_REACH
    base = DD(*(word[entry] for word in _table()))
    value = dd.add(base, dd.mul(base, p))
    mantissa, shift = np.frexp(value.hi)
    result = Scaled(DD(mantissa, np.ldexp(value.lo, -shift)), shift + k.astype(np.int32))
    if vanishes.any():
        result = where(vanishes, Scaled.of(zero), result)
    undefined = np.isnan(z.hi) | (z.hi == np.inf)
    if undefined.any():
        result = where(undefined, Scaled.of(z.hi), result)
    return result


def where(condition: np.ndarray, yes: Scaled, no: Scaled) -> Scaled:
    """Elementwise choice between two arrays of numbers."""
    mantissa = DD(*(np.where(condition, a, b) for a, b in zip(yes.mantissa, no.mantissa, strict=True)))
    return Scaled(mantissa, np.where(condition, yes.exponent, no.exponent))


def logistic(z: Scaled) -> tuple[Scaled, Scaled]:
    """Return t = 1 / (1 + exp(-z)) and 1 - t, each to its own relative accuracy."""
    pair = z.to_dd()
    positive = pair.hi >= 0
    sign = np.where(positive, -1.0, 1.0)
    small = _exp(DD(sign * pair.hi, sign * pair.lo))  # exp(-|z|)
    large = ONE / (ONE + small)
    small = small * large
    return where(positive, large, small), where(positive, small, large)


def tanh(z: Scaled) -> Scaled:
    """Return (1 - e) / (1 + e) with e = exp(-2|z|), and the sign of z."""
    pair = z.to_dd()
    sign = np.where(pair.hi >= 0, 1.0, -1.0)
    twice = DD(-2 * sign * pair.hi, -2 * sign * pair.lo)
    e = _exp(twice)
    missing = ONE - e
    near = np.abs(pair.hi) <= SERIES_BELOW
    if near.any():
        tame = DD(*(np.where(near & (np.abs(pair.hi) >= LINEAR_BELOW), word, 0.0) for word in twice))
        series = _expm1_series(tame)
        missing = where(near, -_scaled(series), missing)
    result = missing / (ONE + e) * Scaled.of(sign)
    return where(np.abs(pair.hi) < LINEAR_BELOW, z, result)


def softmax(logits: np.ndarray) -> Scaled:
    """Return exp(l_k) / sum exp(l_j) for float64 logits, shape (K,)."""
    with np.errstate(invalid="ignore"):
        down = DD(*dd.two_sum(logits, -logits.max()))
    e = _exp(DD(down.hi, np.where(np.isfinite(down.hi), down.lo, 0.0)))
    return e / e.sum(0)


def _scaled(value: DD) -> Scaled:
    """A double-double of ordinary magnitude as Scaled."""
    return Scaled.of(value.hi) + Scaled.of(value.lo)
