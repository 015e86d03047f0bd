"""Which aspects of the formula a specimen is found wrong in, each fault and sound variant on the same cases."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from normspec.conformance.checks.catalogue import checks_of
from normspec.conformance.checks.registry import Check
from normspec.conformance.engine.tally import Tally
from normspec.conformance.faults import Fault
from normspec.conformance.judging.library import Library
from normspec.conformance.judging.subject import Subject
from normspec.conformance.judging.verdicts import Verdict
from normspec.conformance.requests.implementation_targets import implementation_target
from normspec.conformance.requests.profiles import profile_of
from normspec.conformance.sound import Sound
from normspec.spec.conventions import NORMATIVE
from normspec.spec.operators import OPERATORS

#: The prefix of each operator that has aspects.
PREFIX = {name: one.prefix for name, one in OPERATORS.items() if one.normalises and not one.composed}
#: The families' numbers: the whole formula, and each aspect of it.
ASPECTS = tuple(f"F{number}" for number in range(2, 9))


def aspects_of(operator: str) -> tuple[str, ...]:
    """The ids of an operator's aspects, F2 to F8; without a mean, the aspect of a large mean is missing."""
    ids = tuple(f"{PREFIX[operator]}-{aspect}" for aspect in ASPECTS)
    return ids if OPERATORS[operator].centred else ids[:-1]


@lru_cache(maxsize=4)
def _library(dtype: str, one_plus: bool, promoted: bool) -> Library:
    return Library(dtype, one_plus=one_plus, promoted=promoted)


@lru_cache(maxsize=2)
def _checks(operator: str) -> tuple[Check, ...]:
    wanted = {f"{PREFIX[operator]}-F1", *aspects_of(operator)}
    found = (check for check in checks_of(operator) if check.requirement in wanted)
    return tuple(sorted(found, key=lambda check: check.requirement))  # as a run has them: the plain call first


def verdicts(
    specimen: Fault | Sound, dtype: str, seed: int, checks: Sequence[Check] | None = None
) -> dict[str, Verdict]:
    """The verdicts of checks, by default on F1 to F8, in one dtype on the fixed cases of a seed, which all share."""
    operator, conventions = specimen.operator, dict(getattr(specimen, "conventions", {}))
    target = implementation_target(specimen.name, operator, specimen.build(), conventions)
    (binding,) = target.bindings
    subject = Subject(target, binding, dtype, conventions={**NORMATIVE, **conventions})
    kind = subject.new_library()
    library = _library(kind.dtype, kind.one_plus, kind.promoted)
    tallies = [Tally(check) for check in (_checks(operator) if checks is None else checks)]
    with np.errstate(all="ignore"):
        for description in profile_of("quick").cases(operator, seed):
            if "CM-S1" in description.requirements:
                continue
            case = library.case(description)
            for tally in tallies:
                if tally.violation is None and tally.check.when(case):
                    tally.run(subject, case, description)
    return {tally.check.requirement: tally.verdict for tally in tallies}


def failed(specimen: Fault | Sound, dtype: str, seed: int) -> set[str]:
    """The requirements of F1 to F8 that a specimen fails, or on which it raises."""
    found = verdicts(specimen, dtype, seed)
    return {requirement for requirement, verdict in found.items() if verdict.is_violation or verdict is Verdict.ERROR}


def forget() -> None:
    """Let go of the cases that are kept."""
    _library.cache_clear()
