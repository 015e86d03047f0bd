"""The versions that a report depends on, besides those of its targets."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ...adapters.frameworks import KNOWN

#: The packages that make the cases, compute their truths and shrink failures.
_PACKAGES = ("normspec", "numpy", "ml_dtypes")


@cache
def versions() -> Mapping[str, str]:
    """The version of Python and of each package that the report depends on, by name."""
    return {"python": platform.python_version(), **{name: of_package(name) for name in _PACKAGES}}


def of_package(name: str) -> str:
    """The version of an installed package, or words that it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:  # normspec runs from a checkout, or was copied into another package
        return "not installed"


def name_and_version(subject: Mapping[str, Any]) -> str:
    """
    The version of the judged package with its name, from a report's subject: `flax 0.12.8`.

    The package is the first one that a known target needs, or the framework of a function.
    """
    target, number = str(subject.get("target") or ""), str(subject.get("version") or "")
    package = KNOWN[target].packages[0] if target in KNOWN else str(subject.get("framework") or "")
    return f"{package} {number}".strip()


def version_label(subject: Mapping[str, Any]) -> str:
    """The same to print after the target's name: a package of that name is left out."""
    return name_and_version(subject).removeprefix(f"{subject.get('target')} ")


def versions_in_words(found: Mapping[str, str]) -> str:
    """Versions in one line."""
    return ", ".join(f"{name} {number}" for name, number in found.items())
