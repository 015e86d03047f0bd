"""Numbers as a report writes them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normspec.conformance.reporting.numbers import (
    array_text,
    hex_float,
    ratio_in_three_digits,
    ratio_text,
    setting_text,
)


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -0.5, 0.1, 5e-324, 1.7976931348623157e308, math.inf, -math.inf])
def test_hexadecimal_reads_back_exactly(value):
    """The short form loses no bit, and not the sign of zero."""
    back = float.fromhex(hex_float(value))
    assert (back, math.copysign(1, back)) == (value, math.copysign(1, value))


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.0, "0"),
        (1e-9, "<.01"),
        (0.29, "0.29"),
        (0.42, "0.42"),
        (0.9999, "0.99"),
        (1.0, "1.00"),
        (1.0001, "1.01"),
        (1.1, "1.10"),
        (58.4, "58"),
        (123456.0, "1e5"),
        (math.inf, "inf"),
        (math.nan, "nan"),
    ],
)
def test_a_ratio_never_rounds_across_the_envelope(ratio, text):
    """A ratio within the envelope reads below 1, one outside above."""
    assert ratio_text(ratio) == text


@pytest.mark.parametrize(
    ("ratio", "short"),
    [
        (0.12345, 0.123),
        (0.9996, 0.9996),
        (0.998, 0.998),
        (1.0, 1.0),
        (1.0004, 1.0004),
        (1.2345, 1.23),
        (12345.0, 12300.0),
    ],
)
def test_three_digits_never_round_across_the_envelope(ratio, short):
    """The JSON keeps three digits of the error of each kind of data, and the page draws them beside the envelope."""
    assert ratio_in_three_digits(ratio) == short
    assert ratio_in_three_digits(math.inf) == math.inf and math.isnan(ratio_in_three_digits(math.nan))


def test_numbers_are_exact_and_in_decimal_where_that_is_short():
    """An array is in one notation, so that no number hides among others."""
    assert array_text(np.array([[-0.0, 1.5], [2.0**-10, -3]], np.float32)) == (
        "float32 (2, 2) [[-0, 1.5], [0.0009765625, -3]]"
    )
    assert array_text(np.array([1, 0.1], np.float32)) == "float32 (2,) [0x1p+0, 0x1.99999ap-4]"
    assert array_text(np.array([1e30, np.nan, np.inf])) == "float64 (3,) [1e+30, nan, inf]"
    assert setting_text(1e-5) == "1e-05" and float(setting_text(1e-5)) == 1e-5
    assert setting_text(1 / 3) == "0x1.5555555555555p-2 (0.333333)"


def test_long_arrays_are_shortened():
    """An array past a shrunk case shows its head, or that all of it is one value."""
    assert array_text(np.ones((4, 5), np.float32)) == "float32 (4, 5) every element 1"
    assert array_text(np.arange(100.0)).endswith("4, 5, ... 100 elements, whole in --json]")
    assert array_text(np.zeros((0, 3))) == "float64 (0, 3) []"
