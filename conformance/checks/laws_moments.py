"""Laws about the normalised values: moments, the bound, constant groups, gamma and beta."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...reference.scaled import Scaled
from ...spec.errors import Unsupported
from ..cases.case import Case
from ..findings import Finding
from ..subject import Subject
from .exactly import added, averaged, exact, judge_exactly
from .exactly import moments as exact_moments
from .registry import BOTH, check, ordinary


def _law(case: Case) -> bool:
    return "law" in case.tags and ordinary(case)


def plain(subject: Subject, case: Case) -> tuple[Case, np.ndarray]:
    """The case without gamma and beta, and its y, which is xhat."""
    bare = case.replace(gamma=None, beta=None)
    try:
        return bare, subject.outputs(bare)["y"]
    except Unsupported:
        gamma, beta = case.inputs["gamma"], case.inputs["beta"]
        if gamma is None or beta is None:
            raise
        bare = case.replace(gamma=np.ones_like(gamma), beta=np.zeros_like(beta))
        return bare, subject.outputs(bare)["y"]


@check("LN-L11", "BN-L8", when=_law, raising="violates")
def moments(subject: Subject, case: Case) -> Iterator[Finding]:
    """mean(xhat) = 0 and mean(xhat^2) = var/(var + eps)."""
    bare, y = plain(subject, case)
    near = bare.layout.rows(y).astype(np.float64)
    if not np.isfinite(near).all():
        near = np.where(np.isfinite(near), near, np.nan)
    bound, xh = subject.bound(bare, "y"), exact(near)

    def first(normative: bool) -> np.ndarray:
        return bare.layout.rows(bound(normative)).mean(axis=1)

    def second(normative: bool) -> np.ndarray:
        e = bare.layout.rows(bound(normative))
        return (2 * np.abs(near) * e + e * e).mean(axis=1)

    v = exact_moments(bare).variance.reshape(len(near))
    share = v / (v + Scaled.of(subject.truth(bare).settings["eps"]))
    zero = Scaled.of(np.zeros(len(near)))
    yield judge_exactly(subject, bare, "mean of xhat", averaged(xh), zero, first, "the sum over a group")
    yield judge_exactly(subject, bare, "mean of xhat^2", averaged(xh * xh), share, second, "over a group")


@check("LN-L12", "BN-L9", when=_law, raising="violates")
def bounded(subject: Subject, case: Case) -> Iterator[Finding]:
    """|xhat| <= sqrt(n - 1)."""
    bare, y = plain(subject, case)
    limit = Scaled.of(np.full(y.shape, bare.layout.size - 1.0)).sqrt()
    nearest = limit.to_dd()
    # Only an excess is judged: what lies within the limit is taken to be at it.
    beyond = np.maximum(np.abs(y.astype(np.float64)), nearest.hi) - nearest.hi
    yield judge_exactly(
        subject, bare, "|xhat|", limit + Scaled.of(beyond), limit,
        subject.bound(bare, "y"), "sqrt(n - 1) is the limit",
    )  # fmt: skip


@check("LN-L13", "BN-L10", when=lambda case: _law(case) and "constant" in case.tags, raising="violates")
def constant_groups(subject: Subject, case: Case) -> Iterator[Finding]:
    """A group of one value repeated gives beta."""
    rows = case.layout.rows(case.x).astype(np.float64)
    same = (rows == rows[:, :1]).all(axis=1)
    if not same.any():
        return
    where = case.layout.back(np.broadcast_to(same[:, None], rows.shape).copy())
    y = subject.observe(case).outputs["y"]
    yield subject.judge_output(case, "y", y, where=where, note="a constant group")


@check("LN-L14", "BN-L11", when=_law, raising="violates", modes=BOTH)
def affine_laws(subject: Subject, case: Case) -> Iterator[Finding]:
    """y is linear in gamma and moves with beta: y(a + b, beta) = y(a, beta) + y(b, 0)."""
    gamma = case.inputs["gamma"]
    if gamma is None:
        return
    random = case.random("linear")
    dtype = gamma.dtype
    a = random.integers(-4, 5, gamma.shape).astype(dtype)  # small integers: their sums are exact
    b = random.integers(-4, 5, gamma.shape).astype(dtype)
    beta = random.integers(-4, 5, gamma.shape).astype(dtype)
    zero = np.zeros_like(beta)
    cases = [
        case.replace(gamma=(a + b).astype(dtype), beta=beta),
        case.replace(gamma=a, beta=beta),
        case.replace(gamma=b, beta=zero),
    ]
    ys = [subject.outputs(c)["y"] for c in cases]
    bounds = [subject.bound(c, "y") for c in cases]
    yield subject.judge(
        cases[0], "y", ys[0], added(ys[1], ys[2]), lambda normative: np.sum([b(normative) for b in bounds], axis=0),
        "y(a, beta) + y(b, 0)",
    )  # fmt: skip
