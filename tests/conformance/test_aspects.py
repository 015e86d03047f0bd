"""The relations between calls that judge the aspects of the formula, and their bounds."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.conformance.cases.deck import deck
from normspec.conformance.checks.catalogue import checks_of
from normspec.conformance.engine.tally import Tally
from normspec.conformance.judging.library import Library
from normspec.conformance.judging.subject import Subject
from normspec.conformance.judging.verdicts import Verdict
from normspec.reference.double_double import DD

from .runs import FAULT, VARIANT, function, result, run, specimen

DTYPES = ("float16", "bfloat16", "float32", "float64")
OPERATORS = ("layer_norm", "batch_norm")


def aspects(operator: str):
    """The checks of F2 to F8."""
    prefix = "LN" if operator == "layer_norm" else "BN"
    wanted = {f"{prefix}-F{number}" for number in range(2, 9)}
    return [check for check in checks_of(operator) if check.requirement in wanted]


def judged(subject: Subject, operator: str, seed: int = 0) -> list[Tally]:
    """The tallies of the checks of F2 to F8 for a subject, on the small cases of the deck."""
    library, tallies = Library(subject.dtype), [Tally(check) for check in aspects(operator)]
    for description in deck(operator, "quick", seed):
        if "CM-S1" in description.requirements:
            continue
        case = library.case(description)
        for tally in tallies:
            if tally.check.when(case):
                tally.run(subject, case, description)
    return tallies


def to_the_edge(exact: DD, envelope: np.ndarray, dtype: np.dtype, seed: int) -> np.ndarray:
    """Numbers of a dtype near either end of the envelope around exact ones, and within it."""
    side = np.random.default_rng(seed).choice([-1.0, 1.0], envelope.shape)
    inside = np.where(np.isfinite(envelope), envelope, 0.0)
    steps = [(exact.hi + side * share * inside).astype(dtype) for share in (1.0, 0.98, 0.9, 0.5, 0.0)]
    near = steps[-1]
    for step in reversed(steps):
        near = np.where(np.abs((step.astype(np.float64) - exact.hi) - exact.lo) <= inside, step, near)
    return near.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", OPERATORS)
def test_what_lies_at_the_ends_of_its_envelope_is_not_accused(operator: str, dtype: str, monkeypatch):
    """Each y is as far from the exact one as a sound target's may be, to either side: every relation holds."""
    target = specimen(VARIANT["ln-two-pass" if operator == "layer_norm" else "bn-two-pass"])
    subject = Subject(target, target.bindings[0], dtype)
    count = 0

    def outputs(case, mode="training"):
        nonlocal count
        count += 1
        truth = subject.truth(case)
        y = to_the_edge(truth.outputs()["y"], subject.bound(case, "y")(False), case.x.dtype, count)
        return {"y": y}

    monkeypatch.setattr(Subject, "outputs", lambda self, case, mode="training": outputs(case, mode))
    for tally in judged(subject, operator):
        assert tally.verdict is Verdict.PASS, (tally.check.requirement, tally.violation, tally.error)


def test_a_target_without_a_call_of_none_is_judged_with_ones():
    """A function that raises where gamma is None is judged all the same, except by LN-F6."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        if gamma is None or beta is None:
            raise TypeError("gamma and beta are tensors")
        wide = x.astype(np.float64)
        centred = wide - wide.mean(axes, keepdims=True)
        y = centred / np.sqrt((centred * centred).mean(axes, keepdims=True) + eps) * gamma + beta
        return y.astype(x.dtype)

    target = function("layer_norm", layer_norm)
    found = {one.check.requirement: one for one in judged(Subject(target, target.bindings[0], "float32"), "layer_norm")}
    assert found.pop("LN-F6").verdict is Verdict.ERROR
    assert {one.verdict for one in found.values()} == {Verdict.PASS}


def test_a_relation_is_not_judged_where_another_has_to_hold_first():
    """With eps added to the deviation, nothing can be said about which eps it is."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        wide = x.astype(np.float64)
        y = (wide - wide.mean(axes, keepdims=True)) / (wide.std(axes, keepdims=True) + eps)
        y = y if gamma is None else y * gamma
        return (y if beta is None else y + beta).astype(x.dtype)

    target = function("layer_norm", layer_norm)
    for dtype in DTYPES:
        subject = Subject(target, target.bindings[0], dtype)
        found = {tally.check.requirement: tally.verdict for tally in judged(subject, "layer_norm")}
        assert found.pop("LN-F3") is Verdict.FAIL
        assert found.pop("LN-F4") is Verdict.NOT_EXERCISED
        assert set(found.values()) == {Verdict.PASS}


def test_a_report_says_what_keeps_a_relation_from_being_judged():
    """While eps is added to the deviation, it cannot be judged which eps it is; that is no violation."""
    report = run(specimen(FAULT["ln-eps-on-std"]), requirements=("LN-F3", "LN-F4"))
    assert result(report, "LN-F3").verdict is Verdict.FAIL
    awaiting = result(report, "LN-F4")
    assert (awaiting.verdict, awaiting.reason) == (
        Verdict.NOT_EXERCISED, "its cases violate LN-F3, which it rests on",
    )  # fmt: skip


def test_what_is_nan_was_not_seen_to_move() -> None:
    """Of a function whose y is NaN everywhere, LN-F7 says nothing, and RM-L11 that the mean square is wrong."""
    layer_norm = function("layer_norm", lambda x, *others, **settings: np.full_like(x, np.nan))
    rms_norm = function("rms_norm", lambda x, gamma, **settings: np.full_like(x, np.nan))
    assert result(run(layer_norm, requirements={"LN-F7"}), "LN-F7").verdict is Verdict.NOT_EXERCISED
    assert result(run(rms_norm, requirements={"RM-L11"}), "RM-L11").verdict is Verdict.FAIL


@pytest.mark.parametrize(("parts", "verdict"), [(1, Verdict.PASS), (2, Verdict.FAIL), (4, Verdict.FAIL)])
def test_a_group_that_is_normalised_in_parts_is_told(parts: int, verdict: Verdict) -> None:
    """LN-F7: where each half or quarter of a row is normalised apart, most of the row stays when one value moves."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        n = int(np.prod(x.shape[-len(axes) :]))
        wide = x.astype(np.float64).reshape(-1, *((parts, n // parts) if n % parts == 0 else (1, n)))
        y = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + eps)
        y = y.reshape(x.shape)
        y = y if gamma is None else y * gamma
        return (y if beta is None else y + beta).astype(x.dtype)

    assert result(run(function("layer_norm", layer_norm), requirements={"LN-F7"}), "LN-F7").verdict is verdict
