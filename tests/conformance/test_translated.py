"""The arguments that a declared function gets for a case's arrays, and how its results are read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from normspec import Verdict
from normspec.conformance.cases.description import Description
from normspec.conformance.judging.library import Library
from normspec.conformance.judging.translated import (
    TranslatedEvaluation,
    TranslatedRecorder,
    Translation,
    between,
    one_plus,
)
from normspec.spec.errors import BadOutput, Unsupported

from .runs import VARIANT, function, result, run

DTYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gains_are_moved_to_where_their_difference_from_one_is_exact(dtype) -> None:
    """Afterwards every gain has an exact gamma - 1, most are unchanged, and none is negative zero."""
    random = np.random.Generator(np.random.Philox(3))
    drawn = np.concatenate([random.normal(size=500), 64 * random.normal(size=500), [0.0, -0.0, 1.0, 2.0**-20]])
    gamma = drawn.astype(dtype)
    snapped = one_plus(gamma)
    assert snapped.dtype == gamma.dtype
    less = Translation(gain=True).inputs({"gamma": snapped})["gamma"]
    assert less is not None and less.dtype == gamma.dtype
    back = Translation(gain=True).original_inputs({"gamma": less})["gamma"]
    assert back.tobytes() == snapped.tobytes()
    if dtype in (np.float32, np.float64):
        np.testing.assert_allclose(snapped.astype(float), gamma.astype(float), atol=2.0**-23)


def test_gains_between_those_of_a_dtype_are_one_plus_a_64th() -> None:
    """In float16, 2^-6 (1 + 2^-10) can be handed over where 1 more than that cannot; 1 + 2^-6 can be held itself."""
    found = between(np.array([1 + 2.0**-10], np.float16))
    assert found is not None and found.dtype == np.float32
    assert found.tolist() == [1 + 2.0**-6 + 2.0**-16]
    assert between(np.array([1.0], np.float16)) is None


def test_what_gradients_are_computed_from_is_kept_where_asked() -> None:
    """As without a translation, which does not keep it by default."""
    kept: list[bool] = []
    evaluation = SimpleNamespace(recorder=None, pull=lambda g, layout, *, keep: kept.append(keep))
    translated = TranslatedEvaluation(evaluation, Translation())
    translated.pull(np.ones(2, np.float32))
    translated.pull(np.ones(2, np.float32), keep=True)
    assert kept == [False, True]


def test_an_inexact_difference_is_unsupported() -> None:
    """A gain whose difference from 1 has to be rounded is not passed."""
    with pytest.raises(Unsupported, match="not exact in float32"):
        Translation(gain=True).inputs({"x": np.ones(1), "gamma": np.array([2.0**-30], np.float32)})


def test_a_gain_less_one_leaves_x_alone() -> None:
    """x is moved off float32 numbers only where that is asked for."""
    x = np.array([1.0, 3.7], np.float32)
    handed = Translation(gain=True).inputs({"x": x, "gamma": np.array([3.0, 0.5], np.float32)})
    assert [None if one is None else one.tolist() for one in handed.values()] == [x.tolist(), [2.0, -0.5]]


def test_a_library_holds_such_gains_and_promoted_cotangents() -> None:
    """The cases of a subject have gains that can be passed, and a cotangent with the dtype of y."""
    described = Description("layer_norm", 5, (("normal", 0), ("normal", 1)), gamma="small", mixed=True)
    gamma = Library("bfloat16", one_plus=True).case(described).inputs["gamma"]
    assert gamma is not None
    np.testing.assert_array_equal(one_plus(gamma), gamma)
    plain, promoted = Library("bfloat16").case(described), Library("bfloat16", promoted=True).case(described)
    assert (plain.promoted, promoted.promoted) == (False, True)
    assert promoted.g.dtype == np.float32
    np.testing.assert_array_equal(promoted.g, plain.g.astype(np.float32))


def test_what_is_handed_over_in_float64_rounds_to_the_case() -> None:
    """x is next to float32 numbers that it rounds to, including zeros, infinities and subnormal numbers."""
    x = np.array([1.0, -1.0, 3.7, 2.0**-149, 1e-40, np.finfo(np.float32).max, np.inf, 0.0, np.nan], np.float32)
    handed = Translation(wide=True, beside=True).inputs({"x": x})["x"]
    assert handed is not None and handed.dtype == np.float64
    np.testing.assert_array_equal(handed.astype(np.float32), x)
    assert (handed[:6] != x[:6]).all()
    # 1 is even in its last digit and 1 + 2^-23 odd; half of half a unit roundoff is 2^-26.
    beside = Translation(wide=True, beside=True).inputs({"x": np.array([1, 1 + 2.0**-23], np.float32)})["x"]
    assert beside is not None
    np.testing.assert_array_equal(beside, [1 - 2.0**-26, (1 + 2.0**-23) * (1 + 2.0**-26)])


def test_float32_in_place_of_float64_is_a_wrong_dtype() -> None:
    """A function that computes float64 in float32 still has to return float64."""
    with pytest.raises(BadOutput, match="y has dtype float32 in place of float64"):
        Translation(wide=True).results({"y": np.ones(2, np.float32)})

    made = VARIANT["ln-float32-for-float64"].build()
    target = function("layer_norm", lambda *a, **s: made.call(*a, **s).astype(np.float32))
    report = run(target, dtypes=("float64",), requirements={"CM-T2"}, conventions={"float64": "float32"})
    assert result(report, "CM-T2", "float64").verdict is Verdict.FAIL


def test_float32_is_held_to_float32() -> None:
    """A function that rounds float64 data to bfloat16 is no float32 function."""
    made = VARIANT["ln-float32-for-float64"].build()

    def coarse(x, *arguments, **settings):
        return made.call(x.astype(ml_dtypes.bfloat16).astype(x.dtype), *arguments, **settings)

    report = run(
        function("layer_norm", coarse), dtypes=("float64",), requirements={"LN-F1"}, conventions={"float64": "float32"}
    )
    assert result(report, "LN-F1", "float64").verdict is Verdict.FAIL


def test_a_declaration_about_float64_is_about_float64_alone() -> None:
    """In float32 and in 16 bits nothing changes, and nothing deviates."""
    made = VARIANT["ln-float32-for-float64"].build()
    report = run(
        function("layer_norm", made.call),
        dtypes=("float16", "float32"),
        requirements={"LN-F1"},
        conventions={"float64": "float32"},
    )
    assert {found.verdict for found in report.results} == {Verdict.PASS}


def test_y_that_is_not_promoted_as_declared_is_a_violation() -> None:
    """A function that declares promotion and returns x's dtype has declared something untrue."""
    made = VARIANT["ln-two-pass" if "ln-two-pass" in VARIANT else "ln-plain"].build()
    target = function("layer_norm", made.call, vjp=made.vjp)
    report = run(target, dtypes=("float16",), requirements={"CM-D2"}, conventions={"mixed_dtypes": "promoted"})
    assert result(report, "CM-D2", "float16").verdict is Verdict.FAIL


def test_a_promoted_y_is_held_to_float32() -> None:
    """y in float32 that has only the digits of 16 bits is no promoted result."""
    made = VARIANT["ln-promoted"].build()

    def coarse(x, *arguments, **settings):
        y = made.call(x, *arguments, **settings)
        return y.astype(x.dtype).astype(y.dtype)

    target = function("layer_norm", coarse, vjp=made.vjp)
    report = run(target, dtypes=("float16",), requirements={"CM-D1"}, conventions={"mixed_dtypes": "promoted"})
    assert result(report, "CM-D1", "float16").verdict is Verdict.FAIL


def test_a_recorded_call_is_found_again() -> None:
    """A part's arguments and results are now read from the original of the translated call."""

    class Call:
        def __init__(self, role: str, handed: list[Any], returned: Any) -> None:
            self.role, self.handed, self.returned = role, handed, returned

    calls = [Call(role, [np.float64(k)], np.float64(-k)) for k, role in enumerate(("first", "second"), start=1)]
    recorder = SimpleNamespace(
        calls=calls, handed_now=lambda call: call.handed, returned_now=lambda call: call.returned
    )
    found = TranslatedRecorder(recorder, lambda value: 10 * value)
    assert [found.handed_now(call) for call in found.calls] == [[10.0], [20.0]]
    assert [found.returned_now(call) for call in found.calls] == [-10.0, -20.0]
