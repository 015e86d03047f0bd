"""Constants of the formats, for the known violations of PyTorch's kernels."""

from __future__ import annotations

#: The unit roundoff of each dtype.
ROUNDOFFS = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
#: Half the smallest number of each 16-bit format, up to which values are rounded to 0.
UNDERFLOWS = {"float16": 2.0**-25, "bfloat16": 2.0**-134}

#: float16's unit roundoff and smallest normal number.
ROUNDOFF, NORMAL = ROUNDOFFS["float16"], 2.0**-14
#: In float16, what is rounded to 0 up to here, and to infinity from here on.
UNDERFLOW, OVERFLOW = UNDERFLOWS["float16"], 65520.0
