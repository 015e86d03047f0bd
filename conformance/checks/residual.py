"""Laws of the residual connection."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...reference.formats import format_of
from ..cases.case import Case
from ..cases.stream import Stream
from ..judging.findings import Finding, as_exact
from ..judging.subject import Subject
from .registry import check, recipes
from .relations import equal_to, same_bits_of_y, scaled_exactly


@check("RS-L1", "PR-L1", every=recipes("zero"))
def zero_branch(subject: Subject, case: Case) -> Iterator[Finding]:
    """With a part that returns zeros, y is x to the last bit."""
    yield equal_to(subject, case, "y", subject.observe(case).outputs["y"], case.x, "the part returns zeros")


@check("RS-L2", every=recipes("negated"))
def cancelling_branch(subject: Subject, case: Case) -> Iterator[Finding]:
    """With F = -identity, y is zero."""
    zero = np.zeros_like(case.x)
    yield equal_to(subject, case, "y", subject.observe(case).outputs["y"], zero, "F(x) = -x")


@check("RS-G6", every=recipes("negated"), gradient=True)
def cancelling_gradient(subject: Subject, case: Case) -> Iterator[Finding]:
    """With F = -identity, dx is zero."""
    _ = subject.observe(case).outputs
    dx = subject.observe(case).gradient("dx")
    yield equal_to(subject, case, "dx", dx, np.zeros_like(dx), "F(x) = -x")


@check("RS-L3", every=recipes("linear"))
def linear_blocks(subject: Subject, case: Case) -> Iterator[Finding]:
    """Two blocks in sequence, with linear branches A and B, give x (I + A) (I + B)."""
    random = case.random("linear blocks")
    n, dtype = case.x.shape[-1], case.x.dtype
    # With small integers and few features the product is exact in every dtype.
    if n > 8:
        return
    x = random.integers(-2, 3, case.x.shape)
    first, second = random.integers(-1, 2, (2, n, n))
    inside = case.replace(**{"x": x.astype(dtype), "branch.w": first.astype(dtype)})
    between = subject.outputs(inside)["y"]
    if not np.isfinite(between.astype(np.float64)).all():
        yield subject.judge_output(inside, "y", between, note="the first of two blocks")
        return
    after = case.replace(**{"x": between, "branch.w": second.astype(dtype), "g": _small(random, case)})
    both = (np.eye(n) + first) @ (np.eye(n) + second)
    got = subject.outputs(after)["y"]
    yield subject.judge(after, "y", got, as_exact(x @ both), subject.bound(after, "y"), "the second of two blocks")
    if subject.forward_only:
        return
    back = subject.pull(after)["dx"]
    if not np.isfinite(back.astype(np.float64)).all():
        yield subject.judge_gradient(after, "dx", back, note="back through the second of two blocks")
        return
    got = subject.pull(inside, back)["dx"]
    want, bound = as_exact(after.g.astype(np.float64) @ both.T), subject.bound(inside, "dx", back)
    yield subject.judge(inside, "dx", got, want, bound, "back through two blocks")


def _small(random: Stream, case: Case) -> np.ndarray:
    """A cotangent of integers so small that the gradients through two blocks are exact."""
    return random.integers(-1, 2, case.x.shape).astype(case.x.dtype)


@check("RS-L4", every=recipes("scaled", "negated", "zero"))
def odd_branch(subject: Subject, case: Case) -> Iterator[Finding]:
    """An odd F makes y odd: -x gives -y."""
    yield same_bits_of_y(subject, case, case.replace(x=-case.x), "x negated, F odd", -1.0)


@check("RS-L5", every=recipes("scaled", "negated", "zero"))
def homogeneous_branch(subject: Subject, case: Case) -> Iterator[Finding]:
    """A homogeneous F makes y homogeneous: 2^k x gives 2^k y."""
    y = subject.observe(case).outputs["y"]
    for factor in (4.0, 0.125):
        x = scaled_exactly(case.x, factor)
        if x is None or scaled_exactly(y, factor) is None:
            continue
        # F(x) is at most 4 times as large as x, and must stay finite too.
        if 4 * np.abs(x.astype(np.float64)).max() <= format_of(x.dtype).largest:
            yield same_bits_of_y(subject, case, case.replace(x=x), f"x times {factor:g}, F homogeneous", factor)
