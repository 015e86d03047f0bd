"""Which derivatives exist. Whether they are right is for `normspec check` to say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...adapters.binding import NESTED, differentiable
from ...spec.errors import CALL_FAILED, BadOutput, Unsupported
from ...spec.operators import OPERATORS
from ..cases.case import Case
from .bench import Bench, checked_gradients
from .plain import plain_case
from .probe import probe
from .table import Cell


def _available(take: Callable[[], dict[str, Any]], case: Case, names: list[str]) -> Cell:
    """The cell for derivatives that all exist, are finite and are not zero throughout."""
    try:
        found = take()
    except Unsupported as lacking:
        return Cell("none", evidence={"reason": str(lacking)})
    likes = {**case.inputs, "g": case.g}
    for name in names:
        value, like = found.get(name), likes[name]
        if value is None or value.shape != like.shape:
            raise BadOutput(f"no derivative of {name}, or of another shape", "gradient")
    numbers = [found[name].astype(np.float64) for name in names]
    evidence = {"of": names}
    if not all(np.isfinite(value).all() for value in numbers):
        return Cell("not finite", evidence=evidence)
    if not all(value.any() for value in numbers):
        return Cell("all zero", evidence=evidence)
    return Cell("yes", evidence=evidence)


def _drawn(case: Case, seed: int, number: int = 1) -> list[np.ndarray]:
    """Normal values in the shape and dtype of x."""
    random = np.random.Generator(np.random.Philox(seed))
    return [random.standard_normal(case.x.shape).astype(case.x.dtype) for _ in range(number)]


@probe("gradients", "gradients", OPERATORS)
def gradients(bench: Bench) -> Cell:
    """Asks for the gradients of y with respect to everything that has one."""
    case = plain_case(bench)
    evaluation = bench.start(case)
    names = differentiable(bench.operator, case.inputs)
    return _available(lambda: checked_gradients(evaluation.pull(case.g).gradients(), case, names), case, list(names))


@probe("second_order", "second order", OPERATORS)
def second_order(bench: Bench) -> Cell:
    """Asks for the gradient of a gradient: of dx with respect to x and to the cotangent."""
    case = plain_case(bench)
    (second,) = _drawn(case, 5)
    # With a part that does not depend on x, dx of some operators does not either. Then only g remains.
    names = ["x", "g"] if bench.record.normalises else ["g"]
    return _available(
        lambda: bench.session.vjp_vjp(case.inputs, case.settings, case.g, {"x": second}, parts=case.parts), case, names
    )


@probe("forward_mode", "forward mode", OPERATORS)
def forward_mode(bench: Bench) -> Cell:
    """Asks for the tangent of y for a tangent of x."""
    case = plain_case(bench)
    (tangent,) = _drawn(case, 6)
    return _available(
        lambda: {"x": bench.session.jvp(case.inputs, case.settings, {"x": tangent}, parts=case.parts)}, case, ["x"]
    )


@probe("nested", "nested derivatives")
def nested(bench: Bench) -> Cell:
    """Asks for derivatives of a derivative in which forward mode is nested with another, for tangents of x."""
    case = plain_case(bench)
    bench.start(case)  # if the call itself raises, no derivative is missing
    first, again = _drawn(case, 8, 2)
    there, why = [], {}
    for kind, words in NESTED.items():
        other = {"x": again} if kind == "jvp_jvp" else case.g
        try:
            found = bench.session.nested(kind, case.inputs, case.settings, {"x": first}, other, parts=case.parts)
        except CALL_FAILED as lacking:
            why[words] = " ".join(str(lacking).split())
            continue
        value = found["y" if kind == "jvp_jvp" else "x"]
        finite = value is not None and np.isfinite(value.astype(np.float64)).all()
        there += [words.replace(" mode", "")] if finite else []
    text = "all three" if len(there) == len(NESTED) else ", ".join(there) or "none"
    return Cell(text, evidence={"there": there, "reasons": why})
