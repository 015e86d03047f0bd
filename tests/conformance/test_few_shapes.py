"""A function that compiles each new shape gets few shapes, but meets every purpose of its cases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from normspec.adapters.numpy.operators import IMPLEMENTATIONS
from normspec.conformance.cases.case import build
from normspec.conformance.cases.deck import deck
from normspec.conformance.cases.description import Description
from normspec.conformance.cases.few_shapes import in_few_shapes
from normspec.conformance.cases.shapes import shape_of
from normspec.conformance.engine.engine import Run
from normspec.conformance.faults import registered as faults
from normspec.conformance.requests.implementation_targets import implementation_target
from normspec.conformance.requests.plan import Plan
from normspec.conformance.requests.profiles import profile_of
from normspec.spec.operators import OPERATORS

#: The number of shapes of x that a slow function gets at `quick`, in each dtype. batch_norm's inference has one more: a
#: single sample of x with positions.
MOST = {"layer_norm": 12, "batch_norm": 13, "rms_norm": 12, "group_norm": 12, "instance_norm": 11}


@pytest.mark.parametrize(("operator", "dtype"), [*((one, "float32") for one in MOST), ("layer_norm", "bfloat16")])
def test_quick_has_few_shapes(operator, dtype):
    """All calls of a slow function have only this many shapes of x, including those of derived cases."""
    seen = set()

    def noted(function):
        def call(x, *rest, **settings):
            seen.add(x.shape)
            return function(x, *rest, **settings)

        return call

    target = implementation_target("a function", operator, IMPLEMENTATIONS[operator]().implementation())
    (binding,) = target.bindings
    derivatives = {name: noted(function) for name, function in binding.derivatives.items()}
    target = replace(target, bindings=(replace(binding, call=noted(binding.call), derivatives=derivatives),))
    plan = Plan((target,), (dtype,), "cpu", {}, profile_of("quick"), 0, slow=True, explain=False)
    report = Run(plan).report()
    assert report.conforms
    assert len(seen) <= MOST[operator], sorted(seen)


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_case_stays_what_it_is_for(operator):
    """On one of the few shapes a case has the requirements, kinds of groups, eps and parameters that it had."""
    for one in deck(operator, "quick", 0):
        few = in_few_shapes(one)
        if few is None:
            assert one.large or one.fast_only or "CM-S1" in one.requirements
            continue
        assert set(few.groups) == set(one.groups) or len(few.groups) < len(one.groups)
        kept = ("requirements", "eps", "gamma", "beta", "cotangent", "training", "recipe", "logits", "mixed", "only")
        assert [getattr(few, name) for name in kept] == [getattr(one, name) for name in kept]
        assert (few.channel_axis < 0) is (one.channel_axis < 0)  # an axis counted from the end is a purpose too
        assert in_few_shapes(few) == few


@pytest.mark.parametrize(
    ("operator", "most"),
    [("layer_norm", 7), ("rms_norm", 7), ("batch_norm", 6), ("group_norm", 5), ("instance_norm", 5)],
)
def test_the_cases_of_every_profile_have_the_same_few_shapes(operator, most):
    """One for nearly every number of axes; groups of one value take another only where they must."""
    cases = [one for profile in ("quick", "standard") for one in deck(operator, profile, 0)]
    small = [one for one in cases if not (one.large or "CM-S1" in one.requirements or one.fast_only)]
    assert len({shape_of(in_few_shapes(one)) for one in small}) == most


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_cases_of_every_profile_can_be_made(operator):
    """On the few shapes too, a case has as many values as its shape holds."""
    for one in deck(operator, "thorough", 0):
        few = in_few_shapes(one)
        if few is not None:
            assert build(few, "float32").x.shape == shape_of(few)
            assert in_few_shapes(few) == few


@pytest.mark.parametrize("operator", MOST)
def test_the_middle_group_stands_in_an_odd_place(operator):
    """Of a matrix: the first and the middle group are looked at, and of two groups that share a slot one must be."""
    few = in_few_shapes(Description(operator, 6, (("normal", 0), ("normal", 1))))
    assert few.count_of_groups // 2 % 2 == 1


#: Faults that do not show on the few cases of the requirement which forbids them: other requirements are violated.
SHOWN_BY_OTHERS = (
    "eps-floor", "first-step-replaces", "one-group-as-instance", "tail-in-next-row", "double-backward-last-axis",
    "double-backward-last-rows", "eps-missing-of-four-axes", "eps-tenfold-of-channels-last",
    "frozen-beta-without-gamma", "gamma-transposed", "gradient-lost-once-in-three", "jvp-last-axis",
    "result-clipped-at-65504", "running-statistics-kept-where-gamma-is-frozen",
    "statistics-of-large-calls-kept-by-identity", "whole-vectors", "x-overwritten-in-its-order",
)  # fmt: skip
#: Faults that begin at sizes which `standard` has and `quick` has not, slow or not.
BEYOND_QUICK = ("count-in-sixteen-bits", "groups-beyond-65535", "values-beyond-65535", "dx-between-256-and-512")
#: Faults that begin at a size: of a slow function no sizes are swept.
OF_SIZES = (
    "beta-needs-gamma-beyond-512", "beta-needs-gamma-in-the-middle", "beta-needs-gamma-of-many-groups",
    "eps-floor-from-1024", "eps-missing-beyond-512", "eps-on-std-in-the-middle", "frozen-input-tail", "jvp-of-64",
    "last-vector-dropped", "one-pass-beyond-300", "parts-merged-without-means", "sample-and-channel-in-one-index",
    "strides-ignored-in-the-middle", "tail-of-fourteen-masked", "tail-of-three-masked", "width-4096-misread",
    "x-overwritten-in-the-middle",
)  # fmt: skip
#: Faults that need a shape, a layout or a mode that the few cases lack; docs/checking.md says how many these are.
OF_OTHER_CASES = (
    "beta-needs-gamma-in-inference-mode", "channel-axis-modulo-four", "double-backward-detached-of-three-axes",
    "gamma-of-the-group-channels-last", "inference-of-new-layer", "jvp-gamma-beside-beta",
    "lone-gamma-reversed-in-three-axes", "negative-channel-axis-misread", "normalised-left", "one-group-as-rows",
    "one-pass-in-inference-mode", "one-value-left", "parameters-along-equal-last-axis",
    "running-mean-overwritten-at-momentum-one", "single-steps-joined", "small-cotangents-skipped",
    "small-momentum-ignored", "strides-ignored-without-gamma", "tail-dropped-for-layout", "two-axes-one-sample",
    "uniform-gamma-abs", "x-centred-in-place-of-one-value", "xhat-from-y",
    "one-pass-of-views", "double-backward-detached-without-gamma",
)  # fmt: skip


@pytest.mark.campaign
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("operator", MOST)
def test_no_other_fault_is_lost(operator):
    """On few shapes each fault is killed, by the requirement that forbids it unless said above."""
    libraries, dtype = {}, "float32"
    missed = {*BEYOND_QUICK, *OF_SIZES, *OF_OTHER_CASES}

    def killed(fault, requirements=None):
        plan = Plan(
            (implementation_target(fault.name, operator, fault.build()),), (dtype,), "cpu", {}, profile_of("quick"), 0,
            slow=True, explain=False, requirements=requirements,
        )  # fmt: skip
        return any(one.verdict.is_violation for one in Run(plan, libraries=libraries).report().results)

    passed = [
        fault
        for fault in faults()
        if fault.operator == operator and dtype in fault.dtypes and not killed(fault, frozenset({fault.requirement}))
    ]
    named = {fault.name.partition("-")[2] for fault in passed}
    assert named <= {*SHOWN_BY_OTHERS, *missed}
    assert {fault.name.partition("-")[2] for fault in passed if not killed(fault)} <= missed
