"""The dtypes that the suite checks, as NumPy holds them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..spec.errors import UnknownDtype, choices

try:
    import ml_dtypes
except ImportError:  # a worker's interpreter may lack it; then bfloat16 is missing
    _BFLOAT16: dict[str, np.dtype] = {}
else:
    _BFLOAT16 = {"bfloat16": np.dtype(ml_dtypes.bfloat16)}

#: The dtypes that the suite checks, by name.
DTYPES: Mapping[str, np.dtype] = {
    "float16": np.dtype(np.float16),
    **_BFLOAT16,
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}

#: The name of each dtype, in either byte order: a lookup here is ten times as fast as ``dtype.name``.
NAMES: Mapping[np.dtype, str] = {form: name for name, dtype in DTYPES.items() for form in (dtype, dtype.newbyteorder())}


#: What else they are called.
CALLED = {
    **dict.fromkeys(("fp16", "f16", "half"), "float16"),
    **dict.fromkeys(("bf16", "bfloat"), "bfloat16"),
    **dict.fromkeys(("fp32", "f32", "float", "single"), "float32"),
    **dict.fromkeys(("fp64", "f64", "double"), "float64"),
}


def check_dtype(name: str) -> str:
    """Check that the suite knows a dtype of this name, and return it. Raises UnknownDtype."""
    if name not in DTYPES:
        raise UnknownDtype(f"unknown dtype {name!r}{choices(CALLED.get(name, name), DTYPES)}")
    return name
