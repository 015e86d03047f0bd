"""The cores of this machine."""

from __future__ import annotations

import os


def cores() -> int:
    """How many cores this process may run on: fewer than the machine has, where it is held to some of them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
