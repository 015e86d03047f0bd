"""Laws of the highway connection."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from ..cases.case import Case
from ..judging.findings import Finding, as_exact
from ..judging.subject import Subject
from .exactly import added
from .registry import When, check, recipes
from .relations import close, equal_to, same_y


def _logits(recipe: str, *kinds: str) -> When:
    made = recipes(recipe)
    return lambda case: made(case) and case.description is not None and case.description.logits in kinds


@check("HW-L1", every=_logits("leaf", "closed"))
def closed_gate(subject: Subject, case: Case) -> Iterator[Finding]:
    """With gate logits of -inf, y is x."""
    yield equal_to(subject, case, "y", subject.observe(case).outputs["y"], case.x, "every gate logit is -inf")


@check("HW-L2", every=_logits("leaf", "open"))
def open_gate(subject: Subject, case: Case) -> Iterator[Finding]:
    """With gate logits of +inf, y is H(x)."""
    h = case.given("transform.h")
    yield equal_to(subject, case, "y", subject.observe(case).outputs["y"], h, "every gate logit is +inf")


@check("HW-L3", every=_logits("leaf", "mixed", "moderate", "zero", "extreme"))
def between(subject: Subject, case: Case) -> Iterator[Finding]:
    """Without a carry gate y lies between x and H(x), element by element."""
    y = subject.observe(case).outputs["y"]
    x, h = case.x.astype(np.float64), case.given("transform.h").astype(np.float64)
    least, most = np.minimum(x, h), np.maximum(x, h)
    nearest = np.fmin(np.fmax(y.astype(np.float64), least), most)  # also of a NaN
    yield close(subject, case, "y", y, nearest, subject.bound(case, "y"), "the nearest value between x and H(x)")


@check("HW-L4", every=_logits("leaf", "mixed", "moderate", "zero", "extreme"))
def swapped(subject: Subject, case: Case) -> Iterator[Finding]:
    """With x and H exchanged and the gate negated, y stays."""
    h, z = case.given("transform.h"), case.given("gate.z")
    turned = case.replace(**{"x": h, "transform.h": case.x, "gate.z": -z})
    yield same_y(subject, case, turned, "x and H(x) exchanged, the logits negated")


@check("HW-L5", every=recipes("identity"))
def same_path(subject: Subject, case: Case) -> Iterator[Finding]:
    """Where H(x) = x, the gate makes no difference."""
    y = subject.observe(case).outputs["y"]
    yield subject.judge(case, "y", y, as_exact(case.x), subject.bound(case, "y"), "H(x) = x")


@check("HW-L6", every=_logits("leaf_carry", "closed"))
def both_shut(subject: Subject, case: Case) -> Iterator[Finding]:
    """Both gates shut: y is zero."""
    y = subject.observe(case).outputs["y"]
    yield equal_to(subject, case, "y", y, np.zeros_like(y), "gate and carry logits are -inf")


@check("HW-L7", every=_logits("leaf_carry", "open"))
def both_open(subject: Subject, case: Case) -> Iterator[Finding]:
    """Both gates open: y is x + H(x)."""
    y = subject.observe(case).outputs["y"]
    finding = subject.judge(case, "y", y, added(case.x, case.given("transform.h")), subject.bound(case, "y"))
    yield attrs.evolve(finding, note="gate and carry logits are +inf")
