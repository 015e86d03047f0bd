"""Numbers as a report writes them: exact, in decimal where that is short and in hexadecimal where it is not."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...spec.parts import Part

#: Longer arrays are not written in full: a shrunk case has 4 elements in a group, and a few groups.
SHOWN_WHOLE = 16
#: How many elements of a longer array are shown.
SHOWN_HEAD = 6
#: An exact decimal of more characters than this is written in hexadecimal: that of 2^-10 has twelve.
SHORT = 12


def element_name(name: str, index: Sequence[int]) -> str:
    """An element of an array by name: "y[0, 2]"; the name alone without an index."""
    return f"{name}[{', '.join(map(str, index))}]" if index else name


def hex_float(value: float) -> str:
    """The exact value in the form that `float.fromhex` reads, without trailing zeros: 0.5 is `0x1p-1`."""
    if value == 0:
        return "-0x0p+0" if math.copysign(1, value) < 0 else "0x0p+0"
    return re.sub(r"\.?0+p", "p", float(value).hex())


def exact_decimal(value: float) -> str:
    """The shortest decimal that `float` reads back exactly: 2.5, -1, 1e-05."""
    return repr(float(value)).removesuffix(".0")


def _is_short(value: float) -> bool:
    return len(exact_decimal(value)) <= SHORT


def decimal(value: float, *others: float) -> str:
    """The value in up to 9 significant decimal digits, or 17 where one of the other values would read the same."""
    digits = f"{float(value):.9g}"
    alike = any(other != value and f"{float(other):.9g}" == digits for other in others)
    return f"{float(value):.17g}" if alike else digits


def ratio_text(ratio: float) -> str:
    """A ratio of error to envelope in at most 6 characters: `0.42`, `58`, `3e5`, `inf`."""
    if not math.isfinite(ratio):
        return str(float(ratio))
    if ratio == 0:
        return "0"
    if ratio < 0.01:
        return "<.01"
    if ratio < 10:
        # 0.996 must not read as 1.00, nor 1.0004 as within the envelope.
        hundreds = round(ratio * 100, 9)  # 0.29 * 100 is a little below 29
        if ratio == 1:
            return "1.00"
        return f"{(min(math.floor(hundreds), 99) if ratio < 1 else max(math.ceil(hundreds), 101)) / 100:.2f}"
    if ratio < 1e4:
        return f"{ratio:.0f}"
    mantissa, exponent = f"{ratio:.0e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def ratio_in_three_digits(ratio: float) -> float:
    """A ratio of error to envelope in three digits, or in all of them where three would move it to 1 or beyond."""
    short = float(f"{ratio:.3g}")
    return short if (short < 1, short > 1) == (ratio < 1, ratio > 1) else ratio


def duration(seconds: float) -> str:
    """A duration that is easy to read: `40 s`, `12 min`, `3.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _nested(values: np.ndarray, text: Callable[[float], str]) -> str:
    if values.ndim == 0:
        return text(float(values))
    return "[" + ", ".join(_nested(v, text) for v in values) + "]"


def array_text(array: np.ndarray | None) -> str:
    """One argument of a case: dtype, shape, and its elements, exact, all in decimal or all in hexadecimal."""
    if array is None:
        return "None"
    values = np.asarray(array).astype(np.float64)
    head = f"{array.dtype} {array.shape} "
    flat = values.ravel()
    alike = flat.size > SHOWN_WHOLE and bool(np.all(flat == flat[0]))
    told = flat[: 1 if alike else SHOWN_HEAD if flat.size > SHOWN_WHOLE else None]
    text = exact_decimal if all(map(_is_short, told)) else hex_float
    if flat.size <= SHOWN_WHOLE:
        return head + _nested(values, text)
    if alike:
        return f"{head}every element {text(flat[0])}"
    return f"{head}[{', '.join(map(text, told))}, ... {flat.size} elements, whole in --json]"


def setting_text(value: Any) -> str:
    """One keyword argument of a case: `1e-05`, `0x1.5555555555555p-2 (0.333333)`, `(-1,)`, `True`."""
    if isinstance(value, float):
        return exact_decimal(value) if _is_short(value) else f"{hex_float(value)} ({value:g})"
    if isinstance(value, Part):
        return str(value)
    if isinstance(value, tuple) and any(isinstance(part, Part) for part in value):
        return f"[{'; '.join(map(str, value))}]"
    return repr(value)
