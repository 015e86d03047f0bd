"""Checks for every framework's composed operators, against those of the NumPy target."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters import numpy as plain
from normspec.adapters.binding import Binding, differentiable
from normspec.adapters.session import Session
from normspec.adapters.target import Target
from normspec.spec.parts import Part

from .composed_problems import PROBLEMS, SHAPE

PLAIN = plain.target()


def cases(bindings: Sequence[Binding]) -> list:
    """Each binding with the name of each problem that it takes."""
    return [
        pytest.param(binding, name, id=f"{binding.name}, {name}")
        for binding in bindings
        for name, problem in PROBLEMS.items()
        if problem.operator == binding.operator and not binding.unsupported_keywords & set(problem.parts)
    ]


def _expected(operator: str) -> Session:
    (binding,) = (b for b in PLAIN.bindings if b.operator == operator)
    return PLAIN.session(binding)


def drawn(shape, dtype, seed):
    """Normal numbers, the same for the same seed."""
    return np.random.Generator(np.random.Philox(seed)).normal(size=shape).astype(dtype)


def _wide(arrays):
    return {name: None if array is None else array.astype(np.float64) for name, array in arrays.items()}


def agree(target: Target, binding: Binding, name: str, dtype, held: frozenset[str] = frozenset()) -> None:
    """The binding agrees with the NumPy target on a problem; see :func:`agree_on`."""
    problem = PROBLEMS[name]
    agree_on(target, binding, problem.drawn(dtype), problem.settings, problem.parts, dtype, held=held)


def agree_on(target, binding, inputs, settings, parts, dtype, *, held=frozenset(), twice=True) -> None:
    """
    Value, gradients, tangent and second order are those of the NumPy target in float64, up to roundings.

    ``held``: the arguments that second derivatives are not taken in. ``twice``: whether there are any.
    """
    names, g = differentiable(binding.operator, inputs), drawn(SHAPE, dtype, 1)
    along = {n: drawn(inputs[n].shape, dtype, 2) for n in names}
    second = {n: along[n] for n in names if "." not in n and n not in held}

    def all_of(session, inputs, g, along, second):
        evaluation = session.start(inputs, settings, parts=parts)
        found = {
            **evaluation.outputs(),
            **{f"d{n}": gradient for n, gradient in evaluation.pull(g).gradients().items()},
            "tangent": session.jvp(inputs, settings, along, parts=parts),
        }
        if twice:
            bars = session.vjp_vjp(inputs, settings, g, second, parts=parts)
            found |= {f"{n}_bar": bar for n, bar in bars.items()}
        return found

    got = all_of(target.session(binding), inputs, g, along, second)
    exact = all_of(_expected(binding.operator), _wide(inputs), g.astype(np.float64), _wide(along), _wide(second))
    assert got.keys() == exact.keys()
    for what, value in exact.items():
        if value is None:
            assert got[what] is None, what
            continue
        assert got[what].dtype == dtype, what
        # A few dozen roundings of values of the largest's size: loose, since only the wiring is in question here.
        tolerance = 64 * float(ml_dtypes.finfo(dtype).eps) * (1 + np.abs(value).max())
        np.testing.assert_allclose(got[what].astype(np.float64), value, atol=tolerance, err_msg=what)


def with_results(target: Target, binding: Binding, kind: str) -> np.ndarray:
    """y if the first part's result is wrapped in a part of this kind."""
    problem = PROBLEMS[binding.operator]
    (role, part), *_ = problem.parts.items()

    def cut(part):
        return Part(kind, inner=(part,))

    parts = {**problem.parts, role: tuple(map(cut, part)) if isinstance(part, tuple) else cut(part)}
    return target.session(binding).start(problem.drawn(), problem.settings, parts=parts).outputs()["y"]


def worst_in_bfloat16(target: Target, binding: Binding) -> float:
    """The largest relative error over a few calls, in roundings to bfloat16."""
    problem, worst = PROBLEMS[binding.operator], 0.0
    for seed in range(8):
        inputs = problem.drawn(ml_dtypes.bfloat16, seed)
        y = target.session(binding).start(inputs, problem.settings, parts=problem.parts).outputs()["y"]
        exact = _expected(binding.operator).start(_wide(inputs), problem.settings, parts=problem.parts).outputs()["y"]
        worst = max(worst, float((np.abs(y.astype(np.float64) - exact) / np.abs(exact)).max()))
    return worst * 2.0**8
