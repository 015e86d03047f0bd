"""What results depend on apart from code: the interpreter, the machine, and variables that libraries read."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable
from pathlib import Path

from ..cores import cores

#: Prefixes of variables that the interpreter, the loader and arithmetic libraries read. The names of the packages that
#: a target imports are added: TORCH_, JAX_.
_READ_PREFIXES = [
    "ACCELERATE_",
    "ATEN_",
    "BLAS_",
    "BLIS_",
    "CUBLAS_",
    "CUDA_",
    "CUDNN_",
    "DNNL_",
    "DYLD_",
    "EQX_",
    "GLIBC_",
    "GOMP_",
    "GOTO_",
    "HIP_",
    "HSA_",
    "INTEL_",
    "KERAS_",
    "KMP_",
    "LD_",
    "LIBOMP_",
    "LIBXSMM_",
    "MALLOC_",
    "MKL_",
    "MPS_",
    "NPY_",
    "NUMBA_",
    "NUMEXPR_",
    "NUMPY_",
    "NVIDIA_",
    "OMP_",
    "ONEDNN_",
    "OPENBLAS_",
    "OPENMP_",
    "ORT_",
    "PYTHON",
    "PYTORCH_",
    "ROCM_",
    "TF_",
    "TORCHINDUCTOR_",
    "TORCHDYNAMO_",
    "TRITON_",
    "VECLIB_",
    "XLA_",
]

#: Variables with such a prefix that do not change results.
_WITHOUT_EFFECT = {"PYTHONSTARTUP", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONWARNINGS"}

#: Files of Linux that describe the processor, and of NVIDIA's driver that describe the GPUs.
_PROCESSOR, _GPUS = Path("/proc/cpuinfo"), Path("/proc/driver/nvidia")


def runtime_environment(packages: Iterable[str], device: str) -> tuple[list[str], str]:
    """
    The environment of a run on a device that imports these packages, as texts for a key.

    Also returns why they are not fully known, or "". Off the CPU, this is a driver of another maker than NVIDIA.
    """
    # A library may split a sum by the number of cores.
    told = [sys.version, sys.executable, platform.platform(), platform.machine(), _processor(), f"{cores()} cores"]
    beginning = (*_READ_PREFIXES, *(f"{package.upper()}_" for package in packages))
    told += [
        f"{name}={value}"
        for name, value in sorted(os.environ.items())
        if name.startswith(beginning) and name not in _WITHOUT_EFFECT
    ]
    if not {"keras", "tensorflow"}.isdisjoint(packages):  # tf.keras reads it too
        told.append(_text(Path(os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras")) / "keras.json"))
    if device != "cpu":
        gpus = [_text(file) for file in (_GPUS / "version", *sorted(_GPUS.glob("gpus/*/information")))]
        if not all(gpus):
            return told, f"{device} has a driver that cannot be told"
        told += gpus
    return told, ""


def _processor() -> str:
    """The kind of processor and its features."""
    lines = _text(_PROCESSOR).splitlines()
    named = ("vendor_id", "model", "cpu family", "stepping", "flags", "Features", "CPU implementer", "CPU part")
    return "\n".join(dict.fromkeys(line for line in lines if line.startswith(named))) or platform.processor()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
