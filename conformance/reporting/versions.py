"""The versions that a report depends on, beside those of its targets."""

from __future__ import annotations

import platform
from importlib.metadata import version

#: What makes the cases, computes their truths and shrinks a failure.
_PACKAGES = ("normspec", "numpy", "ml_dtypes", "hypothesis")


def versions() -> dict[str, str]:
    """The version of Python and of each package that what is reported depends on, by name."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}


def in_words() -> str:
    """The versions in one line."""
    return ", ".join(f"{name} {number}" for name, number in versions().items())
