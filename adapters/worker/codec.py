"""From values to frames and back: JSON for what is small, raw bytes for arrays; see PROTOCOL.md."""

from __future__ import annotations

import json
import math
import struct
from typing import Any, Callable

import numpy as np

from ..bridge import DTYPES, NAMES

#: The version of PROTOCOL.md that is spoken here.
PROTOCOL = 1

#: What a frame begins with, and the head itself: this, the bytes of the header, the bytes of the arrays.
MAGIC = b"NSPW"
HEAD = struct.Struct("<4sIQ")

#: The largest header and the largest array data that are sent, or believed.
MOST_HEADER = 1 << 24
MOST_DATA = 1 << 30


class NotAFrame(Exception):
    """What was received does not follow the protocol."""


def encode(message: Any) -> bytes:
    """
    A frame of dicts with text keys, lists, tuples, texts, numbers, None and arrays in one of DTYPES.

    Raises ValueError where that is more than a frame may hold.
    """
    arrays: list[np.ndarray] = []

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            arrays.append(value)
            return {"array": len(arrays) - 1}
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": repr(float(value))}
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(one) for one in value]
        if isinstance(value, np.generic):
            return plain(value.item())
        return value

    body = plain(message)
    described = [[NAMES[array.dtype], list(array.shape)] for array in arrays]
    header = json.dumps({"arrays": described, "body": body}, allow_nan=False, separators=(",", ":")).encode()
    size = sum(array.nbytes for array in arrays)
    if len(header) > MOST_HEADER or size > MOST_DATA:
        raise ValueError(f"{len(header)} bytes of text and {size} of arrays are more than a frame may hold")
    return b"".join([HEAD.pack(MAGIC, len(header), size), header, *map(_little, arrays)])


def _little(array: np.ndarray) -> bytes:
    dense = np.ascontiguousarray(array)
    return dense.astype(dense.dtype.newbyteorder("<"), copy=False).tobytes()


def decode(header: bytes, data: bytes) -> Any:
    """What :func:`encode` was given, with lists for tuples and arrays of their own memory. Raises NotAFrame."""
    try:
        found = json.loads(header)
        arrays = _arrays(found["arrays"], data)
        return _revived(found["body"], arrays)
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
        raise NotAFrame(f"{type(error).__name__}: {error}") from error


def _arrays(described: Any, data: bytes) -> list[np.ndarray]:
    arrays, start = [], 0
    for name, shape in described:
        dtype = DTYPES[name].newbyteorder("<")
        if not all(isinstance(size, int) and size >= 0 for size in shape):
            raise ValueError(f"no shape: {shape}")
        count = math.prod(shape)
        flat = np.frombuffer(data, dtype, count, start) if count else np.empty(0, dtype)
        arrays.append(flat.reshape(shape).astype(DTYPES[name]))  # a copy, which may be written to
        start += count * dtype.itemsize
    if start != len(data):
        raise ValueError(f"{len(data)} bytes of arrays in place of {start}")
    return arrays


def _revived(value: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(value, list):
        return [_revived(one, arrays) for one in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        if type(value.get("array")) is int:
            return arrays[value["array"]]
        if isinstance(value.get("float"), str):
            return float(value["float"])
    return {key: _revived(one, arrays) for key, one in value.items()}


def sizes(head: bytes) -> tuple[int, int]:
    """The bytes of header and of arrays that follow a frame's head. Raises NotAFrame."""
    magic, header, data = HEAD.unpack(head)
    if magic != MAGIC or header > MOST_HEADER or data > MOST_DATA:
        raise NotAFrame("what came is no frame")
    return header, data


def read_frame(read: Callable[[int], bytes]) -> Any:
    """The next frame of a blocking source; None where it ends. Raises NotAFrame."""

    def exactly(count: int) -> bytes:
        pieces, missing = [], count
        while missing:
            piece = read(min(missing, 1 << 20))
            if not piece:
                raise EOFError
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    try:
        header, data = sizes(exactly(HEAD.size))
        return decode(exactly(header), exactly(data))
    except EOFError:
        return None
