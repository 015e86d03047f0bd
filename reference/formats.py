"""The floating-point formats that an operator's tensors can have."""

from __future__ import annotations

from typing import Any

import attrs
import ml_dtypes
import numpy as np


@attrs.frozen
class Format:
    """One binary floating-point format: the numbers that the envelope needs."""

    #: The name used everywhere: "float16", "bfloat16", "float32", "float64".
    name: str
    #: The NumPy dtype that holds it.
    dtype: np.dtype[Any]
    #: Unit roundoff u = 2^-p: rounding to nearest changes a normal value by at most u times itself.
    unit_roundoff: float
    #: The smallest positive normal and subnormal values, and the largest finite value.
    smallest_normal: float
    smallest_subnormal: float
    largest: float

    @property
    def narrow(self) -> bool:
        """Whether the format has 16 bits, and so only stores data that is computed on in float32."""
        return self.dtype.itemsize == 2

    def underflow(self, *, flushed: bool) -> float:
        """Return the largest absolute error that one operation's underflow makes.

        Where underflow is gradual, half of the smallest subnormal; float64 has no number that small, so there
        it is the smallest subnormal itself. Where subnormals are flushed to zero, the smallest normal number.
        """
        if flushed:
            return self.smallest_normal
        return self.smallest_subnormal / 2 or self.smallest_subnormal


def _format(name: str, dtype: Any) -> Format:
    info = ml_dtypes.finfo(dtype)
    return Format(
        name=name,
        dtype=np.dtype(dtype),
        unit_roundoff=float(info.eps) / 2,
        smallest_normal=float(info.smallest_normal),
        smallest_subnormal=float(info.smallest_subnormal),
        largest=float(info.max),
    )


#: Every format, by name, narrowest first.
FORMATS: dict[str, Format] = {
    "float16": _format("float16", np.float16),
    "bfloat16": _format("bfloat16", ml_dtypes.bfloat16),
    "float32": _format("float32", np.float32),
    "float64": _format("float64", np.float64),
}


#: The names of all formats, in that order.
ALL_DTYPES = tuple(FORMATS)

#: Formats by name and also by NumPy dtype, because looking up a dtype's name is slow.
_BY_DTYPE: dict[Any, Format] = {**FORMATS, **{format.dtype: format for format in FORMATS.values()}}


def format_of(dtype: Any) -> Format:
    """Return the format with this name or NumPy dtype; raise KeyError for any other."""
    found = _BY_DTYPE.get(dtype)
    return found if found is not None else FORMATS[np.dtype(dtype).name]
