"""Comparisons: what is judged, how an infinity or a NaN counts, and what equal bits are."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from normspec.conformance.cases.case import Case
from normspec.conformance.checks.exactly import added
from normspec.conformance.checks.relations import close, close_to_sum, equal, scaled_exactly
from normspec.conformance.judging.findings import Finding, WorstElement, as_exact, compare
from normspec.conformance.judging.subject import Bound, Subject
from normspec.reference.double_double import DD
from normspec.reference.formats import FORMATS

from .runs import DTYPES

of_every_dtype = pytest.mark.parametrize("dtype", DTYPES)


def compared(
    got: list[float], exact: list[float], envelope: list[float], dtype: str = "float32", **rest: Any
) -> WorstElement:
    """Compare short lists."""
    return compare(
        np.array(got).astype(FORMATS[dtype].dtype), as_exact(exact), np.array(envelope, dtype=np.float64), **rest
    )


def test_the_worst_element_is_told() -> None:
    """The ratio is the largest error over its envelope; it comes with its place and its numbers."""
    found = compared([1.0, 2.5, 3.25], [1.0, 2.0, 3.0], [0.5, 1.0, 0.125])
    assert found == WorstElement(2.0, 3, (2,), 3.0, 3.25, 0.125)


def test_the_low_word_of_an_exact_value_counts() -> None:
    """An exact value between two float64 numbers is compared with, not its rounding."""
    exact = DD(np.array([1.0]), np.array([2.0**-60]))
    assert compare(np.array([1.0]), exact, np.array([2.0**-61])).ratio == 2.0


def test_a_value_without_dimensions_is_compared() -> None:
    """A result of shape () is compared like any other."""
    found = compare(np.array(2.0), as_exact(1.0), np.array(0.5))
    assert (found.ratio, found.judged, found.index) == (2.0, 1, ())


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_infinitely_wrong(wrong: float) -> None:
    """NaN or an infinity instead of an ordinary number fails at any envelope."""
    found = compared([1.0, wrong], [1.0, 1.0], [1.0, 1e30])
    assert (found.ratio, found.index) == (math.inf, (1,))


def test_an_envelope_of_zero_asks_for_the_value_itself() -> None:
    """Where nothing may be lost, the exact value passes and its neighbour does not."""
    assert compared([0.5, 0.0], [0.5, 0.0], [0.0, 0.0]).ratio == 0.0
    assert compared([0.5, -0.0], [0.5, 0.0], [0.0, 0.0]).ratio == 0.0
    assert compared([0.5, 1e-30], [0.5, 0.0], [0.0, 0.0]).ratio == math.inf


@pytest.mark.parametrize(("exact", "envelope"), [(1.0, math.inf), (1.0, math.nan), (math.nan, 1.0)])
def test_what_has_no_exact_value_or_no_envelope_is_not_judged(exact: float, envelope: float) -> None:
    """An element about which nothing is promised does not count, whatever was received there."""
    for got in (7.0, math.nan, math.inf):
        assert compared([1.0, got], [1.0, exact], [1.0, envelope]).judged == 1
        alone = compared([got], [exact], [envelope])
        assert (alone.judged, alone.ratio) == (0, 0.0)


def test_masked_elements_do_not_count() -> None:
    """Only elements that the mask lets through are judged; with none of them nothing is judged."""
    arguments = ([1.0, 9.0], [1.0, 1.0], [1.0, 1.0])
    assert compared(*arguments, where=np.array([True, False])) == WorstElement(0.0, 1, (0,), 1.0, 1.0, 1.0)
    none = compared(*arguments, where=np.array([False, False]))
    assert (none.ratio, none.judged, none.index) == (0.0, 0, ())


def test_nothing_is_judged_in_an_empty_result() -> None:
    """A result without elements establishes nothing."""
    assert compared([], [], []).judged == 0


@of_every_dtype
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_at_the_edge_of_overflow_the_infinity_is_right(dtype: str, sign: float) -> None:
    """A value that may round beyond the largest number may be infinite or the largest, of the right sign."""
    top = FORMATS[dtype].largest
    exact, envelope = sign * top * (1 - 2.0**-12), top * 2.0**-10
    for got in (math.inf, top):
        assert compared([sign * got], [exact], [envelope], dtype).ratio <= 1
    assert compared([-sign * math.inf], [exact], [envelope], dtype).ratio == math.inf
    assert compared([math.nan], [exact], [envelope], dtype).ratio == math.inf


@of_every_dtype
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_envelope_beyond_overflow_lets_either_infinity_pass(dtype: str, sign: float) -> None:
    """Where nothing keeps a sound algorithm from overflowing, to the other side neither, infinity is right."""
    top = FORMATS[dtype].largest
    assert compared([sign * math.inf], [-6.0], [top], dtype).ratio == 0


@of_every_dtype
def test_below_the_edge_of_overflow_an_infinity_is_wrong(dtype: str) -> None:
    """A value that cannot round beyond the largest number must be finite."""
    top = FORMATS[dtype].largest
    assert compared([math.inf], [top / 2], [top * 2.0**-10], dtype).ratio == math.inf


def related(got: list[float], want: list[float], dtype: str = "float32", repeats: bool = True) -> Finding:
    """Relate two lists by [=], for a target whose calls agree or do not; [~] allows for 1."""
    stored = FORMATS[dtype].dtype

    def judge(case: Case, name: str, got: np.ndarray, exact: DD, bound: Bound, note: str) -> Finding:
        result = compare(got, exact, bound(False))
        return Finding(case, violated=result.ratio > 1, ratio=result.ratio, output=name, note=note)

    subject = cast(
        Subject, SimpleNamespace(repeats_itself=lambda *call: repeats, judge=judge, related=lambda found, _: found)
    )
    a, b = np.array(got).astype(stored), np.array(want).astype(stored)
    case = Case("layer_norm", {"x": a}, {}, a)
    return equal(subject, case, "y", a, b, "twice", calls=((case, a), (case, b)), bound=lambda n: np.ones(a.shape))


@of_every_dtype
def test_equality_tells_neighbours_apart(dtype: str) -> None:
    """Two numbers that differ in their last bit are not equal, and the finding says where."""
    step = 2 * FORMATS[dtype].unit_roundoff
    assert not related([1.0, -2.0], [1.0, -2.0], dtype).violated
    found = related([1.0, 1.0 + step], [1.0, 1.0], dtype)
    assert (found.violated, found.index, found.expected, found.envelope) == (True, (1,), 1.0, 0.0)


@of_every_dtype
def test_equality_is_judged_over_the_normal_range(dtype: str) -> None:
    """Subnormal numbers may differ: they may be flushed."""
    small = FORMATS[dtype].smallest_subnormal
    found = related([small, 0.0], [0.0, 3 * small], dtype)
    assert not found.violated
    assert not found.judged
    assert related([0.0], [FORMATS[dtype].smallest_normal], dtype).violated


def test_both_zeros_are_equal() -> None:
    """A zero equals the zero of the other sign, and that is judged."""
    found = related([0.0, -0.0], [-0.0, 0.0])
    assert (found.judged, found.violated) == (True, False)


def test_results_that_are_not_numbers_on_both_sides_establish_nothing() -> None:
    """NaN on both sides, or the same infinity on both, is neither equal nor different."""
    found = related([math.nan, math.inf], [math.nan, math.inf])
    assert (found.judged, found.violated) == (False, False)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_a_number_is_not_equal_to_what_is_none(wrong: float) -> None:
    """NaN or an infinity on one side only is a difference."""
    assert related([wrong, 1.0], [1.0, 1.0]).violated
    assert related([1.0, 1.0], [wrong, 1.0]).violated


def test_one_infinity_is_not_equal_to_the_other() -> None:
    """Nor is a NaN equal to an infinity."""
    assert related([math.inf], [-math.inf]).violated
    assert related([math.nan], [math.inf]).violated


@of_every_dtype
def test_the_largest_number_is_judged_like_any_other(dtype: str) -> None:
    """A result that was clamped to it is not equal to an ordinary number."""
    top = FORMATS[dtype].largest
    assert related([top], [1.0], dtype).violated
    found = related([top, -top], [top, -top], dtype)
    assert (found.judged, found.violated) == (True, False)


def test_where_calls_disagree_the_envelope_takes_the_place_of_equality() -> None:
    """A target that does not repeat its bits is held to [~] instead of [=], and not to nothing."""
    near, far = related([1.0], [2.0], repeats=False), related([1.0], [2.5], repeats=False)
    assert (near.judged, near.violated, near.ratio) == (True, False, 1.0)
    assert far.violated
    assert "repeated calls differ" in far.note


def judging() -> Subject:
    """A subject that judges with an envelope alone, and knows no exact value."""

    def judge(case: Case, name: str, got: np.ndarray, exact: DD, bound: Bound, note: str) -> Finding:
        result = compare(got, exact, bound(False))
        return Finding(case, violated=result.ratio > 1, judged=result.judged > 0, ratio=result.ratio, output=name)

    return cast(Subject, SimpleNamespace(judge=judge, related=lambda found, _: found))


def near(got: list[float], want: list[float], dtype: str = "float32") -> Finding:
    """Relate two received lists by [~], which allows for 1."""
    a = np.array(got).astype(FORMATS[dtype].dtype)
    case = Case("layer_norm", {"x": a}, {}, a)
    return close(judging(), case, "y", a, np.array(want), lambda n: np.ones(a.shape), "twice")


@pytest.mark.parametrize("lost", [math.nan, math.inf, -math.inf])
def test_a_value_that_one_of_two_calls_lost_is_a_difference(lost: float) -> None:
    """It violates a relation whichever call it is; lost by both, it establishes nothing (A32)."""
    assert near([1.0, lost], [1.0, 1.0]).violated
    assert near([1.0, 1.0], [1.0, lost]).violated
    assert not near([lost], [lost]).judged


def test_one_of_two_calls_may_overflow_at_the_edge() -> None:
    """Where the other call returned about the largest number, an infinity is no loss."""
    top = FORMATS["float16"].largest
    assert not near([top], [math.inf], "float16").violated
    assert near([-top], [math.inf], "float16").violated


def test_a_sum_with_a_nan_in_it_is_a_difference() -> None:
    """A term that alone is NaN violates a relation to a sum; an infinite one says nothing, as it may overflow."""

    def found(got: float, *terms: float) -> Finding:
        a, others = np.array([got], np.float32), [np.array([term], np.float32) for term in terms]
        case = Case("layer_norm", {"x": a}, {}, a)
        with np.errstate(all="ignore"):  # as in a run
            return close_to_sum(judging(), case, "y", a, added(*others), others, lambda n: np.ones(1), "the sum")

    assert not found(3.0, 1.0, 2.0).violated
    assert found(3.0, 1.0, math.nan).violated
    assert found(math.nan, 1.0, 2.0).violated
    assert not found(math.nan, 1.0, math.nan).judged
    assert not found(3.0, math.inf, 2.0).judged


def test_calls_are_repeated_only_where_bits_differ() -> None:
    """Equal bits need no further call to be judged."""
    subject = cast(Subject, SimpleNamespace())  # any call of it would raise
    a = np.ones(3, np.float32)
    case = Case("layer_norm", {"x": a}, {}, a)
    found = equal(subject, case, "y", a, a.copy(), "", calls=((case, a), (case, a)), bound=lambda n: a)
    assert (found.judged, found.violated) == (True, False)


@of_every_dtype
def test_scaling_is_exact_or_refused(dtype: str) -> None:
    """A power of two scales normal numbers exactly; scaling that would overflow or become subnormal is refused."""
    stored = FORMATS[dtype]
    values = np.array([1.0, -0.5, 0.0]).astype(stored.dtype)
    scaled = scaled_exactly(values, 8.0)
    assert scaled is not None and scaled.dtype == stored.dtype
    np.testing.assert_array_equal(scaled.astype(np.float64), [8.0, -4.0, 0.0])
    assert scaled_exactly(np.array([stored.largest]).astype(stored.dtype), 2.0) is None
    assert scaled_exactly(np.array([stored.smallest_normal]).astype(stored.dtype), 0.5) is None
