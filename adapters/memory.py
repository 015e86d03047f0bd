"""Memory that is free goes back to the system."""

from __future__ import annotations

import contextlib
import ctypes


def return_free_memory() -> None:
    """
    Return free memory to the system, where the C library has a function for it (glibc).

    glibc keeps a page for the process as long as a block further up is in use. After a few operators such pages are
    most of what a judge or a worker holds.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
