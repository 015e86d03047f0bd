"""Cases made from a case: the second call of a law that relates the results of two calls."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from ...adapters.binding import differentiable
from ...reference.double_double import two_sum
from ..cases.case import Case


def affine_names(case: Case) -> tuple[str, ...]:
    """The names among gamma and beta that the operator takes."""
    return tuple(name for name in ("gamma", "beta") if name in case.inputs)


def parameter_names(case: Case) -> tuple[str, ...]:
    """The names among gamma, beta and logits that the operator takes."""
    return tuple(name for name in ("gamma", "beta", "logits") if name in case.inputs)


def some_tracked(case: Case) -> list[tuple[str, ...]]:
    """Choices of the inputs that need a gradient, leaves included: each one alone, and all but each one."""
    names = differentiable(case.operator, case.inputs)
    sizes = sorted({1, len(names) - 1} - {0, len(names)})
    return [chosen for size in sizes for chosen in combinations(names, size)]


def with_parameters(case: Case, gamma: float, beta: float) -> Case:
    """The case with these two numbers for all of gamma and all of beta."""
    shape, dtype, numbers = case.layout.parameter_shape, _parameter_dtype(case), {"gamma": gamma, "beta": beta}
    return case.replace(**{name: np.full(shape, numbers[name], dtype) for name in affine_names(case)})


def filled(case: Case) -> Case:
    """The case with ones in place of a gamma of None, and zeros in place of a beta of None."""
    given = {name: case.inputs[name] for name in affine_names(case) if case.inputs[name] is not None}
    return with_parameters(case, 1, 0).replace(**given)


def without_parameters(case: Case) -> tuple[Case, Case]:
    """
    The case with parameters that leave xhat as it is, in two forms: gamma None, and ones for targets that need a gamma.

    beta is zero in both rather than None, because a missing beta is the matter of LN-F6 and BN-F6.
    """
    ones = with_parameters(case, 1, 0)
    return ones.replace(gamma=None), ones


def _parameter_dtype(case: Case) -> np.dtype:
    """The dtype of the parameters; that of x where the case has none."""
    given = (case.inputs.get(name) for name in ("gamma", "beta", "running_mean"))
    return next((value.dtype for value in given if value is not None), case.x.dtype)


def doubled(case: Case) -> Case:
    """The case with every group twice as long, each value repeated: (x, x)."""
    inputs = {"x": twice(case, case.x)}
    if not case.layout.after:  # gamma is as long as a group
        given = {name: case.inputs[name] for name in affine_names(case)}
        inputs |= {name: twice(case, value) for name, value in given.items() if value is not None}
    return case.replace(g=twice(case, case.g), **inputs)


def twice(case: Case, values: np.ndarray) -> np.ndarray:
    """An array of x's or gamma's shape, repeated along x's positions if it has some, else along gamma's first axis."""
    places = case.layout.after or case.layout.parameter
    return np.concatenate([values, values], axis=places[0] if values.shape == case.x.shape else 0)


def with_eps(case: Case, factor: float) -> Case:
    """The case with its eps times a factor."""
    return case if factor == 1 else case.replace(eps=factor * case.settings["eps"])


def at_unit_eps(case: Case) -> Case | None:
    """
    The case scaled so that eps is at least 1 and below 4; None if it has no eps or scaling is not exact.

    In inference the running variances become a quarter of eps, eps, and four times eps, in turn.
    """
    eps = case.settings["eps"]
    if eps <= 0:
        return None
    power = -math.floor(math.log2(eps) / 2)
    eps = math.ldexp(eps, 2 * power)
    changes = {"x": np.ldexp(case.x.astype(np.float64), power).astype(case.x.dtype)}
    if not case.settings.get("training", True):
        mean, variance = (np.asarray(case.inputs[name]) for name in ("running_mean", "running_var"))
        changes["running_mean"] = np.ldexp(mean.astype(np.float64), power).astype(mean.dtype)
        changes["running_var"] = (eps * 4.0 ** (np.arange(variance.size) % 3 - 1)).astype(variance.dtype)
    # Scaling by a power of two is exact unless it overflows or leaves too few digits.
    if not np.array_equal(np.ldexp(changes["x"].astype(np.float64), -power), case.x.astype(np.float64)):
        return None
    if not all(np.isfinite(value.astype(np.float64)).all() for value in changes.values()):
        return None
    return case.replace(eps=eps, **changes)


def perturbed(case: Case) -> tuple[Case, np.ndarray]:
    """The case with one value moved far to the other side of its group's mean; and a mask that marks it."""
    rows, random = case.layout.rows(case.x).copy(), case.random("perturbed")
    group, place = random.number(0, len(rows) - 1), random.number(0, rows.shape[1] - 1)
    values = rows[group].astype(np.float64)
    far = 8 * np.abs(values).max() or 1.0  # a power of two times a number of the format
    rows[group, place] = far if values[place] <= values.mean() else -far
    mask = np.zeros(rows.shape, bool)
    mask[group, place] = True
    return case.replace(x=case.layout.back(rows)), case.layout.back(mask)


def less_value(case: Case, place: int) -> Case:
    """
    The case with one value of each group subtracted from that whole group.

    A group in which subtracting its first or its last value rounds stays as it is.
    """
    rows = case.layout.rows(case.x)
    exactly = np.ones((len(rows), 1), bool)
    moved = rows
    for one in {0, -1, place}:
        wide = rows.astype(np.float64)
        there, lost = two_sum(wide, -wide[:, [one]])
        kept = there.astype(rows.dtype)
        exactly &= ((lost == 0) & (kept.astype(np.float64) == there)).all(axis=1, keepdims=True)
        moved = kept if one == place else moved
    return case.replace(x=case.layout.back(np.where(exactly, moved, rows)))


def with_value(values: np.ndarray | None, place: int | tuple[int, ...], value: float) -> np.ndarray:
    """A copy of an array with another value in one place."""
    assert values is not None
    changed = values.copy()
    changed[place] = value
    return changed
