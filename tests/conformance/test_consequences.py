"""What follows from a cause: failures that have no other reason, but never those with a mistake of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from normspec import Report
from normspec.adapters.numpy.operators import IMPLEMENTATIONS as BASES
from normspec.conformance.diagnosis.search import Search
from normspec.conformance.faults import FAULTS
from normspec.conformance.requests.implementation_targets import implementation_target
from normspec.conformance.selftest.selftest import judge_fault
from normspec.spec.operators import OPERATORS

from .runs import VARIANT, function, others_at_night, run, specimen

#: A LayerNorm with one mistake that the library lacks; it computes y from d = x - mean, the variance, gamma and beta.
Change = Callable[..., np.ndarray]

#: Enough to see what follows: the formula and its aspects, its laws, gradients with theirs, and two of all operators.
SOME = (
    "LN-F1", "LN-F2", "LN-F3", "LN-F4", "LN-F5", "LN-F6", "LN-F7", "LN-L1", "LN-L3", "LN-L11", "LN-G1", "LN-G2",
    "LN-G4", "LN-G5", "CM-P2", "CM-N8",
)  # fmt: skip


def layer_norm(change: Change) -> Callable[..., np.ndarray]:
    """The function with the mistake."""

    def made(x, gamma, beta, *, eps, axes):
        wide = x.astype(np.result_type(x, np.float32))
        d = wide - wide.mean(axes, keepdims=True)
        variance = np.square(d).mean(axes, keepdims=True)
        n = int(np.prod([x.shape[axis] for axis in axes]))
        ones = np.ones((), wide.dtype) if gamma is None else gamma
        zeros = np.zeros((), wide.dtype) if beta is None else beta
        return change(d, variance, ones, zeros, wide.dtype.type(eps), n).astype(x.dtype)

    return made


def _third_of_eps(d, variance, gamma, beta, eps, n):
    return d / np.sqrt(variance + eps / 3) * gamma + beta


def _cube_of_eps_outside(d, variance, gamma, beta, eps, n):
    return d / (np.sqrt(variance) + eps**3) * gamma + beta


def _padded(d, variance, gamma, beta, eps, n):
    return d / np.sqrt(variance * d.dtype.type(n / (n + 3)) + eps) * gamma + beta


def _beta_halved(d, variance, gamma, beta, eps, n):
    return d / np.sqrt(variance + eps) * gamma + beta / 2


def _third_of_eps_and_beta_halved(d, variance, gamma, beta, eps, n):
    return _third_of_eps(d, variance, gamma, beta / 2, eps, n)


def _a_tenth_larger(d, variance, gamma, beta, eps, n):
    return d / np.sqrt(variance + eps) * (gamma * d.dtype.type(1.1)) + beta


def judged(change: Change, requirements: Iterable[str] = SOME, **derivatives: Any) -> Report:
    """The report on it."""
    target = function("layer_norm", layer_norm(change), **derivatives)
    return run(target, requirements=requirements, explain=True, forward_only=not derivatives)


def standing(report: Report) -> set[str]:
    """The requirements that stand as causes."""
    return {one.requirement for one in report.failures() if not one.follows_from}


def vjp(factor: Callable[[np.ndarray], float | np.ndarray]) -> Callable[..., Any]:
    """The right gradients, dx and dgamma times a factor of dx's making."""
    right = VARIANT["ln-two-pass"].build().vjp

    def made(*arguments, **settings):
        dx, dgamma, dbeta = right(*arguments, **settings)
        by = factor(dx)
        return (dx * by).astype(dx.dtype), None if dgamma is None else (dgamma * 1.1).astype(dgamma.dtype), dbeta

    return made


@pytest.mark.parametrize(
    ("change", "causes"),
    [
        (_padded, {"LN-F2"}),
        (_third_of_eps_and_beta_halved, {"LN-F4", "LN-F5"}),
        *others_at_night(
            [(_third_of_eps, {"LN-F4"}), (_cube_of_eps_outside, {"LN-F3"}), (_beta_halved, {"LN-F5"})], ()
        ),
    ],
    ids=lambda one: one.__name__.strip("_") if callable(one) else "",
)
def test_an_aspect_stands_and_what_holds_without_it_follows(change: Change, causes: set[str]) -> None:
    """The whole formula and its laws follow from the aspects that are wrong, of a mistake that has no name."""
    report = judged(change)
    assert not any(cause.faults for cause in report.causes)
    assert standing(report) == causes
    assert {"LN-F1"} < {one.requirement for one in report.failures() if set(one.follows_from) <= causes}


def test_gradients_of_what_is_computed_follow_from_it() -> None:
    """If y is a tenth too large, dx and dgamma that are too are its derivatives: they have no mistake of their own."""
    report = judged(_a_tenth_larger, ("LN-F1", "LN-L11", "LN-G1", "LN-G2", "LN-G5"), vjp=vjp(lambda dx: 1.1))
    assert {one.requirement: one.follows_from for one in report.failures()} == {
        "LN-F1": (), **dict.fromkeys(("LN-L11", "LN-G1", "LN-G2", "LN-G5"), ("LN-F1",)),
    }  # fmt: skip


def test_a_backward_pass_with_a_mistake_of_its_own_stands() -> None:
    """If y is wrong and dx is not its derivative, both stand; dgamma, which is its derivative, follows from y."""

    def clipped(dx: np.ndarray) -> np.ndarray:
        return np.where(dx > 0, 1.1, 0.5)

    report = judged(_a_tenth_larger, ("LN-F1", "LN-L11", "LN-G1", "LN-G2", "LN-G4"), vjp=vjp(clipped))
    found = {one.requirement: one.follows_from for one in report.failures()}
    assert found == {
        "LN-F1": (), "LN-L11": ("LN-F1",), "LN-G1": (), "LN-G2": ("LN-F1",), "LN-G4": ("LN-G1",),
    }  # fmt: skip


def test_two_mistakes_with_names_both_stand() -> None:
    """A fault of the variance and one of the backward pass: each stands, with its own name."""
    fault = {one.name: one for one in FAULTS}
    both = type("Both", (fault["ln-statistics-detached"].step, fault["ln-eps-on-std"].step), {})
    report = run(implementation_target("it", "layer_norm", both().implementation()), requirements=SOME, explain=True)
    assert {cause.faults for cause in report.causes} == {("ln-statistics-detached",), ("ln-eps-on-std",)}
    assert standing(report) == {"LN-F3", "LN-G1"}


def test_what_fails_alike_for_another_reason_stands() -> None:
    """A mistake that each call makes again is not a consequence of a wrong formula."""
    calls = 0

    def now_and_then(d, variance, gamma, beta, eps, n):
        nonlocal calls
        calls += 1
        return _third_of_eps(d, variance, gamma, beta, eps, n) + (0.5 if calls % 7 == 0 else 0.0)

    assert "CM-P2" in standing(judged(now_and_then, ("LN-F1", "LN-F4", "CM-P2")))


@pytest.mark.nightly
def test_what_is_remembered_follows_from_no_formula() -> None:
    """A function that looks up results by a few of the values: its memory stands, whatever else that breaks."""
    (fault,) = (one for one in FAULTS if one.name == "bn-results-kept-by-first-values")
    report = run(specimen(fault), requirements=("CM-P2", "BN-F4", "BN-F7", "BN-I1", "BN-S4"), explain=True)
    assert "CM-P2" in standing(report)


def test_what_looks_at_few_values_is_not_said_to_remember() -> None:
    """A wrong formula that gives two calls the same result keeps nothing of the first: it follows from the formula."""

    def signs(d, variance, gamma, beta, eps, n):
        return np.sign(d) * gamma + beta

    assert standing(judged(signs, ("LN-F1", "CM-P2"))) == {"LN-F1"}


@pytest.mark.nightly
def test_gradients_of_parameters_are_compared_in_their_own_shape() -> None:
    """A law that must hold bit by bit, and is broken by a dgamma that is wrong already, follows from that."""
    sound = BASES["group_norm"]().implementation()

    def without_eps(x, gamma, beta, g, **settings):
        dx, dgamma, dbeta = sound.vjp(x, gamma, beta, g, **settings)
        if gamma is None:
            return dx, dgamma, dbeta
        return dx, sound.vjp(x, gamma, beta, g, **{**settings, "eps": 0.0})[1], dbeta

    report = run(function("group_norm", sound.call, vjp=without_eps), requirements={"GN-G2", "GN-G8"}, explain=True)
    assert standing(report) == {"GN-G2"} and not report.notes


def test_a_gradient_that_other_cases_lack_is_compared_where_it_is() -> None:
    """A backward pass that pulls each branch three times: one sentence explains all, with leaves or without."""
    sound = BASES["mhc"]().implementation()

    def three_times(x, branches, logits, g, **settings):
        for _ in range(2):
            sound.vjp(x, branches, logits, g, **settings)
        return sound.vjp(x, branches, logits, g, **settings)

    report = run(function("mhc", sound.call, vjp=three_times), explain=True)
    (cause,) = report.causes
    assert standing(report) <= {*cause.explains} and not report.notes
    assert "are 3 times the right value; everything else is right" in cause.sentence


def test_the_report_tells_what_follows_in_one_line() -> None:
    """The text names them next to the standing violation, which leads the cause; the JSON lists each that follows."""
    report = judged(_padded, ("LN-F1", "LN-F2", "LN-L11"))
    text = str(report)
    assert "\n  breaks   LN-F2, LN-F1, LN-L11\n" in text
    assert "\n✗ LN-F2" in text
    assert "\n✗ LN-F1" not in text
    found = {one["requirement"]: one["follows_from"] for one in json.loads(report.to_json())["results"]}
    assert found == {"LN-F1": ["LN-F2"], "LN-F2": [], "LN-L11": ["LN-F2"]}
    assert report.counts()["fail"] == 3


#: An aspect of a function, the requirements that are about it, and a fault of it.
ASPECTS = {
    "layer_norm": {
        "eps": (("LN-F3", "LN-F4"), "ln-eps-on-std"),
        "divisor": (("LN-F2",), "ln-unbiased-variance"),
        "axes": (("LN-F7",), "ln-over-last-axis-only"),
        "affine": (("LN-F5",), "ln-affine-order"),
        "None": (("LN-F6",), "ln-affine-needs-both"),
    },
    "batch_norm": {
        "eps": (("BN-F3", "BN-F4"), "bn-eps-tenfold"),
        "divisor": (("BN-F2",), "bn-unbiased-variance"),
        "axes": (("BN-F7",), "bn-over-batch-axis-only"),
        "affine": (("BN-F5",), "bn-affine-order"),
        "None": (("BN-F6",), "bn-affine-needs-both"),
        "momentum": (("BN-S1",), "bn-momentum-convention"),
        "running variance": (("BN-S2",), "bn-running-var-with-eps"),
    },
}


#: Each aspect that can be wrong, with the mistake named and, as if the library lacked it, without a name.
EACH_ASPECT = [(op, aspect, named) for named in (True, False) for op, ones in ASPECTS.items() for aspect in ones]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("operator", "aspect", "named"),
    others_at_night(EACH_ASPECT, [one for one in EACH_ASPECT if one[0] == "layer_norm" or one[2]]),
)
def test_no_aspect_is_accused_because_another_is_wrong(operator: str, aspect: str, named: bool, monkeypatch) -> None:
    """With one aspect wrong, the requirements of each other aspect hold or follow; none of them stands."""
    if not named:
        monkeypatch.setattr(Search, "alone", None)
        monkeypatch.setattr(Search, "together", None)
    own, name = ASPECTS[operator][aspect]
    (fault,) = (one for one in FAULTS if one.name == name)
    asked = {id for ids, _ in ASPECTS[operator].values() for id in ids}
    report = run(specimen(fault), requirements={*asked, f"{OPERATORS[operator].prefix}-F1"}, explain=True)
    assert standing(report) == {fault.requirement}
    assert fault.requirement in own


@pytest.mark.campaign
@pytest.mark.parametrize("operator", OPERATORS)
def test_few_requirements_stand_for_one_mistake(operator: str) -> None:
    """For a fault of the library at most 1.5 on average, and the one that must kill it is among them."""
    rows = [
        judge_fault(fault.name, ("float32",), "quick", 0, table=True)
        for fault in FAULTS
        if fault.operator == operator and "float32" in fault.dtypes
    ]
    standing = {row.fault: row.named[0].standing for row in rows}
    assert [row.fault for row in rows if row.requirement not in standing[row.fault]] == []
    assert np.mean([len(found) for found in standing.values()]) <= 1.5


def test_a_mistake_in_gradients_is_headed_by_a_requirement_about_gradients() -> None:
    """dx of inference that lacks a term also fails where a variance is negative (BN-I5): BN-G4 says what is wrong."""
    made = VARIANT["bn-two-pass"].build()

    def vjp(x, gamma, beta, running_mean, running_var, g, **settings):
        found = made.vjp(x, gamma, beta, running_mean, running_var, g, **settings)
        if settings["training"]:
            return found
        over = tuple(axis for axis in range(x.ndim) if axis != settings["channel_axis"] % x.ndim)
        dx, *others = found
        return (dx - dx.mean(over, keepdims=True) if dx.size else dx, *others)

    asked = ("BN-F1", "BN-G1", "BN-G4", "BN-I1", "BN-I5")
    report = run(function("batch_norm", made.call, vjp=vjp), requirements=asked, explain=True)
    assert {one.requirement for one in report.failures()} == {"BN-G4", "BN-I5"}
    assert [cause.requirement for cause in report.causes] == ["BN-G4"]


@pytest.mark.nightly
def test_training_that_reads_the_running_statistics_is_the_wrong_formula() -> None:
    """One sample is taken for inference: BN-F1 says what is wrong; that no value enters its statistics follows."""
    made = VARIANT["bn-two-pass"].build()

    def of_mode(x, settings):
        alone = x.shape[0] == 1 and x.ndim > 2 and settings["channel_axis"] % x.ndim
        return {**settings, "training": settings["training"] and not alone}

    def call(x, *arguments, **settings):
        return made.call(x, *arguments, **of_mode(x, settings))

    def vjp(x, *arguments, **settings):
        return made.vjp(x, *arguments, **of_mode(x, settings))

    report = run(function("batch_norm", call, vjp=vjp), explain=True)
    found = {one.requirement: one.follows_from for one in report.failures()}
    assert found["BN-F1"] == () and found["BN-F7"] == ("BN-F1",)
    (cause,) = report.causes
    assert cause.requirement == "BN-F1"
    assert "there it is what inference gives, with the running statistics" in cause.sentence


@pytest.mark.nightly
def test_another_group_stands_although_a_formula_is_violated() -> None:
    """Statistics over the batch axis alone read no running statistics: BN-F7 says what is wrong."""
    report = run(specimen({one.name: one for one in FAULTS}["bn-over-batch-axis-only"]), explain=True)
    assert "BN-F7" in standing(report) and "BN-F1" not in standing(report)
