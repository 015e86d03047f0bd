"""Encode values as frames and decode them: JSON for small values, raw bytes for arrays; see PROTOCOL.md."""

from __future__ import annotations

import json
import math
import struct
import sys
from typing import Any, Callable

import numpy as np

from ..dtypes import DTYPES, NAMES

#: The version of PROTOCOL.md that this code implements.
PROTOCOL = 1

#: The first four bytes of a frame. A frame's head has these, the size of the header, and the size of the arrays.
MAGIC = b"NSPW"
HEAD = struct.Struct("<4sIQ")

#: The most bytes to read at once: the capacity of a pipe on Linux, so that a small frame comes in one piece.
_AT_ONCE = 1 << 16

#: The largest header and the largest array data that are sent or accepted, in bytes.
MOST_HEADER = 1 << 24
MOST_DATA = 1 << 30


class NotAFrame(Exception):
    """The received bytes do not follow the protocol."""


def encode(message: Any) -> bytes:
    """
    Encode a message as a frame: dicts with text keys, lists, tuples, texts, numbers, None, and arrays in one of DTYPES.

    Raises ValueError if the message is too large for a frame.
    """
    arrays: list[np.ndarray] = []

    def other(value: Any) -> Any:
        """The JSON form of a value that JSON lacks."""
        if isinstance(value, np.ndarray):
            arrays.append(value)
            return {"array": len(arrays) - 1}
        if isinstance(value, np.generic):
            return value.item()
        raise TypeError(f"{type(value).__name__} has no place in a frame")

    try:
        body = _text(message, default=other)
    except ValueError:  # a number that is not finite
        arrays.clear()
        body = _text(_finite(message), default=other)
    described = ",".join(f'["{NAMES[array.dtype]}",[{",".join(map(str, array.shape))}]]' for array in arrays)
    # The arrays come first, as in PROTOCOL.md; only now are they all known.
    header = f'{{"arrays":[{described}],"body":{body}}}'.encode()
    size = sum(array.nbytes for array in arrays)
    if len(header) > MOST_HEADER or size > MOST_DATA:
        raise ValueError(f"{len(header)} bytes of text and {size} of arrays are more than a frame may hold")
    return b"".join([HEAD.pack(MAGIC, len(header), size), header, *map(_little, arrays)])


def _text(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"), default=default)


def _finite(value: Any) -> Any:
    """The value, with the numbers that JSON lacks replaced by texts."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return value


def _little(array: np.ndarray) -> bytes:
    if sys.byteorder == "big" or array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return array.tobytes()  # row-major, however the array lies


def decode(header: bytes, data: bytes) -> Any:
    """The message of :func:`encode`; tuples become lists, and arrays have memory of their own. Raises NotAFrame."""
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
        arrays.append(flat.reshape(shape).astype(DTYPES[name]))  # a writable copy
        start += count * dtype.itemsize
    if start != len(data):
        raise ValueError(f"{len(data)} bytes of arrays in place of {start}")
    return arrays


def _revived(value: Any, arrays: list[np.ndarray]) -> Any:
    kind = type(value)
    if kind is list:
        return [_revived(one, arrays) for one in value]
    if kind is not dict:
        return value
    if len(value) == 1:
        if type(value.get("array")) is int:
            return arrays[value["array"]]
        if type(value.get("float")) is str:
            return float(value["float"])
    return {key: _revived(one, arrays) if type(one) is dict or type(one) is list else one for key, one in value.items()}


def sizes(head: bytes) -> tuple[int, int]:
    """The sizes in bytes of the header and the arrays after a frame's head. Raises NotAFrame."""
    magic, header, data = HEAD.unpack(head)
    if magic != MAGIC or header > MOST_HEADER or data > MOST_DATA:
        raise NotAFrame("what came is not a frame")
    return header, data


class Frames:
    """Reads frames from a source of bytes, one after the other."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        """``read(most)`` waits for bytes, returns at most that many, and returns b"" at the end."""
        self._read = read
        #: The bytes read beyond the last frame.
        self._ahead = bytearray()

    def next(self) -> Any:
        """The message of the next frame. Raises EOFError if there is none, and NotAFrame."""
        header, data = sizes(self._exactly(HEAD.size))
        return decode(self._exactly(header), self._exactly(data))

    def _exactly(self, count: int) -> bytes:
        while len(self._ahead) < count:
            piece = self._read(_AT_ONCE)
            if not piece:
                raise EOFError
            self._ahead += piece
        found = bytes(self._ahead[:count])
        del self._ahead[:count]
        return found
