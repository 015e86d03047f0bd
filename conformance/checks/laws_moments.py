"""Laws about the normalised values: moments, the bound, constant groups, gamma and beta."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ...reference.scaled import Scaled
from ...spec.errors import Unsupported
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject
from .derived import affine_names, with_parameters
from .exactly import added, averaged, exact, judge_exactly
from .exactly import moments as exact_moments
from .registry import BOTH, check, in_training
from .relations import close_to_sum, sum_of


def plain(subject: Subject, case: Case) -> tuple[Case, np.ndarray]:
    """The case without gamma and beta, and its y, which is xhat."""
    bare = case.replace(**dict.fromkeys(affine_names(case)))
    try:
        return bare, subject.outputs(bare)["y"]
    except Unsupported:
        if any(case.inputs[name] is None for name in affine_names(case)):
            raise
        bare = with_parameters(case, 1, 0)
        return bare, subject.outputs(bare)["y"]


@check("LN-L11", "BN-L8", "RM-L11", "GN-L11", "IN-L11", when=in_training, raising="violates", of="formula")
def moments(subject: Subject, case: Case) -> Iterator[Finding]:
    """mean(xhat^2) = var/(var + eps); and mean(xhat) = 0 where the mean is subtracted."""
    bare, y = plain(subject, case)
    near = bare.layout.rows(y).astype(np.float64)
    if not np.isfinite(near).all():
        near = np.where(np.isfinite(near), near, np.nan)
    bound, xh = subject.bound(bare, "y"), exact(near)
    right = np.abs(bare.layout.rows(subject.truth(bare).outputs()["y"].hi))

    def first(normative: bool) -> np.ndarray:
        return bare.layout.rows(bound(normative)).mean(axis=1)

    def second(normative: bool) -> np.ndarray:
        e = bare.layout.rows(bound(normative))
        return (e * (2 * right + e)).mean(axis=1)  # |got^2 - right^2| <= e (2 |right| + e)

    v = exact_moments(bare).variance.reshape(len(near))
    share = v / (v + Scaled.of(subject.truth(bare).settings["eps"]))
    zero = Scaled.of(np.zeros(len(near)))
    if case.record.centred:
        yield judge_exactly(subject, bare, "mean of xhat", averaged(xh), zero, first, "the sum over a group")
    yield judge_exactly(subject, bare, "mean of xhat^2", averaged(xh * xh), share, second, "over a group")


@check("LN-L12", "BN-L9", "RM-L12", "GN-L12", "IN-L12", when=in_training, raising="violates", of="formula")
def bounded(subject: Subject, case: Case) -> Iterator[Finding]:
    """|xhat| <= sqrt(n - 1), and <= sqrt(n) where no mean is subtracted."""
    bare, y = plain(subject, case)
    most = bare.layout.size - bool(case.record.centred)
    limit = Scaled.of(np.full(y.shape, float(most))).sqrt()
    nearest = limit.to_dd()
    # Only an excess is judged: a value within the limit counts as at the limit.
    beyond = np.maximum(np.abs(y.astype(np.float64)), nearest.hi) - nearest.hi
    yield judge_exactly(
        subject, bare, "|xhat|", limit + Scaled.of(beyond), limit,
        subject.bound(bare, "y"), f"sqrt({most}) is the limit",
    )  # fmt: skip


@check("LN-L13", "BN-L10", "GN-L13", "IN-L13", when=in_training, raising="violates", of="formula")
def constant_groups(subject: Subject, case: Case) -> Iterator[Finding]:
    """A group of one value repeated gives beta."""
    rows = case.layout.rows(case.x).astype(np.float64)
    same = (rows == rows[:, :1]).all(axis=1)
    if not same.any():
        return
    where = case.layout.back(np.broadcast_to(same[:, None], rows.shape).copy())
    y = subject.observe(case).outputs["y"]
    yield subject.judge_output(case, "y", y, where=where, note="a constant group")


@check("LN-L14", "BN-L11", "RM-L14", "GN-L14", "IN-L14", raising="violates", modes=BOTH, of="formula")
def affine_laws(subject: Subject, case: Case) -> Iterator[Finding]:
    """y is linear in gamma, and beta adds to it: y(a + b, beta) = y(a, beta) + y(b, 0)."""
    gamma = case.inputs["gamma"]
    if gamma is None:
        return
    random = case.random("linear")
    dtype = gamma.dtype
    a = random.integers(-4, 5, gamma.shape).astype(dtype)  # small integers: their sums are exact
    b = random.integers(-4, 5, gamma.shape).astype(dtype)
    beta = random.integers(-4, 5, gamma.shape).astype(dtype)
    gains, zero = ((a + b).astype(dtype), a, b), np.zeros_like(beta)
    with_beta = "beta" in case.inputs
    cases = [
        case.replace(gamma=gain, **({"beta": term} if with_beta else {}))
        for gain, term in zip(gains, (beta, beta, zero), strict=True)
    ]
    subject.prefetch(case, [partial(subject.outputs, c) for c in cases])
    ys = [subject.outputs(c)["y"] for c in cases]
    bounds = [subject.bound(c, "y") for c in cases]
    yield close_to_sum(
        subject, cases[0], "y", ys[0], added(ys[1], ys[2]), ys[1:], sum_of(*bounds),
        "y(a, beta) + y(b, 0)",
    )  # fmt: skip
