"""Second-order, forward-mode and nested derivatives. A target that raises lacks them; a wrong value fails."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject
from .registry import BOTH, Body, check


def _directions(case: Case, purpose: str) -> dict[str, np.ndarray | None]:
    """Small integers in the shapes of x, gamma and beta; None where the input is None."""
    random = case.random(purpose)
    found: dict[str, np.ndarray | None] = {}
    for name in case.record.differentiable:
        owner = case.inputs[name]
        found[name] = None
        if owner is not None:
            found[name] = random.integers(-3, 5, owner.shape).astype(owner.dtype)
    return found


@check("LN-G9", "BN-G10", "RM-G9", "GN-G9", "IN-G9", gradient=True, raising="unsupported", modes=BOTH)
def second_order(subject: Subject, case: Case) -> Iterator[Finding]:
    """The vjp of the vjp equals the exact one, within the propagated envelope."""
    subject.require_gradients()
    second = _directions(case, "second order")
    _ = subject.observe(case).outputs
    found = subject.vjp_vjp(case, second)
    truth = subject.truth(case)
    exact = truth.vjp_vjp(case.g, second)
    for name, value in found.items():
        want = exact[name]
        if value is None or want is None:
            continue

        def bounds(normative: bool, name: str = name) -> np.ndarray:
            arithmetic = subject.arithmetic(case, normative=normative)
            return subject.truth(case, normative=normative).vjp_vjp_bounds(arithmetic, case.g, second)[name]

        note = "a function that is not made for a second order should raise (in PyTorch: once_differentiable)"
        yield subject.judge(case, f"second-order gradient of {name}", value, want, bounds, note)


@check("LN-G10", "BN-G11", "RM-G10", "GN-G10", "IN-G10", gradient=True, raising="unsupported", modes=BOTH)
def forward_mode(subject: Subject, case: Case) -> Iterator[Finding]:
    """The jvp equals the exact one, within the propagated envelope."""
    subject.require_gradients()
    tangents = _directions(case, "forward mode")
    _ = subject.observe(case).outputs
    found = subject.jvp(case, tangents)
    truth = subject.truth(case)
    exact = truth.jvp(tangents)

    def bounds(normative: bool) -> np.ndarray:
        arithmetic = subject.arithmetic(case, normative=normative)
        return subject.truth(case, normative=normative).jvp_bound(arithmetic, tangents)

    yield subject.judge(case, "tangent of y", found, exact, bounds)


def _over_cotangent(kind: str, words: str) -> Body:
    """
    Return the check of a derivative of x and gamma in one mode over the other.

    Both modes give the second derivative of <y, g> in the direction of the tangents, as the vjp of the vjp does.
    """

    def judged(subject: Subject, case: Case) -> Iterator[Finding]:
        tangents = _directions(case, words)
        _ = subject.observe(case).outputs
        found = subject.nested(kind, case, tangents, case.g)
        exact = subject.truth(case).vjp_vjp(case.g, tangents)
        for name in ("x", "gamma"):
            value, want = found[name], exact[name]
            if value is None or want is None:
                continue

            def bounds(normative: bool, name: str = name) -> np.ndarray:
                arithmetic = subject.arithmetic(case, normative=normative)
                return subject.truth(case, normative=normative).vjp_vjp_bounds(arithmetic, case.g, tangents)[name]

            yield subject.judge(case, f"{words} in {name}", value, want, bounds)

    return judged


for *_ids, _kind, _words in (
    ("LN-G12", "BN-G13", "RM-G12", "GN-G12", "IN-G12", "jvp_vjp", "forward over reverse"),
    ("LN-G13", "BN-G14", "RM-G13", "GN-G13", "IN-G13", "vjp_jvp", "reverse over forward"),
):
    check(*_ids, gradient=True, raising="unsupported")(_over_cotangent(_kind, _words))


@check("LN-G14", "BN-G15", "RM-G14", "GN-G14", "IN-G14", gradient=True, raising="unsupported")
def forward_over_forward(subject: Subject, case: Case) -> Iterator[Finding]:
    """The jvp of the jvp equals the exact one, within the propagated envelope."""
    tangents, again = _directions(case, "forward mode"), _directions(case, "forward over forward")
    _ = subject.observe(case).outputs
    value = subject.nested("jvp_jvp", case, tangents, again)["y"]
    if value is None:
        return
    exact = subject.truth(case).jvp_jvp(tangents, again)

    def bounds(normative: bool) -> np.ndarray:
        arithmetic = subject.arithmetic(case, normative=normative)
        return subject.truth(case, normative=normative).jvp_jvp_bound(arithmetic, tangents, again)

    yield subject.judge(case, "forward over forward of y", value, exact, bounds)
