"""What a worker does to itself before anything of the target runs: memory limited, and no life beyond its parent's."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

#: The number of the option of prctl(2) by which the kernel sends a signal when the parent dies.
_PR_SET_PDEATHSIG = 1


def limit_memory(size: int | None) -> None:
    """
    Hold private memory (RLIMIT_DATA) to so many bytes, as far as the system can.

    Address space is left alone: frameworks reserve far more of it than they use. Shared memory does not count here;
    the judge looks at that from outside. Where the whole machine runs out of memory, the worker is to go first.
    """
    if size is None:
        return
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        wanted = size if hard == resource.RLIM_INFINITY else min(size, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, wanted))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def leave_no_core() -> None:
    """Have a crash write no core file."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def die_with_parent() -> None:
    """
    Have the kernel end this process when its parent dies, even in an endless loop; on Linux alone.

    To the kernel the parent is the thread that started this process. Elsewhere the end of the requests is the end.
    """
    if not sys.platform.startswith("linux"):
        return
    parent = os.getppid()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died meanwhile
        os._exit(1)
