"""Laws of gradients: sums, scaling, linearity in the cotangent, and independence of which gradients are taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from ...reference.scaled import Scaled
from ...spec.errors import MissingGradient, TargetRaised
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject
from ..judging.truth import gradient_name
from .derived import some_tracked
from .exactly import added, exact, finite_bound, judge_exactly, moments, summed
from .laws_exact import rescaled, scaling, stored_exactly
from .registry import BOTH, check, in_training
from .relations import close, close_to_sum, equal, equal_to, same, scaled_exactly, sum_of


@check("LN-G4", "BN-G5", "GN-G4", "IN-G4", when=in_training, gradient=True, of="gradients")
def sums_to_zero(subject: Subject, case: Case) -> Iterator[Finding]:
    """dx sums to zero over a group."""
    _ = subject.observe(case).outputs
    total = summed(exact(case.layout.rows(subject.observe(case).gradient("dx"))))
    bound = finite_bound(subject, case, "dx")
    yield judge_exactly(
        subject, case, "sum of dx", total, Scaled.of(np.zeros(total.shape)),
        lambda normative: case.layout.rows(bound(normative)).sum(axis=1), "over a group",
    )  # fmt: skip


@check("LN-G5", "BN-G6", "RM-G5", "GN-G5", "IN-G5", when=in_training, gradient=True, of="gradients")
def along_deviation(subject: Subject, case: Case) -> Iterator[Finding]:
    """sum(dx (x - mu)) = eps/(var + eps) sum(gamma g xhat)."""
    _ = subject.observe(case).outputs
    dx = exact(case.layout.rows(subject.observe(case).gradient("dx")))
    group, gamma = moments(case), case.inputs["gamma"]
    h = exact(case.layout.rows(case.g))
    if gamma is not None:
        h = h * exact(case.layout.rows(np.broadcast_to(case.layout.spread(gamma), case.x.shape)))
    eps = Scaled.of(subject.truth(case).settings["eps"])
    w = (group.variance + eps).reshape(dx.shape[0])
    want = eps / (w * w.sqrt()) * summed(h * group.deviation)  # eps/w times the sum of h xhat
    bound, distance = finite_bound(subject, case, "dx"), group.distance
    yield judge_exactly(
        subject, case, "sum of dx (x - mu)", summed(dx * group.deviation), want,
        lambda normative: (case.layout.rows(bound(normative)) * distance).sum(axis=1), "over a group",
    )  # fmt: skip


@check("LN-G6", "BN-G7", "RM-G6", "GN-G6", "IN-G6", when=in_training, gradient=True, raising="violates", of="gradients")
def scale(subject: Subject, case: Case) -> Iterator[Finding]:
    """With 2^k x and 4^k eps, dx becomes 2^-k dx, and dgamma and dbeta stay."""
    moved, factor = rescaled(case), scaling(case)
    if moved is None or factor is None:
        return
    _ = subject.observe(case).outputs
    before, after = subject.observe(case).gradients, subject.pull(moved)
    for name, value in after.items():
        by = 1 / factor if name == "dx" else 1.0
        # dx may overflow, and 2^-k dx not.
        bound = sum_of(finite_bound(subject, case, name), subject.bound(moved, name), first=by)
        want = before[name].astype(np.float64) * by
        yield close(subject, moved, name, value, want, bound, "x scaled, eps with it")


@check("LN-G7", "BN-G8", "RM-G7", "GN-G7", "IN-G7", when=in_training, gradient=True, of="gradients")
def scale_bits(subject: Subject, case: Case) -> Iterator[Finding]:
    """The scale law of gradients, to the last bit."""
    moved, factor = rescaled(case), scaling(case)
    if moved is None or factor is None or not stored_exactly(subject, case):
        return
    _ = subject.observe(case).outputs
    before, after = subject.observe(case).gradients, subject.pull(moved)
    for name, value in after.items():
        by = 1 / factor if name == "dx" else 1.0
        want = scaled_exactly(before[name], by) if name == "dx" else before[name]
        if want is not None:
            yield equal(
                subject, moved, name, value, want, "x scaled, eps with it",
                calls=((moved, value), (case, before[name])),
                bound=sum_of(subject.bound(case, name), subject.bound(moved, name), first=by),
            )  # fmt: skip


@check(
    "LN-G8", "BN-G9", "RM-G8", "GN-G8", "IN-G8",
    gradient=True, raising="violates", modes=BOTH, of="gradients",
)  # fmt: skip
def linear(subject: Subject, case: Case) -> Iterator[Finding]:
    """Gradients are linear in the cotangent: sums give sums, multiples give multiples, and zero gives zero."""
    _ = subject.observe(case).gradients
    random = case.random("cotangents")
    shape, dtype = case.g.shape, case.g.dtype
    a = random.integers(-4, 6, shape).astype(dtype)  # small integers: their sums are exact
    b = random.integers(-4, 6, shape).astype(dtype)
    both = (a + b).astype(dtype)
    larger = [(factor, moved) for factor in _FACTORS if (moved := scaled_exactly(a, factor)) is not None]
    multiples, zero = [(factor, case.replace(g=g)) for factor, g in larger], case.replace(g=np.zeros_like(a))
    asked = [partial(subject.pull, case, g) for g in (a, b, both)]
    subject.prefetch(
        case, [*asked, *(partial(subject.pull, moved) for _, moved in multiples), partial(subject.pull, zero)]
    )
    found = [ask() for ask in asked]
    for name in found[2]:
        bounds = [subject.bound(case, name, g) for g in (a, b, both)]
        terms = [one[name] for one in found[:2]]
        yield close_to_sum(
            subject, case.replace(g=both), name, found[2][name], added(*terms), terms,
            sum_of(*bounds), "the cotangent a + b",
        )  # fmt: skip
    yield from _multiples(subject, case, a, found[0], multiples, zero)


#: The second factor takes gradients beyond limits that are meant for float16.
_FACTORS = (4.0, 2.0**20)


def _multiples(
    subject: Subject,
    case: Case,
    g: np.ndarray,
    gradients: Mapping[str, np.ndarray],
    multiples: Sequence[tuple[float, Case]],
    zero: Case,
) -> Iterator[Finding]:
    """A cotangent times 2^k, which is exact, gives 2^k times the gradients; a zero cotangent gives zeros."""
    for factor, moved in multiples:
        for name, value in subject.pull(moved).items():
            one, many = subject.bound(case, name, g), subject.bound(moved, name)
            yield close(
                subject, moved, name, value, factor * gradients[name].astype(np.float64),
                lambda normative, one=one, many=many, factor=factor: factor * one(normative) + many(normative),
                f"the cotangent {factor:g} a",
            )  # fmt: skip
    for name, value in subject.pull(zero).items():
        yield equal_to(subject, zero, name, value, np.zeros_like(value), "the cotangent 0")


@check(
    "LN-G11", "BN-G12", "RM-G11", "GN-G11", "IN-G11", "RS-G10", "PR-G11", "PO-G11", "HW-G12", "MH-G14",
    every=lambda case: "CM-T3" in case.requirements, gradient=True, raising="violates", modes=BOTH,
)  # fmt: skip
def any_subset(subject: Subject, case: Case) -> Iterator[Finding]:
    """A gradient does not depend on which others are taken."""
    together = subject.observe(case).gradients
    subsets = some_tracked(case)
    subject.prefetch(case, [partial(subject.pull, case, wrt=subset) for subset in subsets])
    for subset in subsets:
        try:
            found = subject.pull(case, wrt=subset)
        except (MissingGradient, TargetRaised):
            if case.record.composed:  # CM-T3 judges it
                continue
            raise
        for name in subset:
            gradient = gradient_name(name)
            if gradient in found and gradient in together:
                note = f"asked for {', '.join(subset)} alone"
                yield same(subject, case, gradient, found[gradient], together[gradient], note)
