"""The versions that a report depends on, beside those of its targets."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ...adapters.frameworks import KNOWN

#: What makes the cases, computes their truths and shrinks a failure.
_PACKAGES = ("normspec", "numpy", "ml_dtypes")


@cache
def versions() -> Mapping[str, str]:
    """The version of Python and of each package that what is reported depends on, by name."""
    return {"python": platform.python_version(), **{name: of_package(name) for name in _PACKAGES}}


def of_package(name: str) -> str:
    """The version of an installed package, and otherwise that it is not."""
    try:
        return version(name)
    except PackageNotFoundError:  # run from a checkout, or copied into another package
        return "not installed"


def packaged(subject: Mapping[str, Any]) -> str:
    """
    The version of what is judged, as a report's subject has it, with its package: `flax 0.12.8`.

    Of a target known by name that is the first package it needs; of a function, its framework.
    """
    target, number = str(subject.get("target") or ""), str(subject.get("version") or "")
    package = KNOWN[target].packages[0] if target in KNOWN else str(subject.get("framework") or "")
    return f"{package} {number}".strip()


def beside_its_name(subject: Mapping[str, Any]) -> str:
    """The same where the target's name stands before it, without a package of that name."""
    return packaged(subject).removeprefix(f"{subject.get('target')} ")


def in_words(found: Mapping[str, str]) -> str:
    """Versions in one line."""
    return ", ".join(f"{name} {number}" for name, number in found.items())
