"""Second-order, forward-mode and nested derivatives. A target that raises lacks them; a wrong value fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import attrs
import numpy as np

from ...adapters.binding import differentiable, idle
from ...adapters.layouts import why_not
from ...reference.double_double import DD
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject
from .registry import BOTH, Body, check


def directions(case: Case, purpose: str, *leaves: str) -> dict[str, np.ndarray | None]:
    """Small integers in the shapes of the differentiable arguments and these leaves; None where an input is None."""
    random = case.random(purpose)
    found: dict[str, np.ndarray | None] = {}
    for name in (*case.record.differentiable, *leaves):
        owner = case.inputs.get(name)
        found[name] = None if owner is None else random.integers(-3, 5, owner.shape).astype(owner.dtype)
    return found


def tangents_of_all(case: Case) -> dict[str, np.ndarray | None]:
    """Tangents of the differentiable arguments and of the leaves of the parts."""
    leaves = (name for name in differentiable(case.operator, case.inputs) if name not in case.record.differentiable)
    return directions(case, "forward mode", *leaves)


def _ignores_norm(case: Case) -> bool:
    """Whether y is zero times a normalisation, whose second derivative may overflow."""
    return idle(case.operator, case.parts) == ("gamma", "beta")


_SECOND_ORDER = (
    "LN-G9", "BN-G10", "RM-G9", "GN-G9", "IN-G9", "RS-G4", "PR-G6", "PO-G6", "HW-G7", "MH-G8",
)  # fmt: skip


@check(*_SECOND_ORDER, gradient=True, raising="unsupported", modes=BOTH)
def second_order(subject: Subject, case: Case) -> Iterator[Finding]:
    """The vjp of the vjp equals the exact one, within the propagated envelope, whichever gradients it begins with."""
    if _ignores_norm(case):
        return
    second = directions(case, "second order")
    _ = subject.observe(case).outputs
    calls = list(_second_order_calls(subject, second))
    subject.prefetch(case, [partial(subject.vjp_vjp, case, call.handed, **call.options) for call in calls])
    for call in calls:
        yield from _judged_second_order(subject, case, call)


#: What a target that is not made for a second order should do.
_SHOULD_RAISE = "a function that is not made for a second order should raise (in PyTorch: once_differentiable)"


@attrs.frozen(eq=False)
class _SecondOrderCall:
    """One vjp of the vjp, and how it differs from the plain one, in words."""

    #: The cotangents of the gradients, and those among them that the target is handed: not the zeros.
    second: Mapping[str, np.ndarray | None]
    handed: Mapping[str, np.ndarray | None]
    note: str = _SHOULD_RAISE
    options: Mapping[str, Any] = attrs.field(factory=dict)


def _second_order_calls(subject: Subject, second: Mapping[str, np.ndarray | None]) -> Iterator[_SecondOrderCall]:
    """All gradients, also with arrays that are transposed in memory; and dx alone, as in a penalty on it."""
    yield _SecondOrderCall(second, second)
    of_x = second["x"]
    assert of_x is not None
    if "transposed" in subject.target.layouts and why_not(of_x, "transposed") is None:
        note = "x and the cotangents are transposed in memory"
        yield _SecondOrderCall(second, second, note, {"layout": "transposed"})
    zeros = {name: None if one is None else np.zeros_like(one) for name, one in second.items() if name != "x"}
    if all(one is None for one in zeros.values()):
        return
    yield _SecondOrderCall({**zeros, "x": of_x}, {"x": of_x}, "dx alone is differentiated")
    if "vjp_vjp" not in subject.binding.derivatives:  # a hand-written one always has all arguments
        note = "dx alone is differentiated, and x alone needs a gradient"
        yield _SecondOrderCall({**zeros, "x": of_x}, {"x": of_x}, note, {"wrt": ("x",)})


def _judged_second_order(subject: Subject, case: Case, call: _SecondOrderCall) -> Iterator[Finding]:
    second = call.second
    found = subject.vjp_vjp(case, call.handed, **call.options)

    def exact(normative: bool) -> Mapping[str, Any]:
        return subject.truth(case, normative=normative).vjp_vjp(case.g, second)

    promised = exact(False)
    for name, value in found.items():
        if value is None or promised.get(name) is None:
            continue

        def want(normative: bool, name: str = name) -> DD:
            return (exact(True) if normative else promised)[name]

        def bound(normative: bool, name: str = name) -> np.ndarray:
            arithmetic = subject.arithmetic(case, normative=normative)
            return subject.truth(case, normative=normative).vjp_vjp_bounds(arithmetic, case.g, second)[name]

        yield subject.judge(case, f"second-order gradient of {name}", value, want, bound, call.note)


_FORWARD_MODE = (
    "LN-G10", "BN-G11", "RM-G10", "GN-G10", "IN-G10", "RS-G5", "PR-G7", "PO-G7", "HW-G8", "MH-G9",
)  # fmt: skip


@check(*_FORWARD_MODE, gradient=True, raising="unsupported", modes=BOTH)
def forward_mode(subject: Subject, case: Case) -> Iterator[Finding]:
    """The jvp equals the exact one, within the propagated envelope; the leaves have tangents too."""
    tangents = tangents_of_all(case)
    _ = subject.observe(case).outputs
    found = subject.jvp(case, tangents)

    def exact(normative: bool) -> DD:
        return subject.truth(case, normative=normative).jvp(tangents)

    def bound(normative: bool) -> np.ndarray:
        arithmetic = subject.arithmetic(case, normative=normative)
        return subject.truth(case, normative=normative).jvp_bound(arithmetic, tangents)

    yield subject.judge(case, "tangent of y", found, exact, bound)


def _nested(kind: str, words: str) -> Body:
    """Return the check of one kind of adapters.binding.NESTED, a derivative of a derivative; the leaves do not move."""

    def judged(subject: Subject, case: Case) -> Iterator[Finding]:
        if _ignores_norm(case):
            return
        tangents = directions(case, "forward mode")
        other = directions(case, words) if kind == "jvp_jvp" else case.g
        _ = subject.observe(case).outputs
        found = subject.nested(kind, case, tangents, other)

        def exact(normative: bool) -> Mapping[str, Any]:
            return subject.truth(case, normative=normative).nested(kind, tangents, other)

        promised = exact(False)
        for name, value in found.items():
            if value is None or promised.get(name) is None:
                continue

            def want(normative: bool, name: str = name) -> DD:
                return (exact(True) if normative else promised)[name]

            def bound(normative: bool, name: str = name) -> np.ndarray:
                arithmetic = subject.arithmetic(case, normative=normative)
                truth = subject.truth(case, normative=normative)
                return truth.nested_bounds(kind, arithmetic, tangents, other)[name]

            yield subject.judge(case, f"{words} {'of' if kind == 'jvp_jvp' else 'in'} {name}", value, want, bound)

    return judged


_FORWARD_OVER_REVERSE = (
    "LN-G12", "BN-G13", "RM-G12", "GN-G12", "IN-G12", "RS-G7", "PR-G8", "PO-G8", "HW-G9", "MH-G11",
)  # fmt: skip
_REVERSE_OVER_FORWARD = (
    "LN-G13", "BN-G14", "RM-G13", "GN-G13", "IN-G13", "RS-G8", "PR-G9", "PO-G9", "HW-G10", "MH-G12",
)  # fmt: skip
_FORWARD_OVER_FORWARD = (
    "LN-G14", "BN-G15", "RM-G14", "GN-G14", "IN-G14", "RS-G9", "PR-G10", "PO-G10", "HW-G11", "MH-G13",
)  # fmt: skip

#: The requirements about derivatives that reverse mode takes part in: where gradients are wrong, so are these.
OF_GRADIENTS = frozenset((*_SECOND_ORDER, *_FORWARD_OVER_REVERSE, *_REVERSE_OVER_FORWARD))

#: The kind of derivative that each requirement of this page is about: "jvp", "vjp_vjp", or one of binding.NESTED.
KINDS = {
    **dict.fromkeys(_FORWARD_MODE, "jvp"),
    **dict.fromkeys(_SECOND_ORDER, "vjp_vjp"),
    **dict.fromkeys(_FORWARD_OVER_REVERSE, "jvp_vjp"),
    **dict.fromkeys(_REVERSE_OVER_FORWARD, "vjp_jvp"),
    **dict.fromkeys(_FORWARD_OVER_FORWARD, "jvp_jvp"),
}

for _ids, _kind, _words in (
    (_FORWARD_OVER_REVERSE, "jvp_vjp", "forward over reverse"),
    (_REVERSE_OVER_FORWARD, "vjp_jvp", "reverse over forward"),
    (_FORWARD_OVER_FORWARD, "jvp_jvp", "forward over forward"),
):
    check(*_ids, gradient=True, raising="unsupported", modes=BOTH)(_nested(_kind, _words))
