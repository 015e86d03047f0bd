"""What to do about a cause: the requirement that says what is right, or a declaration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from ...adapters.frameworks import KNOWN
from ...spec import requirement
from ...spec.errata import errata
from .cause import Cause

#: How a sentence tells that calls without a parameter raise (patterns/case_places.py).
_WITHOUT = r"where (.* and )?NAME is None|unless both gamma and beta are given"


def requirement_fields(identifier: str) -> Mapping[str, Any]:
    """The fields of a cause that describe the requirement it violates."""
    return {
        "requirement": identifier,
        "remedy": requirement(identifier).sentence,
        "errata": tuple(one.id for one in errata().values() if identifier in one.requirements),
    }


def or_declared(cause: Cause) -> Cause:
    """The cause; if calls without a parameter raise, with the declaration that it is always given."""
    raising = "raises" in cause.sentence.lower()
    needed = [
        name for name in ("gamma", "beta") if raising and re.search(_WITHOUT.replace("NAME", name), cause.sentence)
    ]
    if not needed or cause.target in KNOWN:
        return cause
    declared = ",".join(f"{name}=given" for name in needed)
    always = f"if {' and '.join(needed)} always {'is' if len(needed) == 1 else 'are'}"
    return attrs.evolve(cause, remedy=f"{cause.remedy} Or declare --fixed {declared}, {always}.")
