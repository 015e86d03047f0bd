"""What a worker does to itself before anything of the target runs: memory limited, and no life beyond its parent's."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

#: The number of the option of prctl(2) by which the kernel sends a signal when the parent dies.
_PR_SET_PDEATHSIG = 1


def limit_memory(size: int | None) -> None:
    """
    Hold private memory (RLIMIT_DATA) to so many bytes; nothing is done where the system cannot.

    Address space is left alone: frameworks reserve far more of it than they use.
    """
    if size is None:
        return
    try:
        import resource
    except ImportError:
        return
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    wanted = size if hard == resource.RLIM_INFINITY else min(size, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, wanted))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def die_with_parent(parent: int) -> None:
    """Have the kernel end this process when its parent dies, even in an endless loop; on Linux alone."""
    if not sys.platform.startswith("linux"):
        return
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        os._exit(1)
