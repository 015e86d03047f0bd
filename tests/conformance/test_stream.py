"""The numbers that cases are made of: SplitMix64's own, spread as they should be, and exact where they have to be."""

from __future__ import annotations

import numpy as np

from normspec.conformance.cases.stream import Stream, _mixed, deviation, mean


def test_the_bits_are_splitmix64s() -> None:
    """From state 1234567 the stream gives the numbers of the published reference implementation."""
    stream = Stream()
    stream._state = 1234567
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    assert [int(n) for n in stream._raw(5)] == known
    assert _mixed(1234567 + 0x9E3779B97F4A7C15) == known[0]


def test_keys_tell_streams_apart() -> None:
    """Keys that differ in a part, in the order or in the length give other numbers; so do parts beyond 64 bits."""
    keys = [(), (0,), (0, 0), (1,), (0, 1), (1, 0), (1 << 64,), (1 << 65,), (1, 1)]
    assert len({int(Stream(*key)._raw(1)[0]) for key in keys}) == len(keys)


def test_numbers_go_on_where_they_stopped() -> None:
    """Two halves drawn one after the other are the whole drawn at once."""
    halves, whole = Stream(3), Stream(3)
    np.testing.assert_array_equal(np.concatenate([halves.random(7), halves.random(5)]), whole.random(12))


def test_normal_numbers_are_nearly_normal() -> None:
    """Mean 0, variance 1, skewness 0, no number beyond 4.9, and the last bits in use."""
    z = Stream(5).standard_normal(200_000)
    assert abs(z.mean()) < 0.01 and abs(z.std() - 1) < 0.01 and abs((z**3).mean()) < 0.05
    assert 4 < np.abs(z).max() < 4.9
    assert np.count_nonzero(z * 2.0**40 % 1) > 190_000


def test_integers_and_choices_are_even() -> None:
    """Each integer and each choice comes up about as often, and bounds are kept."""
    counts = np.bincount(Stream(6).integers(-3, 5, 80_000) + 3)
    assert len(counts) == 8 and (np.abs(counts - 10_000) < 500).all()
    assert set(Stream(7).choice([-1.0, 1.0], 100)) == {-1.0, 1.0}
    assert sorted(Stream(8).permutation(9)) == list(range(9))
    assert {Stream(9, n).number(2, 4) for n in range(60)} == {2, 3, 4}


def test_mean_and_deviation_are_rounded_once() -> None:
    """A sum whose terms cancel loses nothing."""
    values = np.array([1e16, 1.0, -1e16, 1.0])
    assert mean(values) == 0.5
    assert deviation(np.array([3.0, 3.0, 3.0])) == 0.0
