"""The versions that a report depends on: those of normspec's own packages, and those of its targets."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ...adapters.frameworks import KNOWN

#: The packages that make the cases, compute their truths and shrink failures.
_PACKAGES = ("normspec", "numpy", "ml_dtypes")


@cache
def versions() -> Mapping[str, str]:
    """The version of Python and of each package that every report depends on, by name."""
    return {"python": platform.python_version(), **{name: of_package(name) for name in _PACKAGES}}


def of_package(name: str) -> str:
    """The version of an installed package, or words that it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:  # normspec runs from a checkout, or was copied into another package
        return "not installed"


def with_targets(own: Mapping[str, str], subjects: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """
    These versions, and those of the judged packages of a report's subjects.

    A package that some target has in another version, under another interpreter, is there with the target's name too.
    """
    found = dict(own)
    for subject in subjects:
        package, number = _judged(subject)
        if package and number and found.setdefault(package, number) != number:
            found[f"{package} of {subject.get('target')}"] = number
    return found


def _judged(subject: Mapping[str, Any]) -> tuple[str, str]:
    """The judged package, which is the first that a known target needs or the framework of a function; its version."""
    target, number = str(subject.get("target") or ""), str(subject.get("version") or "")
    return KNOWN[target].packages[0] if target in KNOWN else str(subject.get("framework") or ""), number


def name_and_version(subject: Mapping[str, Any]) -> str:
    """The version of the judged package with its name, from a report's subject: `flax 0.12.8`."""
    return " ".join(filter(None, _judged(subject)))


def version_label(subject: Mapping[str, Any]) -> str:
    """The same to print after the target's name: a package of that name is left out."""
    return name_and_version(subject).removeprefix(f"{subject.get('target')} ")


def versions_in_words(found: Mapping[str, str]) -> str:
    """Versions in one line."""
    return ", ".join(f"{name} {number}" for name, number in found.items())
