"""Second-order, forward-mode and nested derivatives of the composed operators."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...adapters.binding import differentiable, idle
from ...spec.operators import OPERATORS
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject
from .registry import Body, check


def _directions(case: Case, names: tuple[str, ...], purpose: str) -> dict[str, np.ndarray | None]:
    """Small integers in the shapes of these inputs; None where an input is None."""
    random = case.random(purpose)
    found: dict[str, np.ndarray | None] = {}
    for name in names:
        owner = case.inputs.get(name)
        found[name] = None if owner is None else random.integers(-3, 5, owner.shape).astype(owner.dtype)
    return found


@check(
    "RS-G4", "PR-G6", "PO-G6", "HW-G7", "MH-G8", gradient=True, raising="unsupported"
)  # fmt: skip
def second_order(subject: Subject, case: Case) -> Iterator[Finding]:
    """The vjp of the vjp equals the exact one, within the propagated envelope."""
    if idle(case.operator, case.parts) == ("gamma", "beta"):
        return  # zero times the normalisation's second derivative, which may overflow
    second = _directions(case, OPERATORS[case.operator].differentiable, "second order")
    _ = subject.observe(case).outputs
    found = subject.vjp_vjp(case, second)
    exact = subject.truth(case).vjp_vjp(case.g, second)
    for name, value in found.items():
        if value is None or name not in exact:
            continue

        def bounds(normative: bool, name: str = name) -> np.ndarray:
            arithmetic = subject.arithmetic(case, normative=normative)
            truth = subject.truth(case, normative=normative)
            return truth.second_order(arithmetic, case.g, second)[name].error

        note = "a function that is not made for a second order should raise (in PyTorch: once_differentiable)"
        yield subject.judge(case, f"second-order gradient of {name}", value, exact[name], bounds, note)


@check(
    "RS-G5", "PR-G7", "PO-G7", "HW-G8", "MH-G9", gradient=True, raising="unsupported"
)  # fmt: skip
def forward_mode(subject: Subject, case: Case) -> Iterator[Finding]:
    """The jvp equals the exact one, within the propagated envelope; the leaves have tangents too."""
    tangents = _directions(case, differentiable(case.operator, case.inputs), "forward mode")
    _ = subject.observe(case).outputs
    found = subject.jvp(case, tangents)
    exact = subject.truth(case).jvp(tangents)

    def bounds(normative: bool) -> np.ndarray:
        arithmetic = subject.arithmetic(case, normative=normative)
        return subject.truth(case, normative=normative).tangent(arithmetic, tangents).error

    yield subject.judge(case, "tangent of y", found, exact, bounds)


def _nested(kind: str, words: str, *results: str) -> Body:
    """Return the check of one kind of adapters.binding.NESTED, a derivative of a derivative; the leaves do not move."""

    def judged(subject: Subject, case: Case) -> Iterator[Finding]:
        if idle(case.operator, case.parts) == ("gamma", "beta"):
            return  # for the same reason as in `second_order`
        names = OPERATORS[case.operator].differentiable
        tangents = _directions(case, names, "forward mode")
        other = _directions(case, names, words) if kind == "jvp_jvp" else case.g
        _ = subject.observe(case).outputs
        found = subject.nested(kind, case, tangents, other)
        exact = subject.truth(case).nested_exact(kind, tangents, other)
        for name in results or names:
            value = found[name]
            if value is None or name not in exact:
                continue

            def bounds(normative: bool, name: str = name) -> np.ndarray:
                arithmetic = subject.arithmetic(case, normative=normative)
                truth = subject.truth(case, normative=normative)
                return truth.nested(kind, arithmetic, tangents, other)[name].error

            yield subject.judge(case, f"{words} {'of' if results else 'in'} {name}", value, exact[name], bounds)

    return judged


check("RS-G7", "PR-G8", "PO-G8", "HW-G9", "MH-G11", gradient=True, raising="unsupported")(
    _nested("jvp_vjp", "forward over reverse")
)
check("RS-G8", "PR-G9", "PO-G9", "HW-G10", "MH-G12", gradient=True, raising="unsupported")(
    _nested("vjp_jvp", "reverse over forward")
)
check("RS-G9", "PR-G10", "PO-G10", "HW-G11", "MH-G13", gradient=True, raising="unsupported")(
    _nested("jvp_jvp", "forward over forward", "y")
)
