"""Peak memory of the judge and the worker, beyond that of importing the framework."""

from __future__ import annotations

import importlib.util
import resource
import subprocess
import sys
from typing import Any

from rows.checks import FUNCTIONS, report
from rows.row import Measured, NotThere, Row

#: ru_maxrss is in KiB, and in bytes on macOS.
PER_MIB = 1024.0**2 if sys.platform == "darwin" else 1024.0

#: Imports a framework and prints its peak in MiB. (On Linux ru_maxrss starts at that of the parent process.)
_IMPORTED = """
import pathlib, resource, sys, {0}
status = pathlib.Path("/proc/self/status")
lines = status.read_text().splitlines() if status.exists() else []
peak = [int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")]
size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(peak[0] if peak else size / (1024**2 if sys.platform == "darwin" else 1024))
"""


def imported(framework: str) -> float:
    """The peak in MiB of a process that imports the framework and does nothing else."""
    return float(subprocess.check_output([sys.executable, "-c", _IMPORTED.format(framework)], text=True))


def peak(framework: str, target: str, profile: str, **options: Any) -> Measured:
    """MiB of both processes together, without the framework's own, and of each."""
    if importlib.util.find_spec(framework) is None:
        raise NotThere(f"{framework} is not installed")
    report(target, profile=profile, **options)
    judge = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / PER_MIB
    worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / PER_MIB  # the largest of several
    own = imported(framework)
    return {
        "together, less the import, MiB": judge + worker - own,
        "judge, MiB": judge,
        "worker, MiB": worker,
        "import alone, MiB": own,
    }


def alone() -> dict[str, Any]:
    """Options for one judge and one worker, in a version that has them."""
    import inspect

    import normspec

    return {"jobs": 1} if "jobs" in inspect.signature(normspec.check).parameters else {}


def of_torch(_: str) -> Measured:
    """A check of PyTorch's own layers at `standard`."""
    return peak("torch", "torch", "standard", **alone())


def of_jax(_: str) -> Measured:
    """A check of a LayerNorm in JAX at `quick`, in all four dtypes."""
    return peak("jax", f"{FUNCTIONS / 'in_jax.py'}:layer_norm", "quick", op="layer_norm", **alone())


ROWS = (
    Row("memory-torch", "peak memory, check torch at standard, one process and its worker", of_torch, long=True),
    Row("memory-jax", "peak memory, own LayerNorm in JAX at quick, one process and its worker", of_jax),
)
