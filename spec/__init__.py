"""The normative text, and the one place that reads it: ids, levels and sentences live on these pages alone."""

from .errors import (
    DuplicateRequirement,
    ForeignRequirement,
    MalformedExcludes,
    MalformedHeading,
    MalformedPage,
    MalformedSources,
    MisplacedText,
    MissingExcludes,
    MissingReason,
    MissingSentence,
    NotOneSentence,
    UnclosedFormula,
    UnknownRequirement,
)
from .reader import Level, Requirement, pages, requirement, requirements, withdrawn

__all__ = [
    "DuplicateRequirement",
    "ForeignRequirement",
    "Level",
    "MalformedExcludes",
    "MalformedHeading",
    "MalformedPage",
    "MalformedSources",
    "MisplacedText",
    "MissingExcludes",
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
