"""The table of formats, and the arithmetic that tensors of given formats are judged in."""

from __future__ import annotations

from types import SimpleNamespace

import attrs
import ml_dtypes
import numpy as np
import pytest

from normspec.reference.accuracy import AccuracyClass, Arithmetic
from normspec.reference.envelope import envelope_of
from normspec.reference.envelope_range import Range
from normspec.reference.formats import FORMATS, format_of


@pytest.mark.parametrize("name", FORMATS)
def test_table_agrees_with_finfo(name):
    """Every number of a format is the one that ml_dtypes states for its dtype."""
    form = FORMATS[name]
    info = ml_dtypes.finfo(form.dtype)
    assert form.name == name == form.dtype.name
    assert form.unit_roundoff == 2.0 ** -(info.nmant + 1)
    assert form.smallest_normal == 2.0**info.minexp == float(info.smallest_normal)
    assert form.smallest_subnormal == 2.0 ** (info.minexp - info.nmant)
    assert form.largest == float(info.max)


@pytest.mark.parametrize("name", FORMATS)
def test_roundoff_is_where_rounding_starts(name):
    """1 + u rounds to 1 and anything above it does not; half the smallest subnormal rounds to 0."""
    form = FORMATS[name]
    if name != "float64":  # float64 cannot hold the values to be rounded
        one = np.array([1 + form.unit_roundoff, 1 + form.unit_roundoff * 1.001]).astype(form.dtype)
        assert one[0] == 1 and one[1] > 1
        assert np.float64(form.underflow(flushed=False)).astype(form.dtype) == 0
        assert form.underflow(flushed=False) == form.smallest_subnormal / 2
    assert form.underflow(flushed=True) == form.smallest_normal


def test_eta_of_float16_is_half_its_smallest_subnormal():
    """eta of float16 is 2^-25, not its smallest normal number 2^-14, unless subnormals are flushed."""
    assert Arithmetic.of("float16").eta_data == 2.0**-25
    assert Arithmetic.of("float16", None, AccuracyClass(flushed=frozenset(FORMATS))).eta_data == 2.0**-14


def test_formats_are_found_by_name_or_dtype():
    """A format is found by its name or NumPy dtype, and anything else is a KeyError."""
    assert format_of(ml_dtypes.bfloat16) is format_of("bfloat16") is FORMATS["bfloat16"]
    for unknown in (np.int32, np.complex64):
        with pytest.raises(KeyError):
            format_of(unknown)


@pytest.mark.parametrize("storage", ["H0", "H1", "H2", "native"])
@pytest.mark.parametrize("data", FORMATS)
def test_computation_is_in_float32_unless_native(data, storage):
    """16-bit data is computed on in float32, in its own format where native, and wider data in its own."""
    a = Arithmetic.of(data, None, AccuracyClass(storage=storage))
    own = not FORMATS[data].narrow or storage == "native"
    assert a.u == (FORMATS[data].unit_roundoff if own else 2.0**-24)
    assert a.u_data == a.u_parameter == FORMATS[data].unit_roundoff
    assert a.saves_statistics == (FORMATS[data].narrow and storage == "H2")


def test_mixed_formats():
    """bfloat16 data with float32 parameters: each result is rounded in its own format."""
    a = Arithmetic.of("bfloat16", "float32")
    assert (a.u, a.u_data, a.u_parameter) == (2.0**-24, 2.0**-8, 2.0**-24)
    assert a.largest_data == FORMATS["bfloat16"].largest
    assert a.narrow


def test_composed_arithmetic_rounds_every_operation():
    """Derivatives composed of operations compute in 16 bits, except for class H0 and wider data."""
    for storage in ("H1", "H2", "native"):
        composed = Arithmetic.of("float16", None, AccuracyClass(storage=storage)).composed
        assert (composed.u, composed.eta, composed.largest) == (2.0**-11, 2.0**-25, 65504.0)
    for a in (Arithmetic.of("float16"), Arithmetic.of("float32", None, AccuracyClass(storage="H2"))):
        assert a.composed == a


def in_range(x, eps, dtype, *, gradient=False, storage="H0"):
    """Which values of rows are judged."""
    arithmetic = Arithmetic.of(dtype, None, AccuracyClass(storage=storage))
    x = np.array(x).astype(dtype)
    return envelope_of("layer_norm", x, None, None, eps=eps, axes=(-1,), arithmetic=arithmetic).in_range(
        gradient=gradient
    )


def test_squares_that_may_overflow_are_not_judged():
    """R1: a row is judged up to n max(x^2) = largest/4, and the row next to it is judged too."""
    below, above = np.sqrt(FORMATS["float32"].largest / 16) * np.array([0.99, 1.01])
    assert in_range([[below] * 4, [above] * 4], 1e-5, np.float32).tolist() == [[True] * 4, [False] * 4]
    # The largest value counts however small it is: 20,000 / 4 in float16, of at most 16,376.
    assert in_range([[0.5] * 20000], 1e-3, np.float16, storage="native").all()


def test_cubes_at_either_limit_are_judged():
    """R2: r^3 = 1 lies at 2^10 times the smallest normal number, and at 2^-6 of the largest."""
    for smallest, largest, judged in ((2.0**-10, 64.0, True), (2.0**-9, 64.0, False), (2.0**-10, 63.0, False)):
        arithmetic = SimpleNamespace(smallest_normal=smallest, largest=largest)
        assert Range(SimpleNamespace(r_low=1.0, r_high=1.0, arithmetic=arithmetic)).r_cubed == judged


def test_cubes_that_underflow_are_not_judged_in_gradients():
    """R2: r^3 below 2^10 times the smallest normal number takes dx out of judgement, and y not."""
    rows = [[-(2.0**38), 2.0**38], [-(2.0**40), 2.0**40]]
    assert in_range(rows, 1e-5, np.float32).all()
    assert in_range(rows, 1e-5, np.float32, gradient=True)[:, 0].tolist() == [True, False]
    assert in_range(rows, 1e-5, np.float64, gradient=True).all()


@pytest.mark.parametrize(("storage", "judged"), [("H0", True), ("H1", True), ("H2", False), ("native", False)])
def test_a_root_that_cannot_be_stored_is_not_judged(storage, judged):
    """R3: r = 1e6 of a zero row is beyond float16, which only H2 and native store it in."""
    assert in_range([[0.0, 0.0]], 1e-12, np.float16, storage=storage).all() == judged
    assert in_range([[0.0, 0.0]], 1e-3, np.float16, storage=storage).all()


@pytest.mark.parametrize(("storage", "judged"), [("H0", True), ("H1", True), ("H2", True), ("native", False)])
def test_a_gain_that_overflows_is_not_judged(storage, judged):
    """R6: r = 1000 fits float16, 100 r does not; only native code forms it in that format."""
    x, gamma = np.zeros((2, 2), np.float16), np.array([1.0, 100.0], np.float16)
    for scale, wanted in ((gamma, judged), (gamma / 8, True)):
        arithmetic = Arithmetic.of(np.float16, np.float16, AccuracyClass(storage=storage))
        envelope = envelope_of("layer_norm", x, scale, None, eps=1e-6, axes=(-1,), arithmetic=arithmetic)
        assert envelope.in_range(y=True).all() == wanted
        assert envelope.in_range().all()  # the rule does not concern the statistics


def test_derivatives_that_may_overflow_are_not_judged():
    """R4: a jvp whose terms exceed a quarter of float32's range has an infinite envelope."""
    x = np.array([[-1.0, 1.0, 2.0, -2.0]], np.float32)
    envelope = envelope_of("layer_norm", x, None, None, eps=1e-5, axes=(-1,), arithmetic=Arithmetic.of(np.float32))
    assert np.isfinite(envelope.jvp(np.full(x.shape, 1e37), None, None)).all()
    assert np.isinf(envelope.jvp(np.full(x.shape, 1e38), None, None)).all()


def test_derivatives_whose_cubes_may_underflow_are_not_judged():
    """R2 in A17: where r is 2^-60, float32 has no r^3; batch_norm's constants in inference have no cube."""
    x = np.array([[-(2.0**60), 2.0**60]], np.float32)
    for scale, finite in ((1.0, False), (2.0**-40, True)):
        arithmetic = Arithmetic.of(np.float32)
        envelope = envelope_of("layer_norm", scale * x, None, None, eps=1e-5, axes=(-1,), arithmetic=arithmetic)
        assert np.isfinite(envelope.jvp(np.ones(x.shape), None, None)).all() == finite
    constants = {"eps": 1e-5, "training": False, "channel_axis": 1, "arithmetic": Arithmetic.of(np.float32)}
    statistics = np.zeros(2, np.float32), np.full(2, 2.0**120, np.float32)
    envelope = envelope_of("batch_norm", x, None, None, *statistics, **constants)
    assert np.isfinite(envelope.jvp(np.ones(x.shape), None, None)).all()


def test_arithmetic_is_hashable_and_frozen():
    """An arithmetic is a value: equal where its numbers are, usable as a key, and unchangeable."""
    a = Arithmetic.of("float32")
    assert {a: 1}[Arithmetic.of(np.float32, "float32")] == 1
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        a.u = 0.0
