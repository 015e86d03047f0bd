"""Whether wrong derivatives of higher order, and tangents, follow from wrong gradients: they are their derivatives."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from ...adapters.binding import differentiable
from ...reference.formats import FORMATS
from ...spec.errors import CALL_FAILED, Unsupported
from ..cases.case import Case
from ..checks.derivatives import directions, tangents_of_all
from ..judging.subject import Subject
from ..judging.truth import gradient_name
from .answers import CLEARLY_WRONG
from .following import ROUNDINGS, STEPS, direction

#: Directions, or derivatives, by the names of the inputs.
_Arrays = Mapping[str, "np.ndarray | None"]


@attrs.frozen(eq=False)
class _Number:
    """A derivative contracted to one number, of the function and exactly, and what the function's gradients give."""

    got: float
    exact: float
    of_gradients: float
    #: The largest error of `of_gradients`.
    slack: float

    def follows(self) -> bool | None:
        """Whether the derivative is that of the gradients; None if the number cannot tell it from the exact one."""
        if not np.isfinite([self.got, self.of_gradients, self.slack]).all():
            return None
        if abs(self.got - self.of_gradients) > self.slack:
            return False
        return True if abs(self.got - self.exact) >= CLEARLY_WRONG * self.slack else None


def follows_from_gradients(subject: Subject, case: Case, kind: str) -> bool | None:
    """
    Whether a wrong derivative of a function is the derivative of the gradients that the function returns.

    ``kind`` is from checks.derivatives.KINDS; ``subject`` is of a wide dtype, because central differences are taken.
    Each kind is a directional derivative of <gradients, some direction>, for some cotangent. None if nothing is seen.
    """
    try:
        return (_tangent(subject, case) if kind == "jvp" else _second(subject, case, kind)).follows()
    except CALL_FAILED:
        return None


def _tangent(subject: Subject, case: Case) -> _Number:
    """<tangent of y, r> is <gradients for the cotangent r, tangents>."""
    tangents, r = tangents_of_all(case), direction(case, "g", case.g)
    found, exact = subject.jvp(case, tangents), subject.truth(case).jvp(tangents)
    moved, size = _product(subject, case, {}, r, tangents)
    slack = ROUNDINGS * FORMATS[subject.dtype].unit_roundoff * size
    return _Number(_inner(found, r), _inner(exact.hi, r), moved, slack)


def _second(subject: Subject, case: Case, kind: str) -> _Number:
    """Both modes of a second derivative: the change of <gradients for g, tangents> along a direction."""
    tangents = directions(case, "second order" if kind == "vjp_vjp" else "forward mode")
    truth = subject.truth(case)
    if kind == "jvp_jvp":
        again, r = directions(case, "forward over forward"), direction(case, "g", case.g)
        found = subject.nested(kind, case, tangents, again)["y"]
        exact = truth.nested(kind, tangents, again)["y"]
        assert found is not None and exact is not None
        return _number(subject, case, again, r, tangents, _inner(found, r), _inner(exact.hi, r))
    if kind == "vjp_vjp":
        results, exactly = subject.vjp_vjp(case, tangents), truth.vjp_vjp(case.g, tangents)
    else:
        results, exactly = subject.nested(kind, case, tangents, case.g), truth.nested(kind, tangents, case.g)
    along, got, wanted = {}, 0.0, 0.0
    for name in differentiable(case.operator, case.inputs):
        value, exact, given = results.get(name), exactly.get(name), case.inputs[name]
        if value is not None and exact is not None and given is not None:
            along[name] = direction(case, name, given)
            got += _inner(value, along[name])
            wanted += _inner(exact.hi, along[name])
    return _number(subject, case, along, case.g.astype(np.float64), tangents, got, wanted)


def _number(
    subject: Subject, case: Case, along: _Arrays, g: np.ndarray, tangents: _Arrays, got: float, exact: float
) -> _Number:
    """The change of <gradients for g, tangents> along a direction, by central differences of two widths."""
    step = STEPS[subject.dtype]

    def difference(width: float) -> tuple[float, float]:
        ahead, behind = ({n: None if a is None else s * width * a for n, a in along.items()} for s in (1.0, -1.0))
        (more, size), (less, _) = (_product(subject, case, moved, g, tangents) for moved in (ahead, behind))
        return (more - less) / (2 * width), size

    (near, size), (far, _) = difference(step), difference(2 * step)
    lost = ROUNDINGS * FORMATS[subject.dtype].unit_roundoff * size / step
    return _Number(got, exact, near, 2 * abs(near - far) + lost)


def _product(subject: Subject, case: Case, moved: _Arrays, g: np.ndarray, tangents: _Arrays) -> tuple[float, float]:
    """<gradients for g, tangents> at the inputs of a case plus their changes, and the sum of the magnitudes."""
    dtype = case.x.dtype
    changed = {}
    for name, by in moved.items():
        given = case.inputs[name]
        if by is not None and given is not None:
            changed[name] = (given.astype(np.float64) + by).astype(dtype)
    gradients = subject.pull(case.replace(**changed, g=g.astype(dtype)))
    terms = []
    for name, by in tangents.items():
        if by is not None:
            if gradient_name(name) not in gradients:
                raise Unsupported(f"no gradient reaches {name}")
            terms.append(gradients[gradient_name(name)].astype(np.float64) * by)
    return sum(float(one.sum()) for one in terms), sum(float(np.abs(one).sum()) for one in terms)


def _inner(one: np.ndarray, other: np.ndarray) -> float:
    return float((one.astype(np.float64) * other).sum())
