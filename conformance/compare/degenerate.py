"""Groups without variance, groups of one value, and no groups at all."""

from __future__ import annotations

import numpy as np

from ...reference.accuracy import AccuracyClass
from ...spec.operators import OPERATORS
from ..checks.sizes import emptied
from ..judging.truth import Truth, arithmetic_of
from .bench import Bench
from .plain import SHAPE, plain_case
from .probe import CENTRED, NORMALISATIONS, probe
from .table import Cell

#: Values of constant groups: exact ones, ones whose mean is rounded, small and large.
_CONSTANTS = (0.0, 1.0, 0.1, -7.3, 1234.0, 2.0**-7, 99.99)

#: The weakest class: it allows the roundings of every way to compute y.
_WEAKEST = AccuracyClass(variance="one-pass", affine="folded", storage="native")


@probe("constant", "constant groups", CENTRED)
def constant_groups(bench: Bench) -> Cell:
    """
    Tests whether y is beta to the last bit in groups of one repeated value.

    eps is 1, for which every place of eps gives the same factor; beta is small, so that it hides no rounding.
    """
    beta = 3 * 2.0**-10 if bench.takes("beta") else 0.0
    constants = np.resize(np.array(_CONSTANTS), (SHAPE[0], 1))
    case = bench.case(np.broadcast_to(constants, SHAPE), eps=1.0, gamma=1.5, beta=beta)
    y = bench.answer(case).y
    off = np.abs(y.astype(np.float64) - beta)
    evidence = {"constants": list(_CONSTANTS), "off": [float(worst) for worst in off.max(axis=1)[: len(_CONSTANTS)]]}
    if np.all(off == 0):
        return Cell("beta, exactly", evidence=evidence)
    if np.any(np.isnan(y.astype(np.float64))):
        return Cell("NaN", evidence=evidence)
    truth = case.truth("exact", "biased", Truth)
    bound = truth.bound("y", arithmetic_of(case, _WEAKEST))
    within = bench.outputs(case)["y"].astype(np.float64) - beta
    return Cell("beta, rounded" if np.all(np.abs(within) <= bound) else "not beta", evidence=evidence)


@probe("single", "one value per group", CENTRED)
def one_value(bench: Bench) -> Cell:
    """Tells whether y is beta, NaN or an error; for batch_norm also what becomes of the running variance."""
    beta = 0.75 if bench.takes("beta") else 0.0
    answer = bench.call([[3.0], [-5.0]], eps=1.0, gamma=1.5, beta=beta, asked=True)
    y = answer.y.astype(np.float64)
    evidence = {"y": [float(v) for v in y.ravel()]}
    if np.all(np.isnan(y)):
        text = "NaN"
    else:
        text = "beta" if np.all(np.abs(y - beta) <= 2.0**-7) else "neither beta nor NaN"
    if answer.var is not None:
        evidence["running_variance"] = [float(v) for v in answer.var]
        if not np.all(np.isfinite(answer.var.astype(np.float64))):
            text += "; running variance NaN"
    return Cell(text, evidence=evidence)


@probe("empty", "empty batch", OPERATORS)
def empty_batch(bench: Bench) -> Cell:
    """Tells whether y is empty or an error; for batch_norm also what becomes of the running statistics."""
    given = (2.5, 3.5)
    if bench.operator in NORMALISATIONS:
        case = emptied(bench.case(np.ones((2, 4)), running=given))
    else:
        case = emptied(plain_case(bench))
    found = bench.outputs(case, asked=True)
    if not bench.record.statistics:
        return Cell("empty", evidence={"shape": list(found["y"].shape)})
    mean, var = (found[f"new_running_{name}"].astype(np.float64) for name in ("mean", "var"))
    evidence = {"given": list(given), "running_mean": [float(v) for v in mean], "running_var": [float(v) for v in var]}
    if np.all(mean == given[0]) and np.all(var == given[1]):
        return Cell("empty; statistics kept", evidence=evidence)
    if np.any(np.isnan(mean)) or np.any(np.isnan(var)):
        return Cell("empty; statistics NaN", evidence=evidence)
    return Cell("empty; statistics moved", evidence=evidence)
