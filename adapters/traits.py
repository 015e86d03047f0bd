"""
Measure the traits of a platform, that is, of a framework on a device.

A few operations on a few numbers measure them. They hold for every function on that platform, because no function can
keep a number that the platform loses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .bridge import Bridge
from .dtypes import DTYPES
from .trait import Trait

#: The exponent of the smallest normal number of each dtype: finfo knows no bfloat16.
_SMALLEST_NORMAL = {"float16": -14, "bfloat16": -126, "float32": -126, "float64": -1022}

#: How often each number below is repeated: 27 elements fill a vector register of any dtype and leave a remainder, which
#: kernels compute in another loop.
_TIMES = 9

#: Two factors or terms, their exact result, and what the platform loses if the result is zero. Numbers are in units of
#: the smallest normal number, except the second factor, which is a plain number.
_PRODUCTS = (
    (1.5, 0.25, 0.375, "products"),
    (0.5, 4.0, 2.0, "factors"),
)
_SUMS = (
    (0.25, 0.5, 0.75, "sums"),
    (1.5, -1.0, 0.5, "differences"),
)
#: A matrix product may have a kernel of its own: eight exact terms whose sum is below the smallest normal number.
_TERM, _TERMS = 0.0625, 8


def measured(bridge: Bridge, device: str) -> tuple[Trait, ...]:
    """
    The traits of a bridge's framework on a device in each of its dtypes, plus the traits that the bridge measures.

    If a measurement raises, there is no trait, and the normative convention is assumed.
    """
    found = []
    for dtype in bridge.dtypes:
        try:
            evidence = _flushes(bridge, dtype, device)
        except Exception:
            continue
        if evidence:
            found.append(Trait(dtype, "subnormals", "flushed", evidence))
    return (*found, *bridge.own_traits(device))


def _flushes(bridge: Bridge, dtype: str, device: str) -> str:
    """Which operations flush subnormal numbers to zero, in words; empty if none do."""
    form, smallest = DTYPES[dtype], _SMALLEST_NORMAL[dtype]

    def numbers(values: Any) -> np.ndarray:
        return np.repeat(np.array(values, np.float64), _TIMES).astype(form)

    def scaled(values: Any) -> np.ndarray:  # in two steps, because 2^-1074 is not a normal number even in float64
        return numbers(np.ldexp(np.array(values, np.float64), smallest))

    def operations(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> tuple[Any, ...]:
        return a * b, c + d, bridge.functions.matmul(e, f)

    handed = (
        scaled([row[0] for row in _PRODUCTS]),
        numbers([row[1] for row in _PRODUCTS]),
        scaled([row[0] for row in _SUMS]),
        scaled([row[1] for row in _SUMS]),
        scaled([_TERM])[:_TERMS].reshape(1, _TERMS),
        np.ones((_TERMS, _TERMS), form),
    )
    tensors = [bridge.tensor(array, "contiguous", device) for array in handed]
    with bridge.guarded(_TERMS, gradients=False):
        results = bridge.compiled(operations)(*tensors)
        bridge.synchronise(device)
    product, sum_, matrix = (bridge.array(result, "a measured result") for result in results)
    lost = [
        words
        for row, got in ((_PRODUCTS, product), (_SUMS, sum_))
        for (*_, words), values in zip(row, got.reshape(len(row), _TIMES))
        if not _bits(values).all()
    ]
    if not _bits(matrix).all():
        lost.append("matrix products")
    return f"{', '.join(lost)} below the smallest normal number become 0" if lost else ""


def _bits(values: np.ndarray) -> np.ndarray:
    """The bits of positive numbers, as integers: a comparison with 0 might flush subnormal numbers too."""
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
