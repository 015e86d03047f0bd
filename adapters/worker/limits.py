"""Limits that a worker sets on itself before the target runs: on its memory, and to die with its parent."""

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
    Limit private memory (RLIMIT_DATA) to ``size`` bytes, as far as the system can; None means no limit.

    Address space is not limited, because frameworks reserve far more of it than they use. Shared memory does not count
    here; the judge watches it from outside. If the whole machine runs out of memory, the worker is killed first.
    """
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    if size is None:
        return
    with contextlib.suppress(ImportError, OSError, ValueError, OverflowError):  # no machine has 2^63 bytes
        import resource

        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        wanted = size if hard == resource.RLIM_INFINITY else min(size, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, wanted))


def disable_core_dumps() -> None:
    """Let a crash write no core file."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def die_with_parent() -> None:
    """
    Let the kernel end this process when its parent dies, even in an endless loop. Linux only.

    For the kernel, the parent is the thread that started this process. On other systems the worker ends when no more
    requests come.
    """
    if not sys.platform.startswith("linux"):
        return
    parent = os.getppid()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # the parent has died in the meantime
        os._exit(1)
