"""Second-order and forward-mode derivatives; raising is lacking them, a wrong value fails."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..cases.case import Case
from ..findings import Finding
from ..subject import Subject
from .registry import BOTH, check, tagged


def _directions(case: Case, purpose: str) -> dict[str, np.ndarray | None]:
    """Small integers in the shapes of x, gamma and beta; None where the input is None."""
    random = case.random(purpose)
    found: dict[str, np.ndarray | None] = {}
    for name in ("x", "gamma", "beta"):
        owner = case.inputs[name]
        found[name] = None
        if owner is not None:
            found[name] = random.integers(-3, 5, owner.shape).astype(owner.dtype)
    return found


def _derivable(case: Case) -> bool:
    return tagged("derivative")(case)


@check("LN-G9", "BN-G10", when=_derivable, gradient=True, raising="unsupported", modes=BOTH)
def second_order(subject: Subject, case: Case) -> Iterator[Finding]:
    """The vjp of the vjp equals the exact one, within the propagated envelope."""
    subject.require_gradients()
    second = _directions(case, "second order")
    _ = subject.observe(case).outputs
    found = subject.vjp_vjp(case, second)
    truth = subject.truth(case)
    directions = tuple(second.values())
    exact = truth.vjp_vjp(case.g, directions)
    for name, value in found.items():
        want = exact[name]
        if value is None or want is None:
            continue

        def bounds(normative: bool, name: str = name) -> np.ndarray:
            arithmetic = subject.arithmetic(case, normative=normative)
            envelope = subject.truth(case, normative=normative).envelope(arithmetic)
            return envelope.vjp_vjp(case.g, *directions)[name]

        note = "a function that is not made for a second order should raise (in PyTorch: once_differentiable)"
        yield subject.judge(case, f"second-order gradient of {name}", value, want, bounds, note)


@check("LN-G10", "BN-G11", when=_derivable, gradient=True, raising="unsupported", modes=BOTH)
def forward_mode(subject: Subject, case: Case) -> Iterator[Finding]:
    """The jvp equals the exact one, within the propagated envelope."""
    subject.require_gradients()
    tangents = _directions(case, "forward mode")
    _ = subject.observe(case).outputs
    found = subject.jvp(case, tangents)
    truth = subject.truth(case)
    exact = truth.jvp(tuple(tangents.values()))

    def bounds(normative: bool) -> np.ndarray:
        arithmetic = subject.arithmetic(case, normative=normative)
        return subject.truth(case, normative=normative).envelope(arithmetic).jvp(*tangents.values())

    yield subject.judge(case, "tangent of y", found, exact, bounds)
