"""Gradients: dx, dgamma and dbeta equal the exact VJP for a cotangent that varies."""

from __future__ import annotations

from collections.abc import Iterator

from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject
from ..judging.truth import owner_of
from .registry import BOTH, INFERENCE, Body, check, in_inference, ordinary


def gradient_of(name: str) -> Body:
    """Return the check of one gradient."""

    def judged(subject: Subject, case: Case) -> Iterator[Finding]:
        _ = subject.observe(case).outputs
        if case.inputs[owner_of(name)] is not None:
            yield subject.judge_gradient(case, name, subject.observe(case).gradient(name))

    return judged


# BN-G4 judges dx in inference.
check("LN-G1", "BN-G1", "RM-G1", "GN-G1", "IN-G1", every=ordinary, gradient=True)(gradient_of("dx"))
check("LN-G2", "BN-G2", "RM-G2", "GN-G2", "IN-G2", every=ordinary, gradient=True, modes=BOTH)(gradient_of("dgamma"))
check("LN-G3", "BN-G3", "GN-G3", "IN-G3", every=ordinary, gradient=True, modes=BOTH)(gradient_of("dbeta"))


@check("BN-G4", every=in_inference, gradient=True, modes=INFERENCE)
def inference_gradients(subject: Subject, case: Case) -> Iterator[Finding]:
    """In inference the statistics are constants: dx = gamma r g."""
    _ = subject.observe(case).outputs
    for name, value in subject.observe(case).gradients.items():
        yield subject.judge_gradient(case, name, value)
