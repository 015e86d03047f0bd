"""Composed operators in PyTorch: layers and compositions conform, and odd ways to treat parts are distinguished."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from normspec import Report, Verdict, check
from normspec.adapters.binding import Binding
from normspec.adapters.target import Target
from normspec.adapters.targets import resolve
from normspec.spec.operators import COMPOSED

from ..runs import DTYPES, result, run, verdicts


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    """The quick report on each composed operator, in all four dtypes."""
    return {operator: run(resolve("torch", op=operator), dtypes=DTYPES) for operator in COMPOSED}


@pytest.mark.parametrize("operator", COMPOSED)
def test_torch_conforms(reports, operator):
    """No MUST is violated and nothing is left unjudged."""
    report = reports[operator]
    assert report.failures() == ()
    assert report.errors() == ()
    assert (report.conforms, report.exit_status) == (True, 0)


@pytest.mark.parametrize("operator", COMPOSED)
def test_every_binding_is_judged_in_every_dtype(reports, operator):
    """Each binding has passes in float16, bfloat16, float32 and float64."""
    judged = {(r.binding, r.dtype) for r in reports[operator].results if r.verdict is Verdict.PASS}
    names = {binding.name for binding in resolve("torch", op=operator).bindings}
    assert judged == {(name, dtype) for name in names for dtype in DTYPES}


@pytest.mark.parametrize("operator", COMPOSED)
def test_what_is_lacking_has_its_reason(reports, operator):
    """Unsupported are only layers with their own sublayers, lerp's carry, and an einsum of two dtypes, in places."""
    lacking = {
        (r.binding, r.requirement): r.reason for r in reports[operator].results if r.verdict is Verdict.UNSUPPORTED
    }
    for (name, requirement), reason in lacking.items():
        of_a_layer = "has its own sublayers" in reason
        of_lerp = reason == "torch.lerp(x, H, t) takes no carry" and name == "torch.lerp(x, H, t)"
        of_einsum = requirement.startswith("CM-D") and "einsum" in name and "expected scalar type Float" in reason
        assert of_a_layer or of_lerp or of_einsum


AT_THE_SEAMS = ("CM-C2", "CM-C10", "{}-F1", "{}-F3", "{}-F6", "{}-G1", "{}-G2", "{}-G3", "{}-G4")


@pytest.mark.parametrize(("operator", "page", "first"), [("pre_norm", "PR", True), ("post_norm", "PO", False)])
def test_an_encoder_layer_is_judged_at_its_seams(reports, operator, page, first):
    """TransformerEncoderLayer passes the formula, eps, the sublayer's argument, and every gradient."""
    name = f"torch.nn.TransformerEncoderLayer(norm_first={first})"
    judged = {r.requirement for r in reports[operator].results if r.binding == name and r.cases}
    assert judged == {requirement.format(page) for requirement in AT_THE_SEAMS}


WRONG = {"y": "F1", "dx": "G1", "dgamma": "G2", "dbeta": "G3", "g_returned": "G4"}


@pytest.mark.parametrize(("operator", "page"), [("pre_norm", "PR"), ("post_norm", "PO")])
@pytest.mark.parametrize("recorded", WRONG)
def test_a_wrong_layer_fails_at_its_seams(operator, page, recorded):
    """A layer whose output or gradient has a relative error of 2^-12 violates the requirement about it."""
    target = _disturbed(operator, recorded)
    report = run(target, requirements={f"{page}-{WRONG[recorded]}"})
    assert set(verdicts(report).values()) == {"fail"}


@pytest.mark.parametrize("operator", ["pre_norm", "post_norm"])
def test_a_sublayer_that_is_handed_something_else_shows(operator):
    """A layer that passes its sublayer values other than the formula's violates CM-C2."""
    assert set(verdicts(run(_disturbed(operator, "received"), requirements={"CM-C2"})).values()) == {"fail"}


def _disturbed(operator: str, recorded: str) -> Target:
    """The encoder layer, one of its recordings off by 2^-12 of itself."""
    target = resolve("torch", op=operator)
    (layer,) = (b for b in target.bindings if "EncoderLayer" in b.name)

    def seams(*tensors, **settings):
        blocks = layer.seams(*tensors, **settings)
        return [{**block, recorded: block[recorded] * (1 + 2.0**-12)} for block in blocks]

    return dataclasses.replace(target, bindings=(dataclasses.replace(layer, seams=seams),))


def _residual(call) -> Target:
    """A function as a residual connection."""
    target = resolve("torch", op="residual")
    return dataclasses.replace(target, bindings=(Binding("residual", "own", call),))


@pytest.mark.parametrize(("reentrant", "violated"), [(False, set()), (True, {"CM-T3"})])
def test_a_branch_may_be_recomputed_in_the_backward_pass(reentrant, violated):
    """Gradient checkpointing calls the branch once more; the reentrant one loses the leaves where x is not tracked."""

    def residual(x, branch, *, shortcut=None, activation=None):
        y = (x if shortcut is None else shortcut(x)) + checkpoint(branch, x, use_reentrant=reentrant)
        return y if activation is None else activation(y)

    report = run(_residual(residual))
    assert {r.requirement for r in report.failures()} == violated
    assert report.errors() == ()


def test_a_branch_that_a_worker_recomputes_is_judged(tmp_path):
    """The calls that checkpointing makes for the gradients, and stops early, do not belong to the forward pass."""
    file = tmp_path / "checkpointed.py"
    file.write_text(
        "from torch.utils.checkpoint import checkpoint\n\n\n"
        "def residual(x, branch):\n"
        "    return x + checkpoint(branch, x, use_reentrant=False)\n"
    )
    report = check(f"{file}:residual", dtypes=["float32"], profile="quick", only=["CM-C1", "CM-C2", "CM-C3"])
    assert {r.requirement: r.verdict for r in report.results} == dict.fromkeys(
        ("CM-C1", "CM-C2", "CM-C3"), Verdict.PASS
    )


class _Closed(torch.autograd.Function):
    """x + f(x), differentiated by x only: it does not see what f closes over."""

    @staticmethod
    def forward(ctx, x, f):
        ctx.save_for_backward(x)
        ctx.f = f
        return x + f(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            moved = x.detach().requires_grad_()
            y = ctx.f(moved)
            (pulled,) = torch.autograd.grad(y, moved, g, allow_unused=True) if y.requires_grad else (None,)
        return g if pulled is None else g + pulled, None


def test_what_cannot_differentiate_a_closure_is_unsupported_there():
    """A function whose gradients reach none of the leaves is judged on dx, and lacks the rest."""

    def residual(x, branch, *, shortcut=None, activation=None):
        if shortcut is not None or activation is not None:
            raise NotImplementedError("no shortcut, no activation")
        return _Closed.apply(x, branch)

    report = run(_residual(residual))
    assert report.failures() == ()
    assert result(report, "RS-G1").verdict is Verdict.PASS
    assert result(report, "RS-G2").verdict is Verdict.UNSUPPORTED
    assert result(report, "RS-G2").reason == "no gradient reaches what the parts close over"
    assert "it does not take shortcut" in result(report, "RS-F2").reason
    assert result(report, "RS-F2").verdict is Verdict.UNSUPPORTED


def test_leaves_that_lack_their_gradient_in_some_cases_fail():
    """A function that gives it elsewhere does not lack the feature: it lost a term."""

    def residual(x, branch, *, shortcut=None, activation=None):
        term, carried = branch(x), x if shortcut is None else shortcut(x)
        y = carried + term if term.any() else carried + 0 * carried
        return y if activation is None else activation(y)

    report = run(_residual(residual), requirements={"CM-T3", "RS-G2"})
    found = result(report, "CM-T3")
    assert found.verdict is Verdict.FAIL
    assert found.counterexample is not None and found.counterexample.note == "no gradient reaches branch.w"
    assert result(report, "RS-G2").verdict is Verdict.ERROR
    assert "declines" not in str(report)


def test_a_detached_branch_fails():
    """If a branch's result is detached, it has no gradient, and dx lacks its term."""

    def residual(x, branch, *, shortcut=None, activation=None):
        y = (x if shortcut is None else shortcut(x)) + branch(x).detach()
        return y if activation is None else activation(y)

    report = run(_residual(residual), requirements={"RS-G1", "RS-G6"})
    assert set(verdicts(report).values()) == {"fail"}


def test_a_layer_judged_at_its_seams_declines_nothing():
    """A layer with sublayers of its own takes no part, and is judged on all of its cases all the same."""
    target = resolve("torch", op="pre_norm")
    layer = next(binding for binding in target.bindings if binding.seams is not None)
    report = run(dataclasses.replace(target, bindings=(layer,)), requirements={"PR-F1", "PR-G1"})
    assert set(verdicts(report).values()) == {"pass"}
    assert report.share == 1
