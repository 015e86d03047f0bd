"""Truths as bytes: they are read back with the same bits, and nothing else is taken for a truth."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.conformance.kept.codec import Undecodable, decoded, encoded
from normspec.reference.composed import Value
from normspec.reference.double_double import DD

STRANGE = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 2.0**-1074, 1 / 3])
ARRAYS = {
    "strange": STRANGE,
    "a matrix": np.arange(6.0).reshape(2, 3),
    "not contiguous": np.arange(12.0).reshape(3, 4)[:, ::2].T,
    "one number": np.array(1.5),
    "nothing": np.empty((0, 3)),
    "zeros": np.zeros((4, 5)),
    "negative zeros": -np.zeros(3),
    "zeros of both signs": np.array([0.0, -0.0]),
    "NaN alone": np.full(3, np.nan),
    "broadcast": np.broadcast_to(np.array([2.0]), (3, 2)),
}


def bits(value: np.ndarray) -> tuple[object, ...]:
    """All there is to an array."""
    return value.shape, value.astype("<f8").tobytes()


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_come_back_with_their_bits(name):
    """Shapes and bits are the same, signs of zero and NaN included."""
    assert bits(decoded(encoded(ARRAYS[name]))) == bits(ARRAYS[name])


def test_what_is_made_of_arrays_comes_back():
    """Pairs, values, names, lists and None keep their structure."""
    pair = DD(STRANGE, np.zeros(8))
    found = decoded(encoded({"dx": pair, "dgamma": None, "handed": [Value(pair, STRANGE)]}))
    assert list(found) == ["dx", "dgamma", "handed"] and found["dgamma"] is None
    assert isinstance(found["dx"], DD) and isinstance(found["handed"][0], Value)
    assert bits(found["dx"].hi) == bits(STRANGE) and bits(found["handed"][0].error) == bits(STRANGE)


@pytest.mark.parametrize("value", [np.float32([1]), np.array([True]), 1.5, (1.0,), "text", {"x": object()}])
def test_nothing_else_is_written(value):
    """A value that is no truth raises, and is not kept as something similar."""
    with pytest.raises(TypeError):
        encoded(value)


def test_what_is_cut_off_is_not_read():
    """Every beginning of a truth's bytes, and every truth with more behind it, raises."""
    words = encoded({"y": DD(np.arange(3.0), np.zeros(3)), "new_running_var": None})
    for end in range(len(words)):
        with pytest.raises(Undecodable):
            decoded(words[:end])
    with pytest.raises(Undecodable):
        decoded(words + b"n")
