"""A part that is the operator itself: what is judged, in which mode it is called, and where gamma is less one."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from normspec.adapters.binding import Binding
from normspec.adapters.numpy import BRIDGE
from normspec.adapters.target import Target
from normspec.conformance.cases.case import build
from normspec.conformance.cases.description import Description
from normspec.conformance.checks.nested_blocks import part_is_the_operator, with_itself
from normspec.conformance.judging.subject import Subject

from .runs import VARIANT, function, run, subject_of, verdicts

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

TWO = (("normal", 0), ("normal", 1))
#: A sound variant of each operator, a recipe, and the inputs whose gradients are judged beside x and its parameters.
CALLS = {
    "rs-plain": ("projected", {"branch.w", "shortcut.w"}),
    "pr-two-pass": ("tanh_linear", {"sublayer.w", "sublayer.gamma", "sublayer.beta"}),
    "po-two-pass": ("tanh_linear", {"sublayer.w", "sublayer.gamma", "sublayer.beta"}),
    "hw-plain": ("chain_carry", {"transform.w", "gate.w", "carry.w"}),
    "mh-plain": ("mixed", {"branches.0.w", "branches.1.h"}),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_role_is_the_operator_once(name: str) -> None:
    """y is judged in both ways, and the gradients of all that the call and the call within it take."""
    recipe, leaves = CALLS[name]
    subject = subject_of(name)
    case = build(Description(subject.operator, 4, TWO, recipe=recipe, count=2, eps=2.0**-8), "float32")
    found = [*part_is_the_operator(subject, case)]
    assert not any(one.violated for one in found) and all(one.judged for one in found)
    roles = {"rs": {"branch", "shortcut"}, "hw": {"transform", "gate", "carry"}, "mh": {"branches.0", "branches.1"}}
    wanted = roles.get(name[:2], {"sublayer"})
    assert {one.note.split()[0] for one in found} == wanted
    for role in wanted:
        own = [one for one in found if one.note.startswith(f"{role} is")]
        assert [one.output for one in own].count("y") == 3
        assert {f"d{leaf}" for leaf in leaves} <= {one.output for one in own}
        inner = {f"d{role}.{parameter}" for parameter in case.record.parameters}
        assert {"dx", *inner} <= {one.output for one in own}


def test_the_inner_call_is_made_in_the_mode_of_the_outer() -> None:
    """A block of a model that serves is in inference mode too."""
    modes = []

    def residual(x: Any, branch: Any, *, mode: str, shortcut: Any = None, activation: Any = None) -> Any:
        modes.append(mode)
        return x + branch(x)

    target = Target("own", "numpy", np.__version__, BRIDGE, (Binding("residual", "own", residual, has_modes=True),))
    subject = Subject(target, target.bindings[0], "float32")
    case = with_itself(build(Description("residual", 4, TWO, recipe="tanh_linear"), "float32"), "branch")
    for mode in ("training", "inference"):
        subject.outputs(case, mode)
        assert modes == [mode, mode]
        modes.clear()


def test_a_function_without_gradients_is_judged_too() -> None:
    """x lies in one place while the branch runs: right, as long as no block is inside another."""
    place: list[Any] = []

    def residual(x: Any, branch: Any, *, shortcut: Any = None, activation: Any = None) -> Any:
        skip = x if shortcut is None else shortcut(x)
        place[:] = [skip]
        through = branch(x)
        y = place[0] + through
        return y if activation is None else activation(y)

    report = run(function("residual", residual), requirements={"CM-C12", "RS-F1", "RS-F2"})
    assert verdicts(report) == {"RS-F1": "pass", "RS-F2": "pass", "CM-C12": "fail"}


def test_a_function_that_takes_one_call_at_a_time_is_told() -> None:
    """It raises where a call begins while another is under way; the case that is shown has the part."""
    made, under_way = VARIANT["rs-plain"].build(), []

    def residual(*arrays: Any, **settings: Any) -> Any:
        if under_way:
            raise RuntimeError("a call is under way")
        under_way.append(True)
        try:
            return made.call(*arrays, **settings)
        finally:
            under_way.clear()

    report = run(function("residual", residual), requirements={"CM-C12"})
    (failed,) = report.failures()
    assert failed.reason == "branch is the operator itself, and it raised RuntimeError: a call is under way"
    case = build(Description("residual", 4, TWO, recipe="tanh_linear"), "float32")
    subject = Subject(target := function("residual", residual), target.bindings[0], "float32")
    (shown,) = part_is_the_operator(subject, case)
    assert shown.case.parts["branch"].kind == "itself"


def test_the_inner_gamma_is_less_one_too() -> None:
    """A target that takes gamma - 1 gets it in the inner call."""
    made = VARIANT["pr-two-pass"].build()

    def pre_norm(x: Any, sublayer: Any, gamma: Any, beta: Any, *, eps: float) -> Any:
        return made.call(x, sublayer, None if gamma is None else gamma + 1, beta, eps=eps)

    def vjp(x: Any, sublayer: Any, gamma: Any, beta: Any, g: Any, *, eps: float) -> Any:
        return made.vjp(x, sublayer, None if gamma is None else gamma + 1, beta, g, eps=eps)

    target = function("pre_norm", pre_norm, vjp=vjp)
    about = {"requirements": {"CM-C12"}, "conventions": {"gain": "one-plus-gamma"}}
    assert verdicts(run(target, **about)) == {"CM-C12": "pass"}
    (binding,) = target.bindings
    plain = dataclasses.replace(target, bindings=(dataclasses.replace(binding, call=made.call),))
    assert verdicts(run(plain, **about)) == {"CM-C12": "fail"}
