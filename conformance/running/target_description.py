"""A machine's description of a target that it opened: all that a report needs if nothing can be judged."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs

from ..judging.verdicts import Result, Verdict
from ..requests.plan import level_of
from ..results.report import Report
from .unit import Offer, Unit


@attrs.frozen
class TargetDescription:
    """A target as it is installed on one machine."""

    offer: Offer
    framework: str
    #: The version of the framework.
    version: str
    #: The entries of a report for its bindings, without their pace.
    subjects: tuple[Mapping[str, Any], ...]
    #: The requirements by operator, dtype and binding.
    requirements: Mapping[tuple[str, str, str], tuple[str, ...]]

    def lost(self, unit: Unit, reason: str, *, profile: str, device: str, required: Collection[str] = ()) -> Report:
        """
        The report on a unit that could not be judged, with an error for each of its requirements.

        ``required`` holds those that are a MUST in the run, whatever their pages say.
        """
        bindings = [one["binding"] for one in self.subjects if one["op"] == unit.operator]
        return Report(
            results=tuple(
                Result(
                    target=self.offer.name,
                    binding=binding,
                    op=unit.operator,
                    requirement=name,
                    level=level_of(name, required).value,
                    dtype=unit.dtype,
                    device=device,
                    mode="eager",
                    verdict=Verdict.ERROR,
                    reason=reason,
                )
                for binding in bindings
                for name in self.requirements[unit.operator, unit.dtype, binding]
            ),
            profile=profile,
            seed=unit.seed,
            subjects=self.subjects,
            partial=True,
            lost=(self.offer.name,),
        )


def difference(one: TargetDescription, other: TargetDescription) -> str:
    """Why the targets of two machines differ; empty if they are the same."""
    if (one.framework, one.version) != (other.framework, other.version):
        return f"has {one.framework} {one.version}, and others have {other.version}"
    return (
        "" if one == other else f"describes {one.offer.name} differently from the others: perhaps its processor differs"
    )


def commonest(found: Sequence[TargetDescription]) -> TargetDescription:
    """The most common description; the first if several are equally common."""
    return max(found, key=lambda one: sum(not difference(one, other) for other in found))
