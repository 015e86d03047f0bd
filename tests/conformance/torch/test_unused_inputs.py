"""A gradient is missing because y does not depend on an input, or because a part is not called: that is the cause."""

from __future__ import annotations

import pytest
import torch

from normspec import Report
from normspec.adapters.targets import resolve

from ..runs import run


def _mhc(used=lambda branches, logits: range(len(branches)), *, called=None, fused=lambda branches: True):
    """An mhc that adds only the branches of some numbers, calls only some, and skips fuse for some."""

    def mhc(x, branches, logits, *, fuse=None):
        if fuse is not None:
            y = [branch(x) for branch in branches]
            return x + (fuse(y) if fused(branches) else sum(y))
        p = torch.softmax(logits, 0)
        some = range(len(branches)) if called is None else called(branches, logits)
        y = {i: branches[i](x) for i in some}
        for one in y.values():
            if one.shape != x.shape:
                raise ValueError("a branch changes the shape")
        return x + sum(p[i] * y[i] for i in used(branches, logits) if i in y)

    return mhc


def _whole_vectors(branches, logits):
    return range(len(branches) if len(branches) < 4 else len(branches) // 4 * 4)


def _first_sixteen(branches, logits):
    return range(min(len(branches), 16))


def _switched_on(branches, logits):
    return [i for i in range(len(branches)) if logits[i] != -torch.inf]


def _report_on(function, **more) -> Report:
    return run(resolve(function, op="mhc", framework="torch"), explain=True, **more)


def _standing(report: Report) -> set[str]:
    return {one.requirement for one in report.failures() if not one.follows_from}


@pytest.mark.parametrize(
    ("function", "leading", "words"),
    [
        (_mhc(_whole_vectors), "MH-F1", "some of the leaves where y does not depend on them"),
        (_mhc(fused=lambda branches: len(branches) > 1), "MH-F5", "fuse.a where y does not depend on it"),
    ],
    ids=["branches", "fuse"],
)
def test_a_gradient_of_what_never_enters_y_follows_from_the_wrong_y(function, leading, words):
    """A branch, or fuse, is called or not and has no part in y: the wrong y stands, and the gradient follows."""
    report = _report_on(function)
    failing = {one.requirement: one.follows_from for one in report.failures()}
    assert failing["CM-T3"] == (leading,) and failing[leading] == ()
    (cause,) = report.causes
    assert cause.requirement == leading and "CM-T3" in cause.explains
    assert cause.sentence.endswith(f"; no gradient reaches {words}.")
    assert "the right formula" not in cause.sentence  # where a gradient is missing, none was compared


def test_the_number_of_branches_from_which_y_is_wrong_is_told():
    """More than sixteen branches have no weight: the sentence is about y, and not about what is missing."""
    (cause,) = _report_on(_mhc(_first_sixteen)).causes
    assert cause.sentence.startswith("y is right up to 16 branches, wrong from 17 on")


def test_a_branch_that_is_not_called_is_the_cause_of_what_is_missing():
    """Branches that are switched off are left out, with y right: nothing else is a mistake of its own."""
    report = _report_on(_mhc(called=_switched_on))
    assert {one.requirement for one in report.failures()} > {"CM-C1", "CM-T3"}
    assert _standing(report) == {"CM-C1"}
    (cause,) = report.causes
    assert cause.requirement == "CM-C1" and cause.sentence.startswith("A part is not called, so that no gradient")


def test_a_gradient_that_is_cut_off_stands_beside_a_wrong_y():
    """y depends on the last branch, which is detached, and is wrong for another reason: nothing follows."""

    def mhc(x, branches, logits, *, fuse=None):
        y = [branch(x) for branch in branches]
        if fuse is not None:
            return x + fuse(y)
        p = torch.softmax(logits * 1.01, 0)
        return x + sum(p[i] * (one if i == 0 else one.detach()) for i, one in enumerate(y))

    report = _report_on(mhc, requirements={"CM-T3", "MH-F1", "MH-F2"})
    assert {"CM-T3", "MH-F1"} <= _standing(report)


def test_a_parameter_that_never_enters_y_is_the_wrong_formula():
    """A layer_norm with gamma leaves beta out, and where it is zero y is right: what is told is what y lacks."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
        y = (x - mean) / torch.sqrt(variance + eps)
        y = y if gamma is None else y * gamma
        return y if beta is None or gamma is not None else y - 0 * y.detach()

    report = run(resolve(layer_norm, op="layer_norm", framework="torch"), explain=True)
    assert "CM-T3" not in _standing(report) and any("LN-F5" in cause.explains for cause in report.causes)


def test_a_gradient_that_is_missing_in_a_later_call_of_a_check_is_judged():
    """The first branches are skipped where their logits are -inf: CM-T3 sees plain calls, MH-G6 those that it makes."""

    def mhc(x, branches, logits, *, fuse=None):
        y = [branch(x) for branch in branches]
        if fuse is not None:
            return x + fuse(y)
        p = torch.softmax(logits, 0)
        closed = len(y) > 2 and bool(torch.isinf(logits[:-1]).all())
        return x + sum(p[i] * y[i] for i in range(len(y) - 1 if closed else 0, len(y)))

    report = _report_on(mhc, requirements={"CM-T3", "MH-F3", "MH-G6"})
    assert {one.requirement: one.verdict.value for one in report.results} == {
        "CM-T3": "pass", "MH-F3": "pass", "MH-G6": "fail",
    }  # fmt: skip
    (failed,) = report.failures()
    assert failed.reason.startswith("no gradient reaches branches.0.h") and not failed.follows_from
