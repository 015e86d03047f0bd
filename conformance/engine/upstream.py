"""A violation that one of the framework's own layers shows too: the user's function probably calls it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...adapters.binding import Binding
from ...adapters.known import KnownViolation
from ..cases.case import Case
from ..checks.registry import Check
from ..judging.findings import Finding
from ..judging.known import ABOUT_PLAIN_CALLS, KnownViolations
from ..judging.subject import Subject
from ..judging.verdicts import Upstream
from .tally import findings


def seen_upstream(subject: Subject, check: Check, finding: Finding, case: Case) -> Upstream | None:
    """
    The first layer of the subject's framework that is wrong in the same way on the same case.

    Only layers that are known to violate it are called. ``finding``: the violation, found by the check on ``case``.
    """
    for binding in subject.target.upstream(subject.operator):
        entries = [one for one in binding.known_violations if one.applies(dtype=subject.dtype, device=subject.device)]
        known = _covering(entries, check.requirement, finding)
        if known and any(_same(finding, one) for one in findings(check, _of(subject, binding), case, whole=True)):
            reasons = dict.fromkeys(one.reason for one in known)
            links = dict.fromkeys(link for one in known for link in one.links)
            return Upstream(binding.name, "; ".join(reasons), tuple(links))
    return None


def _covering(entries: Sequence[KnownViolation], requirement: str, finding: Finding) -> tuple[KnownViolation, ...]:
    """The known violations that cover all of a finding; a known exception of a valid call covers it anywhere."""
    for known in (requirement, *ABOUT_PLAIN_CALLS) if finding.failure == "raises" else (requirement,):
        if found := KnownViolations(entries).without_known(known, finding).known:
            return found
    return ()


def _of(subject: Subject, binding: Binding) -> Subject:
    """Another binding of the subject's framework, judged as the subject is: its known violations do not count."""
    return subject.anew(binding=replace(binding, known_violations=()))


def _same(one: Finding, other: Finding) -> bool:
    """
    Whether two violations on one case have the same wrong numbers, or the same exception.

    Nothing else tells one mistake from another: a call that returns where it must raise, a NaN or a missing gradient.
    """
    names = ("violated", "output", "index", "failure", "note")
    if any(getattr(one, name) != getattr(other, name) for name in names):
        return False
    if one.failure:
        return one.failure == "raises"
    if one.got is None or not np.isfinite(one.got) or one.elements is None or other.elements is None:
        return False
    return np.array_equal(one.elements.got, other.elements.got, equal_nan=True)
