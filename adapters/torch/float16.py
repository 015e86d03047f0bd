"""Constants of float16, for the known violations of PyTorch's kernels."""

from __future__ import annotations

#: The unit roundoff and the smallest normal number.
ROUNDOFF, NORMAL = 2.0**-11, 2.0**-14
#: Half the smallest number, up to which values are rounded to 0; and the smallest value that is rounded to infinity.
UNDERFLOW, OVERFLOW = 2.0**-25, 65520.0
