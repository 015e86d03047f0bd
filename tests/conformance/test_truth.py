"""The two ways to the truth agree: plain float64 for narrower data, double-double for all."""

from __future__ import annotations

import gc
import weakref
from fractions import Fraction

import numpy as np
import pytest

from normspec.conformance.cases.case import Case, build
from normspec.conformance.cases.deck import deck
from normspec.conformance.cases.description import Description
from normspec.conformance.judging.composed_truth import ComposedTruth
from normspec.conformance.judging.library import Library
from normspec.conformance.judging.truth import Truth, arithmetic_of
from normspec.conformance.judging.truths import truth_of
from normspec.reference.accuracy import AccuracyClass
from normspec.reference.double_double import DD
from normspec.spec.parts import Part

from .runs import NORMALISATIONS, others_at_night

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

#: The float64 values are promised to err by this part of the envelope at most (reference/float64.py).
PART = 2.0**-29


class DoubleDouble(Truth):
    """The truth computed in double-double for any data."""

    @property
    def _narrower(self) -> bool:
        return False


def cases(operator: str, dtype: str) -> list[Case]:
    """The quick deck in one dtype; mixed cases with float32 parameters."""
    return [
        build(description, dtype, "float32" if description.mixed else None)
        for description in deck(operator, "quick", 0)
    ]


def directions(case: Case) -> tuple[np.ndarray | None, ...]:
    """Tangents, or second cotangents, for x, gamma and beta."""
    random = np.random.Generator(np.random.Philox(5))
    owners = [case.inputs[name] for name in ("x", "gamma", "beta")]
    return tuple(None if v is None else random.integers(-3, 5, v.shape).astype(v.dtype) for v in owners)


def close(fast: DD | None, slow: DD | None, envelope: np.ndarray) -> bool:
    """Whether two truths differ by no more than the promised part of the envelope, where there is one."""
    if fast is None or slow is None:
        return True
    with np.errstate(all="ignore"):
        off = np.abs((fast.hi - slow.hi) + (fast.lo - slow.lo))
        judged = np.isfinite(envelope) & np.isfinite(slow.hi)
        return bool(np.all((off <= PART * envelope) | ~judged))


@pytest.mark.parametrize("operator", NORMALISATIONS)
@pytest.mark.parametrize("dtype", others_at_night(["float16", "bfloat16", "float32"], ["float32"]))
def test_float64_is_exact_enough_for_narrower_data(operator: str, dtype: str) -> None:
    """Outputs, gradients, tangents, their tangents and second-order gradients agree on every case of the quick deck."""
    for case in cases(operator, dtype):
        fast, slow, arithmetic = Truth(case), DoubleDouble(case), arithmetic_of(case, AccuracyClass())
        envelope, second = fast.envelope(arithmetic), directions(case)
        with np.errstate(all="ignore"):
            for name, bound in fast.output_bounds(arithmetic).items():
                assert close(fast.outputs()[name], slow.outputs()[name], bound), name
            for name, bound in fast.gradient_bounds(arithmetic).items():
                assert close(fast.gradients()[name], slow.gradients()[name], bound), name
            named = dict(zip(("x", "gamma", "beta"), second, strict=True))
            assert close(fast.jvp(named), slow.jvp(named), envelope.jvp(*second))
            again = fast.jvp_jvp(named, named), slow.jvp_jvp(named, named)
            assert close(*again, envelope.jvp_jvp(*second[:2], *second[:2]))
            twice, exactly = fast.vjp_vjp(case.g, named), slow.vjp_vjp(case.g, named)
            for name, bound in envelope.vjp_vjp(case.g, *second).items():
                assert close(twice[name], exactly[name], bound), name


@pytest.mark.parametrize("operator", NORMALISATIONS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_they_agree_with_eps_in_float32(operator: str, dtype: str) -> None:
    """With eps rounded to float32 first, the two truths agree as well."""
    for case in cases(operator, dtype)[::3]:
        fast, slow = (made(case, eps_dtype="float32") for made in (Truth, DoubleDouble))
        bound = fast.output_bounds(arithmetic_of(case, AccuracyClass()))["y"]
        with np.errstate(all="ignore"):
            assert close(fast.outputs()["y"], slow.outputs()["y"], bound)


def test_eps_in_float32_is_another_truth() -> None:
    """In float64 an eps that float32 cannot hold moves y by far more than the envelope."""
    case = build(Description("layer_norm", 2, (("witness", 2),), eps=1e-5), "float64")
    given, rounded = Truth(case), Truth(case, eps_dtype="float32")
    assert given.settings["eps"] == 1e-5
    assert rounded.settings["eps"] == float(np.float32(1e-5)) != 1e-5
    bound = given.output_bounds(arithmetic_of(case, AccuracyClass()))["y"]
    assert np.all(np.abs(given.outputs()["y"].hi - rounded.outputs()["y"].hi) > 100 * bound)


def test_derivatives_in_float64_are_far_more_exact_than_float64() -> None:
    """(0, 6) less its mean is (-3, 3), its variance is 9, and with an eps of 16 it becomes (-3/5, 3/5)."""
    inputs = {"x": np.array([[0.0, 6.0]]), "gamma": np.ones(2), "beta": np.zeros(2)}
    g = np.array([[1.0, 0.0]])
    truth = Truth(Case("layer_norm", inputs, {"eps": 16.0, "axes": (-1,)}, g))
    # ((1, 0) - 1/2 - xhat (-3/10)) / 5, as a gradient and as a tangent.
    across = [Fraction(8, 125), Fraction(-8, 125)]
    found = truth.gradients() | {"tangent": truth.jvp({"x": g, "gamma": None, "beta": None})}
    wanted = {"dx": across, "dgamma": [Fraction(-3, 5), Fraction(0)], "tangent": across}
    for name, want in wanted.items():
        value = found[name]
        assert value is not None
        pairs = zip(value.hi.reshape(-1).tolist(), value.lo.reshape(-1).tolist(), want, strict=True)
        assert all(abs(Fraction(hi) + Fraction(lo) - exact) < Fraction(1, 2**95) for hi, lo, exact in pairs), name


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
@pytest.mark.parametrize("momentum", [0.25, 1.0, 0.0])
def test_bessel_averages_the_unbiased_variance(dtype: str, momentum: float) -> None:
    """Under Bessel's correction the new running variance is (1 - m) old + m v n / (n - 1), in exact arithmetic."""
    case = build(Description("batch_norm", 5, (("normal", 0), ("offset", 1)), momentum=momentum), dtype)
    old = case.inputs["running_var"]
    assert old is not None
    for made in (Truth, DoubleDouble):
        got = made(case, running_variance="bessel").outputs()["new_running_var"]
        for channel in range(2):
            values = [Fraction(float(v)) for v in case.x[:, channel]]
            mean = sum(values, Fraction(0)) / 5
            unbiased = sum(((v - mean) ** 2 for v in values), Fraction(0)) / 4
            m = Fraction(momentum)
            want = (1 - m) * Fraction(float(old[channel])) + m * unbiased
            found = Fraction(float(got.hi[channel])) + Fraction(float(got.lo[channel]))
            assert abs(found - want) <= want / 2**48


def test_bessel_is_exact_where_squares_need_care() -> None:
    """The variance of data around 1e151 is beyond the range of plain double-double products, and still exact."""
    case = build(Description("batch_norm", 3, (("normal", 0),), momentum=0.125), "float64")
    case = case.replace(x=np.array([[1e151], [-1e151], [2e151]]))
    biased, unbiased = (Truth(case, running_variance=v).outputs()["new_running_var"] for v in ("biased", "bessel"))
    assert unbiased.hi[0] / biased.hi[0] == pytest.approx(1.5, rel=1e-15)


@pytest.mark.parametrize("made", [Truth, DoubleDouble])
def test_bessel_leaves_a_single_value_and_inference_alone(made: type[Truth]) -> None:
    """One value a channel has no unbiased variance and counts as 0; in inference nothing is averaged."""
    single = build(Description("batch_norm", 1, (("normal", 0), ("normal", 1))), "float32")
    fixed = build(Description("batch_norm", 4, (("normal", 0), ("normal", 1)), training=False), "float32")
    for case in (single, fixed):
        with_bessel, without = (made(case, running_variance=v).outputs() for v in ("bessel", "biased"))
        np.testing.assert_array_equal(with_bessel["new_running_var"].hi, without["new_running_var"].hi)


def test_a_cotangent_of_ones_own_is_told_from_the_cases() -> None:
    """Gradients are kept by cotangent: another one gives other gradients, the first its own again."""
    case = build(Description("layer_norm", 4, (("normal", 0), ("normal", 1))), "float64")
    truth = Truth(case)
    own, doubled = truth.gradients()["dx"], truth.gradients(2 * case.g)["dx"]
    assert own is not None and doubled is not None
    np.testing.assert_array_equal(doubled.hi, 2 * own.hi)
    assert truth.gradients()["dx"] is own


def test_no_groups_have_a_truth() -> None:
    """Without any group there is an empty y, and gradients of zero for the parameters."""
    case = build(Description("layer_norm", 4, (("normal", 0), ("normal", 1))), "float32")
    truth = Truth(case.replace(x=case.x[:0], g=case.g[:0]))
    assert truth.outputs()["y"].hi.shape == (0, 4)
    for name in ("dgamma", "dbeta"):
        gradient = truth.gradients()[name]
        assert gradient is not None
        np.testing.assert_array_equal(gradient.hi, np.zeros(4))


def test_results_stay_when_intermediates_go() -> None:
    """What a bound was computed from is dropped, the bound itself is not computed twice."""
    case = build(Description("layer_norm", 4, (("normal", 0),)), "float32")
    truth, arithmetic = truth_of(case, None), arithmetic_of(case, AccuracyClass())
    bound, envelope = truth.bound("dx", arithmetic), truth.envelope(arithmetic)
    case.forget_intermediates()
    assert truth.bound("dx", arithmetic) is bound
    assert truth.envelope(arithmetic) is not envelope


def test_a_library_frees_its_cases_at_once() -> None:
    """A case and its truth refer to each other; forgetting them leaves nothing for the garbage collector."""
    library, description = Library("float32"), Description("layer_norm", 4, (("normal", 0),))
    case = library.case(description)
    _ = truth_of(case, None).outputs()
    freed = weakref.ref(case)
    del case
    gc.disable()
    try:
        library.forget()
        assert freed() is None
    finally:
        gc.enable()


def test_a_group_out_of_range_excuses_its_own_gradient_and_those_of_the_parameters() -> None:
    """A derivative that overflows may be multiplied by zero: the other groups of x have nothing to do with that."""
    x = np.array([[3e38, -3e38, 1], [1, 2, 4], [0, 0, 3]], np.float32)
    inputs = {"x": x, "gamma": np.ones(3, np.float32), "beta": np.zeros(3, np.float32)}
    case = Case("pre_norm", inputs, {"eps": 0.5}, np.ones_like(x), parts={"sublayer": Part("zero")})
    truth, arithmetic = ComposedTruth(case), arithmetic_of(case, AccuracyClass())
    assert np.isinf(truth.bound("dx", arithmetic)).all(axis=1).tolist() == [True, False, False]
    assert not np.isinf(truth.bound("dx", arithmetic)[1:]).any()
    assert np.isinf([truth.bound(name, arithmetic) for name in ("dgamma", "dbeta")]).all()
