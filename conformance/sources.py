"""A digest of our own files, because two checkouts with the same version may differ."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

#: The rooms that cases and verdicts depend on.
EVERYTHING = ("spec", "reference", "adapters", "conformance")

_KINDS = (".py", ".md")


@cache
def sources(*places: str) -> str:
    """A digest of these rooms or files, by name and content; by default of EVERYTHING."""
    root, found = Path(__file__).parent.parent, hashlib.sha256()
    for place in places or EVERYTHING:
        path = root / place
        files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.suffix in _KINDS)
        for file in files:
            found.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()[:16]
