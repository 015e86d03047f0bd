"""Counterexamples are small: a planted fault ends on a short group of explicit numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from normspec import Result, Verdict
from normspec.adapters.numpy.operators.layer_norm import LayerNorm
from normspec.conformance.cases.case import Case
from normspec.conformance.cases.witnesses import WITNESSES
from normspec.conformance.checks.groups import group_count

from .runs import FAULT, function, others_at_night, result, run, specimen

#: Faults of every kind but sizes, and the dtype that each is planted in.
PLANTED = (
    ("ln-eps-on-std", "float32"),
    ("ln-eps-tenfold", "bfloat16"),
    ("ln-eps-float32", "float64"),
    ("ln-unbiased-variance", "float16"),
    ("bn-unbiased-variance", "float64"),
    ("ln-one-pass-variance", "float32"),
    ("ln-fix-gamma", "float32"),
    ("ln-dx-no-mean", "float32"),
    ("bn-dx-no-xhat", "float16"),
    ("ln-dgamma-x", "float32"),
    ("ln-double-backward-sign", "float32"),
    ("bn-jvp-detached", "float64"),
    ("ln-strides-ignored", "float32"),
    ("ln-cotangent-strides-ignored", "float32"),
    ("bn-running-var-bessel", "float32"),
    ("bn-momentum-convention", "float32"),
    ("bn-inference-beta-ignored", "float32"),
    ("ln-nan-to-zero", "float32"),
    ("bn-nan-skipped", "float32"),
    ("ln-x-overwritten", "float32"),
    ("ln-output-buffer-shared", "float32"),
    ("ln-pair-shares-rstd", "float32"),
    ("bn-channel-axis-found-by-size", "float32"),
)


def shrunk(name: str, dtype: str) -> tuple[Result, Case]:
    """The result on a fault in a dtype, and the case of its counterexample."""
    fault = FAULT[name]
    report = run(specimen(fault), dtypes=(dtype,), requirements={fault.requirement}, explain=True)
    found = result(report, fault.requirement, dtype)
    assert found.verdict is Verdict.FAIL
    assert found.counterexample is not None
    inputs = dict(found.counterexample.inputs)
    g = inputs.pop("g")
    assert g is not None
    return found, Case(fault.operator, inputs, found.counterexample.settings, g)


#: One of each: a value, a gradient, a layout, and a call that changes x.
NOW = ("ln-eps-on-std", "bn-dx-no-xhat", "ln-strides-ignored", "ln-x-overwritten")


@pytest.mark.parametrize(("name", "dtype"), others_at_night(PLANTED, [one for one in PLANTED if one[0] in NOW]))
def test_a_planted_fault_shrinks_to_a_few_explicit_numbers(name: str, dtype: str) -> None:
    """The group has at most four elements, each of the witness list, an integer, or the NaN that was put in."""
    _, case = shrunk(name, dtype)
    assert 1 <= case.layout.size <= 4
    assert 1 <= group_count(case) <= 3
    numbers = {number for witness in WITNESSES for number in witness.values(case.settings["eps"])}
    known = np.array(sorted(numbers)).astype(case.x.dtype).astype(np.float64)
    x = case.x.astype(np.float64)
    assert all(number in known or number == np.rint(number) for number in x[np.isfinite(x)])


def test_a_fault_of_several_axes_shrinks_too() -> None:
    """A fault that shows only where two axes are normalised together ends on a group of two by two or so."""
    _, case = shrunk("ln-over-last-axis-only", "float32")
    assert len(case.settings["axes"]) > 1
    assert case.layout.size <= 4


@pytest.mark.parametrize(
    ("name", "size", "count"),
    [
        ("ln-dgamma-tail-groups", 2, 65),  # dgamma is 0 for groups of one value, which says less
        *others_at_night([("ln-first-1024-values", 1025, 1), ("bn-first-1024-values", 1025, 1)], ()),
    ],
)
def test_a_fault_of_size_keeps_the_size_it_needs(name: str, size: int, count: int) -> None:
    """A fault that no small case shows is still reported, reduced in everything except the size it needs."""
    _, case = shrunk(name, "float32")
    assert (case.layout.size, group_count(case)) == (size, count)


def test_a_counterexample_tells_what_went_wrong_where() -> None:
    """The element named is outside its envelope, and the three numbers say by how much."""
    found, case = shrunk("ln-rms-norm", "float32")
    shown = found.counterexample
    assert shown is not None and shown.output == "y"
    assert shown.expected is not None and shown.got is not None and shown.envelope is not None
    assert abs(shown.got - shown.expected) > shown.envelope > 0
    assert np.zeros(case.x.shape)[shown.index] == 0  # the index is one of the output's
    assert found.ratio is not None and found.ratio > 1


def test_a_run_that_is_not_to_explain_keeps_the_case_it_found() -> None:
    """Without explaining, the violation is reported as it was met and no declaration is sought."""
    fault = FAULT["ln-eps-on-std"]
    report = run(specimen(fault), requirements={fault.requirement})
    found = result(report, fault.requirement)
    assert found.verdict is Verdict.FAIL and found.counterexample is not None
    x = found.counterexample.inputs["x"]
    assert x is not None and x.size > 4
    assert "passes_under" not in report.subjects[0]


def test_bits_that_rarely_differ_are_not_searched_for_in_thousands_of_calls() -> None:
    """Few cases are tried for what only repetitions show: each that does not show it costs hundreds of calls."""
    sound, calls = LayerNorm().implementation(), itertools.count(1)

    def call(x, *arguments, **settings):
        y = sound.call(x, *arguments, **settings)
        if next(calls) % 97 == 0 and y.size > 39:  # as additions in another order may change the last bit
            y[0] = np.nextafter(y[0], np.inf)
        return y

    def made(*, explain: bool) -> int:
        before = next(calls)
        report = run(function("layer_norm", call), dtypes=("float32",), requirements={"CM-P3"}, explain=explain)
        assert result(report, "CM-P3").verdict is Verdict.ADVICE
        return next(calls) - before

    found, explained = made(explain=False), made(explain=True)
    assert explained - found < 16 * 130
