"""Laws of the multi-scale highway connection."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...reference.formats import format_of
from ...reference.scaled import Scaled
from ...spec.errors import TargetRaised
from ...spec.parts import Part
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject
from .exactly import added, exact, finite_bound, judge_exactly, shifted_exactly, summed
from .registry import check, recipes
from .relations import close, equal, equal_to, same_bits_of_y, same_y, sum_of


def _branches(case: Case) -> tuple[Part, ...]:
    branches = case.parts["branches"]
    assert isinstance(branches, tuple)
    return branches


def _leaf(case: Case, place: int) -> np.ndarray:
    return case.given(_branches(case)[place].leaves[0])


@check("MH-F2", when=recipes("leaf"))
def weights(subject: Subject, case: Case) -> Iterator[Finding]:
    """The weights are nonnegative and sum to 1. With one branch of ones, the others and x zero, y is its weight."""
    for mode in subject.modes(case):
        yield from _weights_in(subject, case, mode)


def _weights_in(subject: Subject, case: Case, mode: str) -> Iterator[Finding]:
    zero = np.zeros_like(case.x)
    blank = {name: zero for name in case.inputs if name.endswith(".h")}
    found, bounds = [], []
    for branch in _branches(case):
        alone = case.replace(x=zero, **{**blank, branch.leaves[0]: np.ones_like(zero)})
        y = subject.outputs(alone, mode)["y"]
        bounds.append(subject.bound(alone, "y"))
        found.append(y)
        nearest, bound = np.fmax(y.astype(np.float64), 0.0), bounds[-1]  # also of a NaN
        yield close(subject, alone, "y", y, nearest, bound, "y is the weight of a branch, which is not negative")
    total = exact(np.stack([y.reshape(-1) for y in found], axis=1))
    yield judge_exactly(
        subject, case, "the sum of the weights", summed(total).reshape(*case.x.shape), Scaled.of(np.ones(case.x.shape)),
        sum_of(*bounds),
    )  # fmt: skip


@check("MH-F4")
def any_count(subject: Subject, case: Case) -> Iterator[Finding]:
    """One branch, two, and twelve all work."""
    count = len(_branches(case))
    try:
        y = subject.observe(case).outputs["y"]
    except TargetRaised as raised:
        yield Finding(case, violated=True, output="y", note=f"{count} branches: raised {raised}", failure="raises")
    else:
        yield subject.judge_output(case, "y", y, note=f"{count} branches")
        for where_called, outputs in subject.outputs_in_modes(case, but_training=True):
            yield subject.judge_output(case, "y", outputs["y"], note=f"{count} branches{where_called}")


@check("MH-G4", when=recipes("leaf"), gradient=True)
def balanced_logits(subject: Subject, case: Case) -> Iterator[Finding]:
    """The gradients of the logits sum to zero."""
    _ = subject.observe(case).outputs
    total = summed(exact(subject.observe(case).gradient("dlogits").reshape(1, -1)))
    bound = finite_bound(subject, case, "dlogits")
    zero = Scaled.of(np.zeros(1))
    yield judge_exactly(
        subject, case, "sum of dlogits", total, zero, lambda normative: bound(normative).sum(keepdims=True),
        "over the branches",
    )  # fmt: skip


@check("MH-L5", every=recipes("cascade"), when=recipes("leaf", "cascade"))
def blocks_in_cascade(subject: Subject, case: Case) -> Iterator[Finding]:
    """A second block applies the same function to the output of the first."""
    y = subject.observe(case).outputs["y"]
    yield subject.judge_output(case, "y", y, note="the first of two blocks")
    if not np.isfinite(y.astype(np.float64)).all():
        return
    after = case.replace(x=y, logits=case.given("logits")[::-1].copy())
    yield subject.judge_output(after, "y", subject.outputs(after)["y"], note="the second of two blocks")


@check("MH-L1", when=recipes("leaf"))
def shifted_logits(subject: Subject, case: Case) -> Iterator[Finding]:
    """One number added to every logit changes neither y nor any gradient, where the sums are exact."""
    logits, lacking = case.given("logits"), None
    for shift in (8.0, -64.0):
        moved = (logits.astype(np.float64) + shift).astype(logits.dtype)
        # Rounding may change the differences of the logits, so `here` is made from `moved`, exactly.
        here = shifted_exactly(moved, -shift)
        if here is None:
            continue
        first, second = case.replace(logits=here), case.replace(logits=moved)
        for name, value in subject.observe(second).outputs.items():
            yield _related(subject, first, second, name, value, subject.observe(first).outputs[name], shift)
        lacking = subject.lacking_gradients(first)
        if lacking is not None:
            continue
        gradients, wanted = subject.observe(second).gradients, subject.observe(first).gradients
        for name in (name for name in wanted if name in gradients):
            yield _related(subject, first, second, name, gradients[name], wanted[name], shift)
    if lacking is not None:
        raise lacking


def _related(
    subject: Subject, first: Case, second: Case, name: str, got: np.ndarray, want: np.ndarray, shift: float
) -> Finding:
    bound, again = subject.bound(first, name), subject.bound(second, name)
    note = f"every logit plus {shift:g}"
    return close(subject, second, name, got, want.astype(np.float64), sum_of(bound, again), note)


@check("MH-L2", when=lambda case: recipes("leaf")(case) and len(_branches(case)) == 1)
def one_branch(subject: Subject, case: Case) -> Iterator[Finding]:
    """One branch alone is a residual connection."""
    y = subject.observe(case).outputs["y"]
    yield subject.judge(case, "y", y, added(case.x, _leaf(case, 0)), subject.bound(case, "y"), "K = 1: x + H(x)")


@check("MH-L3", every=recipes("equal"))
def equal_branches(subject: Subject, case: Case) -> Iterator[Finding]:
    """Equal branches are one residual connection, whatever the logits."""
    y = subject.observe(case).outputs["y"]
    yield subject.judge(
        case, "y", y, added(case.x, _leaf(case, 0)), subject.bound(case, "y"), "equal branches: x + H(x)"
    )


@check("MH-L4", when=recipes("leaf", "mixed"))
def permuted(subject: Subject, case: Case) -> Iterator[Finding]:
    """Branches permuted together with their logits give the same y."""
    branches = _branches(case)
    if len(branches) < 2:
        return
    order = np.roll(np.arange(len(branches)), 1)
    turned = case.replace(
        logits=case.given("logits")[order], parts={**case.parts, "branches": tuple(branches[i] for i in order)}
    )
    yield same_y(subject, case, turned, "branches and logits moved one place on")


def _one_closed(case: Case) -> bool:
    return recipes("leaf")(case) and case.description is not None and case.description.logits == "one_closed"


@check("MH-L6", every=_one_closed)
def closed_branch(subject: Subject, case: Case) -> Iterator[Finding]:
    """A branch whose logit is -inf leaves no trace in y."""
    place = _closed(case)
    if place is None:
        return
    name = _branches(case)[place].leaves[0]
    large = format_of(case.x.dtype).largest / 8
    moved = case.replace(**{name: np.where(_leaf(case, place) < 0, large, -large).astype(case.x.dtype)})
    note = f"branch {place}, whose logit is -inf, returned something else"
    yield same_bits_of_y(subject, case, moved, note)


def _closed(case: Case) -> int | None:
    """The first branch whose logit is -inf."""
    closed = np.argwhere(np.isneginf(case.given("logits").astype(np.float64)))
    return int(closed[0][0]) if len(closed) else None


@check("MH-G10", every=_one_closed, gradient=True)
def closed_branch_gradient(subject: Subject, case: Case) -> Iterator[Finding]:
    """The gradient is zero for the output of a branch whose logit is -inf."""
    place = _closed(case)
    if place is None:
        return
    output = f"d{_branches(case)[place].leaves[0]}"
    _ = subject.observe(case).outputs
    gradient = subject.observe(case).gradient(output)
    note = f"the logit of branch {place} is -inf"
    yield equal_to(subject, case, output, gradient, np.zeros_like(gradient), note)


@check("MH-L7")
def receptive_field(subject: Subject, case: Case) -> Iterator[Finding]:
    """A change of x at one position moves y where a branch reads that position, and nowhere else."""
    y = subject.observe(case).outputs["y"]
    places = np.arange(case.x.shape[-2])
    back, ahead = (max(sign * offset for part in _branches(case) for offset in part.offsets) for sign in (-1, 1))

    def unmoved(position: int) -> np.ndarray:
        return (position < places - back) | (position > places + ahead)

    # The position in the middle of those it moves, if one outside them is left, and else the first position.
    middle = max(0, (len(places) - 1 - back + ahead) // 2)
    position = middle if unmoved(middle).any() else 0
    x = case.x.copy()
    # x + |x| + 1 is another number for either sign of x, even after rounding.
    x[..., position, :] = (x[..., position, :] + np.abs(x[..., position, :]) + 1).astype(x.dtype)
    moved = case.replace(x=x)
    got = subject.outputs(moved)["y"]
    outside = unmoved(position)
    note = f"x changed at position {position}, the branches read {back} positions back and {ahead} ahead"
    bound, again = subject.bound(case, "y"), subject.bound(moved, "y")
    if outside.any():
        before = np.where(outside[:, None], y, got)  # what lies inside may differ
        yield equal(
            subject, moved, "y", got, before, note,
            calls=((moved, got), (case, y)), bound=lambda normative: bound(normative) + again(normative),
        )  # fmt: skip
    yield subject.judge_output(moved, "y", got, note=note)
