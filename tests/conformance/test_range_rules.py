"""Near the ends of a format no sound function is accused, and values far from them are judged (R1 to R6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from normspec.adapters.targets import resolve
from normspec.conformance.cases.case import Case, build
from normspec.conformance.cases.description import Description
from normspec.conformance.checks.catalogue import checks_of
from normspec.conformance.checks.composed_values import extreme_gradients
from normspec.conformance.checks.relations import equal
from normspec.conformance.judging.subject import Subject
from normspec.conformance.requests.implementation_targets import implementation_target
from normspec.conformance.sound import variants
from normspec.conformance.sound.composed.working import Native
from normspec.conformance.sound.conventions import OnePass
from normspec.conformance.sound.registry import combined
from normspec.reference.formats import FORMATS

from .runs import VARIANT, specimen

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

#: Ways to compute that form different numbers on the way: x and mu apart, n h, all in one factor and one term.
WAYS = (variants.TwoPass, variants.FoldedAffine, variants.FusedBackward, variants.ScaledOnce, variants.Welford)


def case_of(x: Any, eps: float, dtype: str, *, gamma: Any = None, g: Any = None, operator: str = "layer_norm") -> Case:
    """One group of layer_norm or one channel of batch_norm."""
    stored = FORMATS[dtype].dtype
    x = np.asarray(x, np.float64).reshape(1, -1).astype(stored)
    size = x.shape[1] if operator == "layer_norm" else 1
    gain = np.ones(size) if gamma is None else np.broadcast_to(gamma, (size,))
    inputs: dict[str, Any] = {"x": x, "gamma": gain.astype(stored), "beta": np.zeros(size, stored)}
    settings: dict[str, Any] = {"eps": eps, "axes": (-1,)}
    if operator == "batch_norm":
        x = x.T.copy()
        inputs |= {"x": x, "running_mean": np.zeros(1, stored), "running_var": np.ones(1, stored)}
        settings = {"eps": eps, "momentum": 0.5, "training": True, "channel_axis": 1}
    cotangent = np.ones(x.shape) if g is None else np.asarray(g, np.float64).reshape(x.shape)
    return Case(operator, inputs, settings, cotangent.astype(stored))


def subject_of(
    way: type, dtype: str, operator: str = "layer_norm", conventions: dict[str, str] | None = None
) -> Subject:
    """A sound way to compute in a dtype; float16 in its own arithmetic."""
    native = {"storage": "native"} if dtype == "float16" else {}
    made = combined(type("Native", (Native, way), {}) if native else way, operator)
    target = implementation_target("way", operator, made().implementation())
    return Subject(target, target.bindings[0], dtype, conventions={**native, **(conventions or {})})


SUMS = [("layer_norm", "LN-G4"), ("layer_norm", "LN-G5"), ("batch_norm", "BN-G5"), ("batch_norm", "BN-G6")]


@pytest.mark.parametrize(("operator", "requirement"), SUMS)
def test_a_sum_of_gradients_that_are_rightly_infinite_is_not_judged(operator: str, requirement: str) -> None:
    """dx = (76,875, -76,875) is beyond float16: its infinities are right, and their sum says nothing."""
    (check,) = (one for one in checks_of(operator) if one.requirement == requirement)
    target = resolve("numpy", op=operator)
    subject = Subject(target, target.bindings[0], "float16")
    case = case_of([0, 0], 1e-6, "float16", gamma=51.25, g=[0, -3], operator=operator)
    assert np.isinf(subject.observe(case).gradients["dx"]).all()
    with np.errstate(all="ignore"):  # as a run does
        assert [finding.judged for finding in check.body(subject, case)] == [False]
    smaller = case.replace(g=np.array(case.g / 8, case.g.dtype))
    assert [(finding.judged, finding.violated) for finding in check.body(subject, smaller)] == [(True, False)]


@pytest.mark.parametrize(
    ("x", "eps", "dtype"),
    [(-(2.0**62.7), 1e-12, "float32"), (2.0**61, 1e-12, "float32"), (2.0**509, 1e-12, "float64")],
)
def test_a_single_large_value_is_not_judged_where_folded_gradients_overflow(x: float, eps: float, dtype: str) -> None:
    """The rounding that is left of sum(h x) - sum(h) mu, times r^2 x, overflows: dx is not judged there, and y is."""
    subject, case = subject_of(variants.TwoPass, dtype), case_of([x], eps, dtype, gamma=0.75, g=[1.5])
    assert not np.isfinite(subject.bound(case, "dx")(False)).any()
    assert np.isfinite(subject.bound(case, "y")(False)).all()
    without = subject_of(variants.TwoPass, dtype, conventions={"affine": "centred"})
    assert np.isfinite(without.bound(case, "dx")(False)).all()


@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
def test_an_eps_that_the_format_does_not_hold_is_not_judged(operator: str) -> None:
    """R1 counts eps: 1e39 is infinity in float32, so that a sound y is 0 where the exact one is 3e-20."""
    subject = subject_of(variants.TwoPass, "float32", operator)
    beyond, held = (case_of([-1.0, 1.0], eps, "float32", operator=operator) for eps in (1e39, 1e30))
    with np.errstate(all="ignore"):
        assert not subject.outputs(beyond)["y"].any()
    assert abs(subject.truth(beyond).outputs()["y"].hi).max() == pytest.approx(3.16e-20, rel=1e-3)
    assert not np.isfinite(subject.bound(beyond, "y")(False)).any()
    assert np.isfinite(subject.bound(held, "y")(False)).all()


def test_a_cube_that_an_algorithm_may_reach_is_not_judged() -> None:
    """R2 counts the r that an algorithm may have: its variance may be 0, where r^3 is 33 and r'^3 is 32,768."""

    class OnePassBackward(OnePass, variants.FusedBackward):
        """The variance in one pass, and the gradient from the sums of h and of h x."""

    conventions = {"variance_algorithm": "one-pass"}
    subject = subject_of(OnePassBackward, "float16", conventions=conventions)
    x = 24 + 0.3125 * np.resize([1.0, -1.0], 17)  # squares of float16 keep no trace of the 0.3125
    case = case_of(x, 2.0**-10, "float16", g=np.arange(17) - 8.0)
    rows = subject.truth(case).envelope(subject.arithmetic(case)).statistics
    r = 1 / np.sqrt(rows.v + 2.0**-10)
    assert 2**10 * FORMATS["float16"].smallest_normal <= r**3 <= 2**-6 * FORMATS["float16"].largest  # R2 with r for r+
    assert r**3 == pytest.approx(33, rel=0.1)
    with np.errstate(all="ignore"):
        assert abs(subject.outputs(case)["y"]).max() > 0.3 * 32  # its own r is that of the variance 0
        assert not subject.judge_gradient(case, "dx", subject.pull(case)["dx"]).judged
    assert not np.isfinite(subject.bound(case, "dx")(False)).any()


def group(random: np.random.Generator, dtype: str, most: float) -> np.ndarray:
    """Values of any size up to the root of the largest number: of one number, of two, or of any."""
    n = int(random.integers(1, 6))
    size = 2.0 ** random.uniform(-20, np.log2(FORMATS[dtype].largest) / 2 * most)
    kinds = (np.ones(n), np.where(np.arange(n) == 0, 1.0, 0.5), random.standard_normal(n), np.arange(n) + 1e4)
    return size * kinds[random.integers(4)]


def judged_without_violation(subject: Subject, case: Case) -> int:
    """The number of results that are judged on a case; none may be violated."""
    seen = subject.observe(case)
    found = [subject.judge_output(case, "y", seen.outputs["y"])]
    found += [subject.judge_gradient(case, name, value) for name, value in seen.gradients.items()]
    assert not any(one.violated for one in found), [one for one in found if one.violated]
    return sum(one.judged for one in found)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
def test_whatever_is_judged_near_the_ends_is_within_the_envelope(operator: str, dtype: str) -> None:
    """Every sound way to compute, in the dtype itself, is within the envelope wherever that is finite."""
    random, judged = np.random.default_rng(11), 0
    subjects = [subject_of(way, dtype, operator) for way in WAYS]
    with np.errstate(all="ignore"):
        for _ in range(150):
            x = group(random, dtype, 1.0)
            eps = float(random.choice([1e-12, 1e-5, 2.0**-100, 1.0]))
            gamma = 2.0 ** random.integers(-10, 30 if dtype != "float16" else 8)
            case = case_of(x, eps, dtype, gamma=gamma, g=random.standard_normal(x.size), operator=operator)
            for subject in subjects:
                judged += judged_without_violation(subject, case)
    assert judged > 300


@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
def test_what_large_gains_and_cotangents_make_of_small_groups_is_within_the_envelope(operator: str) -> None:
    """gamma r overflows where gamma r (x - mu) does not, and a sum of cotangents where it cancels."""
    random, judged = np.random.default_rng(13), 0
    subjects = [subject_of(way, "float32", operator) for way in WAYS]

    def gain_first(case: Case) -> tuple[np.ndarray, np.ndarray]:
        """y and dx of a group with one gamma, as a = gamma r times the rest."""
        x, g, eps = case.x.reshape(-1), case.g.reshape(-1), np.float32(case.settings["eps"])
        d = x - x.mean()
        r = 1 / np.sqrt((d * d).mean() + eps)
        a, xhat = case.inputs["gamma"][0] * r, d * r
        dx = a * (g - g.mean() - xhat * (g * xhat).mean())
        return (a * d).reshape(case.x.shape), dx.reshape(case.x.shape)

    with np.errstate(all="ignore"):
        for _ in range(150):
            x = 2.0 ** random.uniform(-90, 0) * random.standard_normal(random.integers(1, 6))
            eps = float(random.choice([2.0**-140, 2.0**-60, 2.0**-20]))
            gamma, g = 2.0 ** random.uniform(0, 127), 2.0 ** random.uniform(-60, 127) * random.standard_normal(x.size)
            case = case_of(x, eps, "float32", gamma=gamma, g=np.clip(g, -3e38, 3e38), operator=operator)
            for subject in subjects:
                judged += judged_without_violation(subject, case)
            y, dx = gain_first(case)
            assert not subjects[0].judge_output(case, "y", y).violated
            assert not subjects[0].judge_gradient(case, "dx", dx).violated
    assert judged > 300


def test_a_gain_that_overflows_before_a_small_term_is_not_judged() -> None:
    """y of 2^90 is (x - mu) a with a = gamma r = 2^159, or gamma times xhat."""
    subject = subject_of(variants.TwoPass, "float32")
    case = case_of(2.0**-70 * np.array([1.0, -2, 3, 2]), 2.0**-140, "float32", gamma=2.0**90)
    assert not np.isfinite(subject.bound(case, "y")(False)).any()
    assert np.isfinite(subject.bound(case.replace(gamma=case.inputs["gamma"] / 2**60), "y")(False)).all()


def test_a_sum_of_cotangents_that_overflows_before_it_cancels_is_not_judged() -> None:
    """dbeta is 0, and the sum of the first two cotangents infinite (R6)."""
    case = case_of([1.0, 2, 3, 4], 1e-3, "float32", g=[3e38, 3e38, -3e38, -3e38], operator="batch_norm")
    bound = subject_of(variants.TwoPass, "float32", "batch_norm").bound(case, "dbeta")(False)
    assert not np.isfinite(bound).any()


def test_a_bound_of_subnormal_values_does_not_itself_underflow() -> None:
    """A8: 3 u R of one value in float64 is below 2^-1074, and r+ times it is not."""
    subject = subject_of(variants.FoldedAffine, "float64")
    for scale in np.linspace(0.1, 0.99, 20):
        case = case_of([scale * 2.0**-1022], 1e-12, "float64", g=[2.0**336])
        found = subject.judge_gradient(case, "dgamma", subject.observe(case).gradients["dgamma"])
        assert found.judged and not found.violated


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_ordinary_data_is_judged(dtype: str) -> None:
    """Groups of a size of 2^-10 to 2^10 and the eps in use leave nothing out."""
    random = np.random.default_rng(12)
    target = implementation_target("way", "layer_norm", combined(variants.TwoPass, "layer_norm")().implementation())
    subject = Subject(target, target.bindings[0], dtype)
    for k in range(-10, 11):
        for eps in (1e-12, 1e-6, 1e-5, 1e-3):
            x = (2.0**k) * (random.standard_normal(16) + 1.0)
            case = case_of(x, eps, dtype, gamma=random.standard_normal(16), g=random.standard_normal(16))
            for name in ("y", "dx", "dgamma", "dbeta"):
                assert np.isfinite(subject.bound(case, name)(False)).all(), (k, eps, name)


@pytest.mark.parametrize(("x", "judged"), [(2.0**61, False), (3.0, True)])
def test_bits_are_promised_only_where_values_are(x: float, judged: bool) -> None:
    """A NaN instead of 0 violates a law of bits where dx is judged, and nowhere else."""
    subject, case = subject_of(variants.TwoPass, "float32"), case_of([x], 1e-12, "float32", gamma=0.75, g=[1.5])
    zero = np.zeros(case.x.shape, np.float32)
    found = equal(subject, case, "dx", zero * np.nan, zero, "two calls", calls=(), bound=subject.bound(case, "dx"))
    assert (found.violated, found.judged) == (judged, judged)


@pytest.mark.parametrize(("x", "judged"), [(14360.0, False), (3.0, True)])
def test_a_product_that_overflows_before_a_shut_gate_is_not_judged(x: float, judged: bool) -> None:
    """In float16 g x = 5 * 14,360 is infinite, and infinity times c (1 - c) = 0 is NaN in sound code (HW-G6)."""
    drawn = build(Description("highway", 2, (("normal", 0),), recipe="leaf_carry", logits="closed"), "float16")
    case = drawn.replace(x=np.full_like(drawn.x, x), g=np.full_like(drawn.g, 5))
    target = specimen(VARIANT["hw-native"])
    subject = Subject(target, target.bindings[0], "float16", conventions={"storage": "native"})
    with np.errstate(all="ignore"):
        carry = subject.observe(case).gradients["dcarry.z"]
        found = [*extreme_gradients(subject, case)]
    assert np.isnan(carry).all() != judged
    assert [one.judged for one in found if one.output == "dcarry.z"] == [judged]
    assert not any(one.violated for one in found)
