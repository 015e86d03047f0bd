"""A part that is the operator itself: how its leaves, its number and its inner parts are the arguments of its call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .operators import Operator
from .parts import Part, Parts

#: The inner call is handed this times the part's x: another tensor, so that either shows where the other belongs. It is
#: a power of two, which rounds nothing.
FACTOR = -0.5


@dataclass(frozen=True)
class Inside:
    """The arguments of the inner call, apart from x."""

    #: The name of the leaf for each parameter.
    parameters: Mapping[str, str]
    #: The parts of the roles that a call must have.
    parts: Parts
    #: eps, if the operator takes it.
    settings: Mapping[str, float]


def inside(record: Operator, part: Part) -> Inside:
    """The arguments of the call that a part of kind "itself" makes of an operator."""
    required = [role for role in record.roles if role not in record.optional]
    parts: Parts = {required[0]: part.inner} if record.has_branches else dict(zip(required, part.inner))
    return Inside(dict(zip(record.parameters, part.leaves)), parts, dict.fromkeys(record.settings, part.number))


def nests(record: Operator) -> bool:
    """Whether a part can be the operator itself: eps is the only setting that a part holds."""
    return record.composed and set(record.settings) <= {"eps"}
