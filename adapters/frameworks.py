"""The frameworks that have a bridge: which are installed, and how to import one with an error that helps."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from types import ModuleType

from .errors import FrameworkMissing, UnknownFramework, choices, one_line

#: Each framework that has a bridge, and the extra that installs it; None where normspec itself depends on it.
FRAMEWORKS: Mapping[str, str | None] = {"numpy": None, "torch": "torch"}

#: The framework whose arrays a file is written for, by a package that it imports.
IMPLIED: Mapping[str, str] = {
    "numpy": "numpy",
    "ml_dtypes": "numpy",
    "scipy": "numpy",
    "numba": "numpy",
    "torch": "torch",
    "triton": "torch",
    "jax": "jax",
    "flax": "jax",
    "equinox": "jax",
    "tensorflow": "tensorflow",
    "keras": "keras",
    "mxnet": "mxnet",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "paddle": "paddle",
    "mlx": "mlx",
    "cupy": "cupy",
}


def installed() -> tuple[str, ...]:
    """The frameworks that are installed, found without importing any."""
    return tuple(name for name in FRAMEWORKS if _is_installed(name))


def check_framework(name: str) -> str:
    """The name. Raises UnknownFramework, or FrameworkMissing with the command that installs it."""
    if name not in FRAMEWORKS:
        raise UnknownFramework(f"unknown framework {name!r}{choices(name, FRAMEWORKS)}")
    if not _is_installed(name):
        raise FrameworkMissing(f"{name} is not installed: {how_to_install(name)}")
    return name


def how_to_install(name: str) -> str:
    """The command that installs a framework that has a bridge."""
    return f"python -m pip install 'normspec[{FRAMEWORKS[name]}]'"


def adapter(name: str) -> ModuleType:
    """
    The room of one framework, with its BRIDGE and its target().

    This imports the framework. Raises what :func:`check_framework` does, and FrameworkMissing if the framework is
    there and does not import.
    """
    check_framework(name)
    try:
        return importlib.import_module(f".{name}", __package__)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        raise FrameworkMissing(
            f"{name} is installed and does not import ({one_line(error)}): install it anew,"
            f" {how_to_install(name)} --force-reinstall"
        ) from error


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
