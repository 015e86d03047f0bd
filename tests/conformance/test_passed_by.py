"""Inputs that code may pass by, because nothing seems to be left to compute: zeros alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from .runs import VARIANT, function, run, verdicts

#: How a call passes an input by -> whether it does so, and what it then returns in place of dx.
_PASSED: dict[str, tuple[Callable[..., bool], Callable[..., Any]]] = {
    "zeros": (lambda x, gamma, beta: not x.any(), lambda g: 0 * g),
    "zeros without parameters": (lambda x, gamma, beta: gamma is None and beta is None and not x.any(), lambda g: g),
}


@pytest.mark.parametrize("operator", ["ln", "bn", "gn", "in"])
@pytest.mark.parametrize("kind", _PASSED)
def test_zeros_have_a_gradient(kind: str, operator: str) -> None:
    """dx of zeros is g times the reciprocal root of eps, without its mean."""
    made = VARIANT[
        "ln-plain" if operator == "ln" else f"{operator}-{'plain' if operator == 'bn' else 'two-pass'}"
    ].build()
    passes, instead = _PASSED[kind]

    def vjp(x: np.ndarray, gamma: Any, beta: Any, *rest: Any, **settings: Any) -> Any:
        dx, *others = made.vjp(x, gamma, beta, *rest, **settings)
        return (instead(rest[-1]) if x.size and passes(x, gamma, beta) else dx, *others)

    name = {"ln": "layer_norm", "bn": "batch_norm", "gn": "group_norm", "in": "instance_norm"}[operator]
    requirement = f"{operator.upper()}-G1"
    for derivative, verdict in ((made.vjp, "pass"), (vjp, "fail")):
        report = run(function(name, made.call, vjp=derivative), requirements={requirement})
        assert verdicts(report) == {requirement: verdict}


def test_zeros_are_passed_to_the_branch() -> None:
    """The branch of zeros may be anything: a shortcut that returns them is right only where the branch does so too."""
    made = VARIANT["rs-plain"].build()

    def passes(x: np.ndarray, branch: Any, **settings: Any) -> Any:
        return made.call(x, branch, **settings) if x.any() else x

    for call, verdict in ((made.call, "pass"), (passes, "fail")):
        report = run(function("residual", call, vjp=made.vjp), requirements={"RS-F1"})
        assert verdicts(report) == {"RS-F1": verdict}
