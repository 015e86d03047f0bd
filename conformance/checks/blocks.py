"""Laws of the pre_norm and post_norm blocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...reference.double_double import DD
from ...reference.layer_norm import layer_norm_exact
from ...reference.scaled import Scaled
from ..cases.case import Case
from ..judging.findings import Finding, as_exact
from ..judging.subject import Subject
from .exactly import added, averaged, exact, finite_bound, judge_exactly, shifted_exactly, summed
from .part_calls import handed_value, recorded
from .registry import check, recipes
from .relations import close, close_to_sum, equal_to, same_y, scaled_exactly, sum_of


def _scaled(case: Case) -> Iterator[tuple[str, Case]]:
    """The case with 2^k x and 4^k eps, each with words for it, where that is exact."""
    for factor in (4.0, 0.25):
        x = scaled_exactly(case.x, factor)
        if x is not None:
            yield f"x times {factor:g}", case.replace(x=x, eps=case.settings["eps"] * factor**2)


def _same_handed(subject: Subject, case: Case, handed: np.ndarray, moved: Case, note: str) -> Finding:
    """What the sublayer is handed in a changed case equals what it was ``handed`` in the case."""
    got = recorded(subject, moved)["sublayer"][0]
    first, second = (handed_value(subject, one, "sublayer") for one in (case, moved))
    return close(
        subject, moved, "what the sublayer is handed", got, handed.astype(np.float64),
        lambda normative: first(normative).error + second(normative).error, note,
    )  # fmt: skip


@check("PR-L2")
def scaled_input(subject: Subject, case: Case) -> Iterator[Finding]:
    """With 2^k x and 4^k eps the sublayer gets the same input."""
    handed = recorded(subject, case)["sublayer"][0]
    for note, moved in _scaled(case):
        yield _same_handed(subject, case, handed, moved, note)


@check("PR-L3")
def shifted_input(subject: Subject, case: Case) -> Iterator[Finding]:
    """With x + c the sublayer gets the same input, and y moves by c."""
    handed = recorded(subject, case)["sublayer"][0]
    there = shifted_exactly(case.x, 16.0)
    if there is None:
        return
    moved = case.replace(x=there)
    yield _same_handed(subject, case, handed, moved, "x plus 16")
    y, before = subject.outputs(moved)["y"], subject.observe(case).outputs["y"]
    both = sum_of(subject.bound(case, "y"), subject.bound(moved, "y"))
    note = "x plus 16: y moves by as much"
    yield close_to_sum(subject, moved, "y", y, added(before, np.full((), 16.0)), [before], both, note)


@check("PR-G5", every=recipes("zero"), gradient=True)
def zero_sublayer(subject: Subject, case: Case) -> Iterator[Finding]:
    """With a sublayer that returns zeros, dx is the cotangent itself."""
    _ = subject.observe(case).outputs
    dx = subject.observe(case).gradient("dx")
    # In groups out of its range the derivative of the normalisation may be infinite, and zero times it NaN.
    inside = np.isfinite(subject.bound(case, "dx")(False))
    yield equal_to(subject, case, "dx", dx, case.g, "the sublayer returns zeros", where=inside)


@check("PO-L1")
def normalised_output(subject: Subject, case: Case) -> Iterator[Finding]:
    """Without gamma and beta the groups of y have mean 0 and mean square var / (var + eps)."""
    if case.inputs["gamma"] is not None or case.inputs["beta"] is not None:
        return
    received = case.layout.rows(subject.observe(case).outputs["y"])
    y, bound = exact(received), subject.bound(case, "y")
    zero = Scaled.of(np.zeros(len(received)))

    def narrow(normative: bool) -> np.ndarray:
        return case.layout.rows(bound(normative)).mean(axis=1)

    yield judge_exactly(subject, case, "the mean of y", averaged(y), zero, narrow, "over a group")
    truth = subject.truth(case).outputs()["y"]
    hi, lo = (exact(case.layout.rows(word)) for word in truth)
    square = averaged((hi + lo) * (hi + lo))

    def wide(normative: bool) -> np.ndarray:
        e = case.layout.rows(bound(normative))
        return (e * (2 * np.abs(case.layout.rows(truth.hi)) + e)).mean(axis=1)

    yield judge_exactly(subject, case, "the mean square of y", averaged(y * y), square, wide, "over a group")


@check("PO-L2", every=recipes("scaled", "zero"))
def scaled_block(subject: Subject, case: Case) -> Iterator[Finding]:
    """With a homogeneous sublayer, 2^k x and 4^k eps leave y as it is."""
    for note, moved in _scaled(case):
        yield same_y(subject, case, moved, f"{note}, the sublayer homogeneous")


@check("PO-L3", every=recipes("zero"))
def bare_norm(subject: Subject, case: Case) -> Iterator[Finding]:
    """With a sublayer that returns zeros, y is LN(x)."""
    gamma, beta = case.inputs["gamma"], case.inputs["beta"]

    def want(normative: bool) -> DD:
        eps = subject.truth(case, normative=normative).settings["eps"]
        found: DD = layer_norm_exact(case.x, gamma, beta, eps=eps, axes=(-1,))
        return found

    y = subject.observe(case).outputs["y"]
    yield subject.judge(case, "y", y, want, subject.bound(case, "y"), "the sublayer returns zeros")


@check("PO-L4", every=recipes("negated", "zero"))
def constant_sum(subject: Subject, case: Case) -> Iterator[Finding]:
    """Where the sum is constant over a group, as with F = -identity, y is beta."""
    beta = case.inputs["beta"]
    constant, note = case, "F(x) = -x"
    if case.description is not None and case.description.recipe == "zero":
        constant, note = case.replace(x=np.full_like(case.x, 1.5)), "F(x) = 0, every x the same"
    want = np.zeros(case.x.shape) if beta is None else np.broadcast_to(beta.astype(np.float64), case.x.shape)
    y = subject.outputs(constant)["y"]
    yield subject.judge(constant, "y", y, as_exact(want), subject.bound(constant, "y"), note)


@check("PO-G5", every=recipes("leaf"), gradient=True)
def balanced_gradient(subject: Subject, case: Case) -> Iterator[Finding]:
    """The gradient with respect to the sublayer's output sums to zero over a group."""
    _ = subject.observe(case).outputs
    name = "dsublayer.h"
    total = summed(exact(case.layout.rows(subject.observe(case).gradient(name))))
    bound, zero = finite_bound(subject, case, name), Scaled.of(np.zeros(total.shape))
    yield judge_exactly(
        subject, case, f"sum of {name}", total, zero,
        lambda normative: case.layout.rows(bound(normative)).sum(axis=1), "over a group",
    )  # fmt: skip
