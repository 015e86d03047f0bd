"""
The normative text, and what code and text share: pages, records of the operators, parts, conventions, errors.

Names are imported when they are first used (PEP 562): a worker reads the records, but no pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .malformed import DuplicateRequirement as DuplicateRequirement
    from .malformed import ForeignRequirement as ForeignRequirement
    from .malformed import MalformedErrata as MalformedErrata
    from .malformed import MalformedHeading as MalformedHeading
    from .malformed import MalformedPage as MalformedPage
    from .malformed import MalformedSources as MalformedSources
    from .malformed import MisplacedText as MisplacedText
    from .malformed import MissingAnchor as MissingAnchor
    from .malformed import MissingReason as MissingReason
    from .malformed import MissingSentence as MissingSentence
    from .malformed import NotOneSentence as NotOneSentence
    from .malformed import UnclosedFormula as UnclosedFormula
    from .malformed import UnknownRequirement as UnknownRequirement
    from .reader import Level as Level
    from .reader import Requirement as Requirement
    from .reader import pages as pages
    from .reader import requirement as requirement
    from .reader import requirements as requirements
    from .reader import withdrawn as withdrawn

__all__ = [
    "DuplicateRequirement",
    "ForeignRequirement",
    "Level",
    "MalformedErrata",
    "MalformedHeading",
    "MalformedPage",
    "MalformedSources",
    "MisplacedText",
    "MissingAnchor",
    "MissingReason",
    "MissingSentence",
    "NotOneSentence",
    "Requirement",
    "UnclosedFormula",
    "UnknownRequirement",
    "pages",
    "requirement",
    "requirements",
    "withdrawn",
]

_OF_THE_READER = ("Level", "Requirement", "pages", "requirement", "requirements", "withdrawn")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(".reader" if name in _OF_THE_READER else ".malformed", __name__), name)
