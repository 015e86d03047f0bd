"""Double-double arithmetic on NumPy arrays: unevaluated sums hi + lo of two float64, 106 bits.

Every function is elementwise and broadcasts. Operands must be such that no product or low word
overflows or underflows (magnitudes within 2**-300 .. 2**300, or zero); `scaled.py` sees to that.
Error bounds are relative to the exact result of the operation on the given pairs, u = 2**-53.

Sources: Dekker, "A floating-point technique for extending the available precision", Numer. Math.
18 (1971); Knuth, TAOCP vol. 2, 4.2.2 (two_sum); Hida, Li, Bailey, "Library for double-double and
quad-double arithmetic" (2007); the bounds: Joldes, Muller, Popescu, "Tight and rigorous error
bounds for basic building blocks of double-word arithmetic", ACM TOMS 44:2 (2017).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: Veltkamp's splitter 2**27 + 1 cuts a 53-bit significand into two of at most 26 bits.
SPLITTER = 134217729.0

#: Bounds on the relative error of each operation, in units of u**2 = 2**-106. add and sqrt:
#: Joldes et al., algorithms 6 and the square root (3u^2 and 25/8 u^2, rounded up for the terms in
#: u^3). mul: their algorithm 10 without FMA, 7u^2. div: two quotients corrected by exact
#: remainders: each correction adds the errors of one mul and one add, scaled by 2u. The final
#: addition has 3u^2; 10 covers it all.
ADD_BOUND, MUL_BOUND, DIV_BOUND, SQRT_BOUND = 3.01, 7.0, 10.0, 3.2


class DD(NamedTuple):
    """The number hi + lo; normalised where hi is that sum rounded to nearest."""

    #: float64 array: the leading part.
    hi: np.ndarray
    #: float64 array of the same shape: the remainder after rounding to hi.
    lo: np.ndarray


def two_sum(a, b):
    """Return (s, e) with s = fl(a + b) and s + e = a + b exactly (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def fast_two_sum(a, b):
    """Return (s, e) as `two_sum` does, for |a| >= |b| or a = 0 (Dekker)."""
    s = a + b
    return s, b - (s - a)


def split(a):
    """Return (h, t) with h + t = a exactly, each of at most 26 significant bits (Veltkamp)."""
    c = SPLITTER * a
    h = c - (c - a)
    return h, a - h


def two_prod(a, b):
    """Return (p, e) with p = fl(a * b) and p + e = a * b exactly (Dekker; NumPy has no FMA)."""
    p = a * b
    ah, al = split(a)
    bh, bl = split(b)
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def add(x: DD, y: DD) -> DD:
    """Return x + y to 3.01 u^2, even under cancellation (both words added exactly first)."""
    s, e = two_sum(x.hi, y.hi)
    t, f = two_sum(x.lo, y.lo)
    s, e = fast_two_sum(s, e + t)
    return DD(*fast_two_sum(s, e + f))


def mul(x: DD, y: DD) -> DD:
    """Return x * y to 7 u^2; the product of the low words is below that and is left out."""
    p, e = two_prod(x.hi, y.hi)
    return DD(*fast_two_sum(p, e + (x.hi * y.lo + x.lo * y.hi)))


def div(x: DD, y: DD) -> DD:
    """Return x / y to 10 u^2: three quotients, each of the remainder that the previous ones left."""
    q1 = x.hi / y.hi
    rest = _less(x, y, q1)
    q2 = rest.hi / y.hi
    rest = _less(rest, y, q2)
    q3 = rest.hi / y.hi
    q1, q2 = fast_two_sum(q1, q2)
    return add(DD(q1, q2), DD(q3, np.zeros_like(q3)))


def sqrt(x: DD) -> DD:
    """Return the square root to 3.2 u^2: float64's, corrected by its remainder (Karp); 0 gives 0."""
    s = np.sqrt(x.hi)
    p, e = two_prod(s, s)
    rest = add(x, DD(-p, -e)).hi
    return DD(*fast_two_sum(s, np.where(s == 0, 0.0, rest / (2 * s))))


def tree_sum(x: DD, axis: int) -> DD:
    """Return the sum along one axis, which it drops, added pairwise: depth ceil(log2 n).

    The error is at most 3.01 u^2 ceil(log2 n) sum|x|. An empty axis sums to zero.
    """
    hi, lo = (np.moveaxis(word, axis, 0).copy() for word in x)
    count = len(hi)
    if count == 0:
        return DD(np.zeros(hi.shape[1:]), np.zeros(hi.shape[1:]))
    while count > 1:
        half = (count + 1) // 2  # if the count is odd, the middle one waits for the next round
        pairs, partners = slice(0, count - half), slice(half, count)
        hi[pairs], lo[pairs] = add(DD(hi[pairs], lo[pairs]), DD(hi[partners], lo[partners]))
        count = half
    return DD(hi[0], lo[0])


def _less(x: DD, y: DD, q) -> DD:
    """Return x - y * q for a float64 q."""
    product = mul(y, DD(q, np.zeros_like(q)))
    return add(x, DD(-product.hi, -product.lo))
