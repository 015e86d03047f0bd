"""How gamma, beta and the cotangent are drawn: every setting away from its default."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...reference.formats import FORMATS, Format
from .stream import Stream

#: gamma and beta: none, neutral, or values of both signs, with zeros and powers of two among them.
AFFINE = ("ones", "none", "mixed", "powers", "zeros", "large", "small")
#: Two kinds for a few cases of the deck. The values of one are so large that they hide everything else in the case; the
#: other is one negative number throughout.
HUGE, NEGATIVE = "huge", "negative"
#: Cotangents. Most are not uniform, because with a uniform one and a gamma of ones dx is zero by law. Sparse ones
#: single out one element; the uniform one is that of ``y.sum().backward()``. Small and large ones are about a third of
#: the format's exponents away from 1, which leaves room for products with the cube of 1 / sqrt(variance + eps).
COTANGENT = ("mixed", "one_hot", "integers", "small", "ones", "large")

#: The cotangent of size cases (sizes.py), whose parameter gradients are sums over all groups or values.
EDGES = "edges"
#: The cotangent of a few cases of the deck: its values add up to exactly 0, and are not 0.
BALANCED = "balanced"
#: Two more for a few of them. In one, the first half is 0: the first samples, or the first groups. The other is near
#: float16's largest number, with signs in turn, so that sums of few of its values are not beyond it.
LATE, VAST = "late", "vast"

#: Values that single out faults: zero, a negative one, powers of two.
_SPECIAL = (0.0, -1.0, 2.0, -0.5, 1.0)


def affine_values(kind: str, shape: tuple[int, ...], format: Format, seed: int, role: int) -> NDArray[Any] | None:
    """Return gamma (role 1) or beta (role 2) of this kind and shape, or None."""
    random = Stream(seed, 1000 + role, math.prod(shape), (*AFFINE, HUGE, NEGATIVE).index(kind))
    if kind == "none":
        return None
    if kind == NEGATIVE:
        values = np.full(shape, -1.5)
    elif kind == "ones":
        values = np.full(shape, 1.0 if role == 1 else 0.0)
    elif kind == "zeros":
        values = np.zeros(shape)
    elif kind == "powers":
        values = np.ldexp(random.choice([-1.0, 1.0], shape), random.integers(-3, 4, shape))
    else:
        values = random.standard_normal(shape) + 0.5
        flat = values.reshape(-1)
        for place, special in enumerate(_SPECIAL[: max(0, flat.size - 2)]):
            flat[(3 * place + role) % flat.size] = special
        # Huge results are beyond float16's largest number, in every other format.
        huge = 2.0**20 if format.largest > 2.0**40 else 64.0
        values = values * {"mixed": 1.0, "large": 64.0, "small": 2.0**-6, HUGE: huge}[kind]
    return values.astype(format.dtype)


def edges(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """
    Weights of a shape: 1 where an axis begins or ends and a quarter, a half and three quarters through, else small.

    A sum over n equal terms may err by as much as n^2 u of one term, so from n = 2000 on in float32 a few missing terms
    hide in the error. Here a few large terms make up the sum, and a block that loses one of them shows. The small terms
    keep their own accuracy wherever results are not sums.
    """
    weights = np.ones(shape)
    for axis, n in enumerate(shape):
        line = np.full(n, 2.0**-13 if n > 8193 else 2.0**-10 if n > 256 else 2.0**-5)
        line[list(edge_places(n))] = 1.0
        weights *= line.reshape([-1 if other == axis else 1 for other in range(len(shape))])
    return weights


def edge_places(n: int) -> tuple[int, ...]:
    """The places where a line of n begins or ends, and those a quarter, a half and three quarters through."""
    return tuple(sorted({place for place in (0, 1, n // 4, n // 2, 3 * n // 4, n - 2, n - 1) if 0 <= place < n}))


def tiny_exponent(format: Format) -> int:
    """The exponent of small values: a third of the format's exponents below 1."""
    return -(math.frexp(format.largest)[1] // 3)


def cotangent_values(kind: str, shape: tuple[int, ...], format: Format, seed: int) -> NDArray[Any]:
    """Return a cotangent of this kind, with values of both signs and a mean away from zero."""
    random = Stream(seed, 2000, math.prod(shape), (*COTANGENT, EDGES, BALANCED, LATE, VAST).index(kind))
    if kind == EDGES:
        values = random.choice([-1.0, 1.0], shape) * (1 + random.random(shape)) * edges(shape)
    elif kind == "one_hot":
        values = np.zeros(shape)
        flat = values.reshape(-1)
        if flat.size:  # the last element too: code that works in blocks drops tails
            flat[0], flat[-1], flat[flat.size // 2] = 1.0, -2.0, 3.0
    elif kind == "integers":
        values = random.integers(-4, 6, shape).astype(np.float64)
    elif kind == "ones":
        values = np.ones(shape)
    elif kind == BALANCED:
        values = random.integers(1, 6, shape).astype(np.float64)
        flat = values.reshape(-1)
        flat[1::2] = -flat[: flat.size // 2 * 2 : 2]
        flat[flat.size // 2 * 2 :] = 0
    elif kind == LATE:
        values = random.standard_normal(shape) + 0.5
        values.reshape(-1)[: values.size // 2] = 0
    elif kind == VAST:
        values = 2.0**15 * (0.875 + random.random(shape) / 8)
        values.reshape(-1)[1::2] *= -1
    else:
        # Large ones leave room for a product of two sums, which second derivatives have. In float16 this uses the whole
        # range of exponents.
        room = tiny_exponent(FORMATS["float16"])
        exponent = {"small": tiny_exponent(format), "large": room - tiny_exponent(format)}.get(kind, 0)
        values = np.ldexp(random.standard_normal(shape) + 0.5, exponent)
    return values.astype(format.dtype)
