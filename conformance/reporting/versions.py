"""The versions that a report depends on, beside those of its targets."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

#: What makes the cases, computes their truths and shrinks a failure.
_PACKAGES = ("normspec", "numpy", "ml_dtypes", "hypothesis")


def versions() -> dict[str, str]:
    """The version of Python and of each package that what is reported depends on, by name."""
    return {"python": platform.python_version(), **{name: of_package(name) for name in _PACKAGES}}


def of_package(name: str) -> str:
    """The version of an installed package, and otherwise that it is not."""
    try:
        return version(name)
    except PackageNotFoundError:  # run from a checkout, or copied into another package
        return "not installed"


def in_words() -> str:
    """The versions in one line."""
    return ", ".join(f"{name} {number}" for name, number in versions().items())
