"""The frameworks with a bridge: which are installed, and how to import one with a helpful error."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from ..spec.errors import FrameworkMissing, UnknownFramework, choices, one_line
from ..spec.extras import how_to_add, install_command


@dataclass(frozen=True)
class KnownTarget:
    """A target known by name: a framework's own layers, or a library of layers for it."""

    #: The folder of adapters/ that has its target; ``make`` names the function there that makes it.
    folder: str
    #: The packages it imports; the target's version is that of the first.
    packages: tuple[str, ...]
    #: The extras of normspec that install them; none if normspec itself depends on them.
    extras: tuple[str, ...]
    #: The framework whose tensors it takes: one of FRAMEWORKS.
    framework: str
    make: str = "target"
    #: Environment variables to set before it is imported.
    environment: Mapping[str, str] = field(default_factory=dict)
    #: The install command, if no extra installs it.
    install_command: str = ""


def _keras(backend: str) -> KnownTarget:
    return KnownTarget("keras", ("keras", backend), ("keras", backend), "keras", environment={"KERAS_BACKEND": backend})


#: The targets known by name.
KNOWN: Mapping[str, KnownTarget] = {
    "numpy": KnownTarget("numpy", ("numpy",), (), "numpy"),
    "torch": KnownTarget("torch", ("torch",), ("torch",), "torch"),
    "tensorflow": KnownTarget("tensorflow", ("tensorflow",), ("tensorflow",), "tensorflow"),
    "keras[tensorflow]": _keras("tensorflow"),
    "keras[torch]": _keras("torch"),
    "keras[jax]": _keras("jax"),
    "jax": KnownTarget("jax", ("jax",), ("jax",), "jax"),
    "flax": KnownTarget("flax", ("flax", "jax"), ("flax",), "jax"),
    "equinox": KnownTarget("equinox", ("equinox", "jax"), ("equinox",), "jax"),
    "onnxruntime": KnownTarget("onnx", ("onnxruntime", "onnx"), ("onnx",), "onnx"),
    "onnx-reference": KnownTarget("onnx", ("onnx",), ("onnx",), "onnx", "reference_target"),
    "mxnet": KnownTarget(
        "mxnet",
        ("mxnet",),
        (),
        "mxnet",
        install_command=(
            "python3.10 -m venv mxnet && mxnet/bin/python -m pip install 'numpy<1.24' mxnet,"
            " then --python mxnet=mxnet/bin/python"
        ),
    ),
}

#: The targets for which a call with a new shape takes 10 to 100 ms, because the framework traces, compiles, or
#: dispatches it step by step.
SLOW: frozenset[str] = frozenset(name for name in KNOWN if name.startswith("keras")) | {
    "tensorflow", "jax", "flax", "equinox", "mxnet"
}  # fmt: skip

#: The backends of Keras; the first that is installed is used.
BACKENDS: tuple[str, ...] = ("tensorflow", "torch", "jax")

#: The frameworks whose tensors a function may take, each with the known target that lists its packages.
FRAMEWORKS: Mapping[str, str] = {
    "numpy": "numpy",
    "torch": "torch",
    "tensorflow": "tensorflow",
    "keras": "keras",
    "jax": "jax",
    "onnx": "onnx-reference",
    "mxnet": "mxnet",
    **{f"keras[{backend}]": f"keras[{backend}]" for backend in BACKENDS},
}

#: For each package that a file may import, the framework whose arrays the file is written for.
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


def full_name(name: str) -> str:
    """The key of a target or framework in KNOWN; ``keras`` becomes Keras on the backend it would choose."""
    name = FRAMEWORKS.get(name, name)
    if name != "keras":
        return name
    backend = os.environ.get("KERAS_BACKEND") or _configured_backend()
    if backend not in BACKENDS:
        backend = next((one for one in BACKENDS if _is_installed(one)), BACKENDS[0])
    return f"keras[{backend}]"


def _configured_backend() -> str:
    """The backend in Keras's own configuration; empty if it is not installed."""
    home = Path(os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras"))  # Path.home raises without a home
    try:
        backend = json.loads((home / "keras.json").read_text(encoding="utf-8")).get("backend", "")
    except (OSError, ValueError, AttributeError):
        return ""
    return backend if backend in BACKENDS and _is_installed(backend) else ""


def active_backend() -> str:
    """The backend of the imported Keras; empty if this process has not imported Keras."""
    keras = sys.modules.get("keras")
    return str(keras.backend.backend()) if keras is not None else ""


def installed() -> tuple[str, ...]:
    """The known targets whose packages are installed; nothing is imported to find out."""
    return tuple(name for name in KNOWN if not missing(name))


def missing(name: str) -> tuple[str, ...]:
    """The packages that a target or framework needs and that are not installed."""
    return tuple(package for package in KNOWN[full_name(name)].packages if not _is_installed(package))


def check_framework_name(name: str) -> str:
    """Check that there is a framework of this name, and return it. Raises UnknownFramework."""
    if name not in FRAMEWORKS:
        raise _unknown_framework(name)
    return name


def check_framework(name: str) -> str:
    """
    Check that a framework is known and installed, and return its name.

    Raises UnknownFramework, or FrameworkMissing with the command that installs it.
    """
    if full_name(name) not in KNOWN:
        raise _unknown_framework(name)
    lacking = missing(name)
    if lacking:
        raise FrameworkMissing(f"{' and '.join(lacking)} is not installed: {how_to_install(name)}")
    return name


def _unknown_framework(name: str) -> UnknownFramework:
    return UnknownFramework(f"unknown framework {name!r}{choices(name, FRAMEWORKS)}")


def command_of(name: str) -> str:
    """The command that installs a target or framework."""
    target = KNOWN[full_name(name)]
    return target.install_command or install_command(*target.extras)


def how_to_install(name: str) -> str:
    """The command that installs a target or framework, and where it is run, for a message."""
    target = KNOWN[full_name(name)]
    return target.install_command or how_to_add(*target.extras)


def adapter(name: str) -> ModuleType:
    """
    The folder of a target or framework as a module, with its BRIDGE and its target().

    This imports the framework. Raises the errors of :func:`check_framework`, and FrameworkMissing if the framework is
    installed but does not import, or is hidden by a file of its name.
    """
    check_framework(name)
    target = KNOWN[full_name(name)]
    if target.packages[0] not in sys.modules and "[" in name:
        os.environ.update(target.environment)
    try:
        return importlib.import_module(f".{target.folder}", __package__)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        if hiding := _hiding_file(target.packages):
            raise FrameworkMissing(
                f"{name} does not import: the file {hiding} hides it. Rename that file, or run where it is not found"
            ) from error
        anew = target.install_command or f"{how_to_install(name)} --force-reinstall"
        raise FrameworkMissing(
            f"{name} is installed and does not import ({one_line(error)}): install it anew, {anew}"
        ) from error


def _hiding_file(packages: Iterable[str]) -> str:
    """The file that is imported in place of one of these packages, which are all folders; empty if there is none."""
    for name in packages:
        try:
            found = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            continue
        if found is not None and found.origin and Path(found.origin).name == f"{name}.py":
            return found.origin
    return ""


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
