"""float16, in which what is known of PyTorch's kernels is counted."""

from __future__ import annotations

#: Its unit roundoff, and its smallest normal number.
ROUNDOFF, NORMAL = 2.0**-11, 2.0**-14
#: Half its smallest number, up to which a number is rounded to 0, and the least that is rounded to infinity.
UNDERFLOW, OVERFLOW = 2.0**-25, 65520.0
