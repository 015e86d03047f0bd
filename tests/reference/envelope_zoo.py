"""Every combination of moments, root and form on one set of rows, and the largest ratio that each result reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs
import numpy as np

from normspec.reference.accuracy import AccuracyClass

from .envelope_forms import (
    FOLDED_GRADIENTS,
    FOLDED_OUTPUTS,
    GRADIENTS,
    OUTPUTS,
    PRODUCTS,
    ROOTS,
    Call,
    channel_gamma,
    folded_channel_gamma,
    gamma_last,
)
from .envelope_judge import NORMATIVE, Array, Problem, ratio
from .envelope_moments import Moments
from .envelope_sums import SUMS, Sum, number

#: The largest ratio by result, and which combination reached it.
Worst = dict[str, tuple[float, str]]


def results(call: Call, channels: bool, folded: bool) -> Iterator[tuple[str, str, Array]]:
    """Each result of one call in each form: (name of the result, name of the form, values)."""
    outputs, gradients = dict(OUTPUTS), dict(GRADIENTS)
    if channels:
        gradients["gamma last"] = gamma_last
    if folded:
        outputs |= FOLDED_OUTPUTS
        gradients |= FOLDED_GRADIENTS
    yield from (("y", name, form(call)) for name, form in outputs.items())
    yield from (("dx", name, form(call)) for name, form in gradients.items())
    for name, product in PRODUCTS.items():
        terms = product(call)
        yield "dgamma", name, call.total(terms if channels else terms.T)[:, 0]
    yield "dbeta", "sum", call.total(call.g if channels else call.g.T)[:, 0]
    if channels:
        yield "dgamma", "r sum(g d)", channel_gamma(call)[:, 0]
        if folded:
            yield "dgamma", "folded", folded_channel_gamma(call)[:, 0]


def cast(rows: Problem, dtype: np.dtype) -> Problem:
    """The same rows with every array in another dtype."""
    return attrs.evolve(rows, **{name: getattr(rows, name).astype(dtype) for name in ("x", "gamma", "beta", "g")})


def worst(
    rows: Problem,
    moments: Mapping[str, Moments],
    accuracy: AccuracyClass = NORMATIVE,
    *,
    compute: np.dtype | None = None,
    roots: tuple[str, ...] = ("1/sqrt",),
    sums: tuple[str, ...] = ("forwards", "pairs"),
) -> Worst:
    """The largest ratio of each result over all combinations, computed in `compute` and rounded to the rows' dtype."""
    bounds, exact, found = rows.bounds(accuracy), rows.exact, {}
    work = cast(rows, compute or rows.x.dtype)
    (gamma, beta), channels = work.parameters, rows.operator == "batch_norm"

    def judge(result: str, label: str, values: Array) -> None:
        reached = ratio(values.astype(rows.x.dtype), exact[result], bounds[result])
        largest = float(np.max(reached, initial=0.0))
        if not largest <= found.get(result, (-1.0, ""))[0]:
            found[result] = (largest, label)

    with np.errstate(all="ignore"):
        for how, algorithm in moments.items():
            mean, variance = algorithm(work.x)
            if channels and work.x.dtype == rows.x.dtype:
                judge("mean", how, mean[:, 0])
                judge("variance", how, variance[:, 0])
            for root in roots:
                r = ROOTS[root](variance + number(work.x, rows.eps))
                for order in sums:
                    total: Sum = SUMS[order]
                    call = Call(work.x, gamma, beta, work.g, mean, r, total)
                    for result, form, values in results(call, channels, accuracy.affine == "folded"):
                        judge(result, f"{how}; {root}; {order}; {form}", values)
    return found
