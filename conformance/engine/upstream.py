"""A violation that one of the framework's own layers shows too: the user's function probably calls it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

import attrs
import numpy as np

from ...adapters.binding import Binding
from ..cases.case import Case
from ..checks.registry import Check
from ..judging.findings import Finding
from ..judging.known import KnownViolations
from ..judging.subject import Subject
from ..judging.verdicts import Upstream
from .tally import findings


def seen_upstream(subject: Subject, check: Check, finding: Finding, case: Case) -> Upstream | None:
    """
    The first layer of the subject's framework that violates the requirement in the same way on the same case.

    Only layers that are known to violate it are called. ``finding``: the violation, found by the check on ``case``.
    """
    for binding in subject.target.upstream(subject.operator):
        entries = [one for one in binding.known_violations if one.applies(dtype=subject.dtype, device=subject.device)]
        excused = KnownViolations(entries).without_known(check.requirement, finding)
        if not excused.violated and any(_alike(finding, one) for one in findings(check, _of(subject, binding), case)):
            reasons = dict.fromkeys(one.reason for one in excused.known)
            links = dict.fromkeys(link for one in excused.known for link in one.links)
            return Upstream(binding.name, "; ".join(reasons), tuple(links))
    return None


def _of(subject: Subject, binding: Binding) -> Subject:
    """Another binding of the subject's framework, judged as the subject is: its known violations do not count."""
    fresh = {"session": None, "logging": None, "log": [], "repeated": {}, "recorded": {}, "observed": OrderedDict()}
    return attrs.evolve(subject, binding=replace(binding, known_violations=()), **fresh)


def _alike(one: Finding, other: Finding) -> bool:
    """Whether two findings about the same case are the same violation, with the same wrong value if there is one."""
    same = all(
        getattr(one, name) == getattr(other, name) for name in ("violated", "output", "index", "failure", "note")
    )
    return same and np.array_equal(_value(one), _value(other), equal_nan=True)


def _value(finding: Finding) -> float:
    return np.inf if finding.got is None else finding.got
