"""Frames: whatever is written is read back, and anything that is no frame is refused."""

from __future__ import annotations

import io
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from normspec.adapters.dtypes import DTYPES
from normspec.adapters.worker import codec
from normspec.adapters.worker.codec import HEAD, MAGIC, Frames, NotAFrame, decode, encode


def carried(message):
    """A message, encoded and decoded."""
    return Frames(io.BytesIO(encode(message)).read).next()


def frame(header, data=b""):
    """A frame with this header, valid or not."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return HEAD.pack(MAGIC, len(text), len(data)) + text + data


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 4)])
def test_arrays_of_every_dtype_and_shape(dtype, shape):
    """Shape, dtype and bits are kept, and the array that is read can be written to."""
    array = np.random.Generator(np.random.Philox(3)).normal(size=shape).astype(DTYPES[dtype])
    found = carried({"a": array})["a"]
    assert found.dtype == DTYPES[dtype] and found.shape == shape and found.tobytes() == array.tobytes()
    assert found.flags.writeable and found.flags.c_contiguous


@pytest.mark.parametrize(
    "made",
    [
        lambda x: x.T,
        lambda x: x[::2, ::-1],
        lambda x: x[1:, 1:],
        lambda x: np.broadcast_to(x[:1], x.shape),
        np.asfortranarray,
        lambda x: x.astype(x.dtype.newbyteorder()),
    ],
    ids=["transposed", "strided", "offset", "zero stride", "column-major", "other byte order"],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_however_they_lie_in_memory(made, dtype):
    """Only the values count, not their memory layout."""
    array = made(np.arange(12.0).reshape(3, 4).astype(DTYPES[dtype]))
    found = carried(array)
    assert found.dtype == DTYPES[dtype]
    np.testing.assert_array_equal(found.astype(float), array.astype(float))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_bits_of_what_is_not_finite(dtype):
    """NaN keeps its sign and payload, zero its sign, and a subnormal stays one."""
    width = DTYPES[dtype].itemsize
    patterns = np.random.Generator(np.random.Philox(4)).integers(0, 256, 64 * width, dtype=np.uint8).tobytes()
    special = np.array([math.nan, -math.nan, math.inf, -math.inf, -0.0, 1e-320]).astype(DTYPES[dtype])
    array = np.concatenate([np.frombuffer(patterns, DTYPES[dtype]), special])
    assert carried(array).tobytes() == array.tobytes()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0, 0.1, 5e-324, 1.7976931348623157e308])
def test_numbers(value):
    """Every float is the same bits afterwards, those included that JSON lacks."""
    found = carried({"eps": value, "inside": [value]})
    assert type(found["eps"]) is float
    for one in (found["eps"], found["inside"][0]):
        assert (
            math.isnan(one) if math.isnan(value) else (one, math.copysign(1, one)) == (value, math.copysign(1, value))
        )


def test_small_values():
    """Texts, flags, None and nested lists come back; a tuple as a list, and a NumPy number as one of Python's."""
    message = {"a": None, "b": [True, False, 1, "é\ud800\n"], "c": {"d": []}, "e": (1, (2,)), "f": 10**30}
    assert carried(message) == {**message, "e": [1, [2]]}
    found = carried([np.float32(0.5), np.int64(3), np.bool_(True), np.float64("nan")])
    assert found[:3] == [0.5, 3, True] and math.isnan(found[3])


def test_one_array_twice():
    """Arrays are values: the same one in two places is two afterwards."""
    array = np.zeros(2)
    first, second = carried([array, array])
    assert first is not second and not np.shares_memory(first, second)


def test_frames_follow_one_another():
    """Each ends where the next begins, however the bytes arrive; after the last, or half of one, comes the end."""
    whole = encode({"a": np.ones(5)}) + encode("two")
    for most in (1, 7, HEAD.size, 1 << 16):
        source = io.BytesIO(whole)
        frames = Frames(lambda count, most=most, source=source: source.read(min(count, most)))
        assert frames.next()["a"].sum() == 5
        assert frames.next() == "two"
        with pytest.raises(EOFError):
            frames.next()
    first = len(encode({"a": np.ones(5)}))
    for size in (1, HEAD.size - 1, HEAD.size, HEAD.size + 5, len(whole) - 1):
        frames = Frames(io.BytesIO(whole[:size]).read)
        if size > first:
            frames.next()
        with pytest.raises(EOFError):
            frames.next()


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\n",
        b"\0" * HEAD.size,
        HEAD.pack(MAGIC, codec.MOST_HEADER + 1, 0),
        HEAD.pack(MAGIC, 0, codec.MOST_DATA + 1),
        HEAD.pack(MAGIC, 2**32 - 1, 2**64 - 1),
    ],
)
def test_what_is_no_head(head):
    """Other bytes, and sizes that no frame has, are refused before anything more is read."""
    pieces = [head]
    with pytest.raises(NotAFrame, match="not a frame"):
        Frames(lambda count: pieces.pop()).next()
    assert not pieces


@pytest.mark.parametrize(
    ("header", "data"),
    [
        (b"", b""),
        (b"\xff\xfe", b""),
        (b"[1, 2", b""),
        (b"[" * 100_000, b""),
        (b"9" * 10_000, b""),
        ([], b""),
        ({}, b""),
        ({"arrays": [], "body": {"array": 0}}, b""),
        ({"arrays": [], "body": {"float": "many"}}, b""),
        ({"arrays": [], "body": None}, b"abc"),
        ({"arrays": 3, "body": None}, b""),
        ({"arrays": [["float32"]], "body": None}, b""),
        ({"arrays": [["float32", 3]], "body": None}, b""),
        ({"arrays": [["float32", [2]]], "body": None}, b"1234"),
        ({"arrays": [["float32", [1]]], "body": None}, b"12345678"),
        ({"arrays": [["float32", [-1]]], "body": None}, b""),
        ({"arrays": [["float32", [0, -1]]], "body": None}, b""),
        ({"arrays": [["float32", [1.0]]], "body": None}, b"1234"),
        ({"arrays": [["float32", [10**30]]], "body": None}, b""),
        ({"arrays": [["float32", [0, 10**30]]], "body": None}, b""),
        ({"arrays": [["float32", [1] * 100]], "body": None}, b"1234"),
        ({"arrays": [["object", [1]]], "body": None}, b"12345678"),
        ({"arrays": [["float8", [1]]], "body": None}, b"1"),
        ({"arrays": [[["float32"], [1]]], "body": None}, b"1234"),
    ],
)
def test_what_is_no_frame(header, data):
    """A header with false claims about the data is refused with NotAFrame and nothing else."""
    with pytest.raises(NotAFrame):
        Frames(io.BytesIO(frame(header, data)).read).next()


def test_a_claim_takes_no_memory(monkeypatch):
    """The size that a head claims is not set aside before the bytes come."""
    asked = []

    def read(count):
        asked.append(count)
        return HEAD.pack(MAGIC, 0, codec.MOST_DATA) if len(asked) == 1 else b""

    with pytest.raises(EOFError):
        Frames(read).next()
    assert max(asked) <= 1 << 20


def test_what_no_frame_may_hold(monkeypatch):
    """More than a frame may hold is refused where it is made, and so is an array of another dtype."""
    monkeypatch.setattr(codec, "MOST_DATA", 100)
    with pytest.raises(ValueError, match="more than a frame may hold"):
        encode(np.zeros(13))
    with pytest.raises(KeyError):
        encode(np.zeros(3, complex))


def test_the_example_of_the_page(checkout: Path):
    """The bytes that PROTOCOL.md shows are those that are sent."""
    page = (checkout / "adapters" / "worker" / "PROTOCOL.md").read_text(encoding="utf-8")
    block = [line for line in page.splitlines() if re.match(r"    ([0-9a-f]{2} +){4}", line)]
    shown = [bytes.fromhex(re.match(r"    ((?:[0-9a-f]{2} +)+)", line)[1]) for line in block]
    y = np.array([1, -2], np.float32)
    whole = encode({"id": 3, "ok": {"outputs": {"y": y}, "recorded": None}})
    assert len(shown) == 3
    assert whole.startswith(shown[0] + shown[1]) and whole.endswith(shown[2])
    assert json.dumps(json.loads(whole[HEAD.size : -8]), separators=(",", ":")) in page
    assert "at most 2^24" in page and codec.MOST_HEADER == 2**24
    assert "at most 2^30" in page and codec.MOST_DATA == 2**30
    assert f"# The worker protocol, version {codec.PROTOCOL}\n" in page


def test_lists_and_texts_are_not_mistaken():
    """A mapping that only looks like an array or a number is left as it is."""
    message = {"a": {"array": "x"}, "b": {"float": 3}, "c": {"array": 0, "float": "nan"}, "d": {"array": True}}
    assert decode(json.dumps({"arrays": [], "body": message}).encode(), b"") == message
