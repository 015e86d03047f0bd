"""Encodes truths as bytes: float64 arrays, pairs of them, values with errors, lists and dicts of these."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from ...reference.composed import Value
from ...reference.double_double import DD

#: Each encoded value begins with a letter for its type.
_NOTHING, _ARRAY, _CONSTANT, _PAIR, _VALUE, _LIST, _NAMED = b"n", b"a", b"f", b"p", b"v", b"l", b"m"

_COUNT = struct.Struct("<I")


class Undecodable(ValueError):
    """The bytes do not come from `encoded`."""


def encoded(value: Any) -> bytes:
    """A truth, as methods marked ``cached_on_disk`` return it, as bytes. Raises TypeError for anything else."""
    pieces: list[bytes] = []
    _write(value, pieces)
    return b"".join(pieces)


def _write(value: Any, pieces: list[bytes]) -> None:
    if value is None:
        pieces.append(_NOTHING)
    elif isinstance(value, DD):
        pieces.append(_PAIR)
        _write(np.asarray(value.hi), pieces)
        _write(np.asarray(value.lo), pieces)
    elif isinstance(value, Value):
        pieces.append(_VALUE)
        _write(value.exact, pieces)
        _write(np.asarray(value.error), pieces)
    elif isinstance(value, dict):
        pieces += [_NAMED, _COUNT.pack(len(value))]
        for name, one in value.items():
            told = name.encode()
            pieces += [_COUNT.pack(len(told)), told]
            _write(one, pieces)
    elif isinstance(value, list):
        pieces += [_LIST, _COUNT.pack(len(value))]
        for one in value:
            _write(one, pieces)
    elif isinstance(value, np.ndarray) and value.dtype == np.float64:
        bits = np.ascontiguousarray(value, "<f8").reshape(-1)
        words = bits.view(np.int64)
        constant = words.size > 1 and bool((words == words[0]).all())  # for example low words that are all 0
        shape = [_COUNT.pack(value.ndim), *map(_COUNT.pack, value.shape)]
        pieces += [_CONSTANT if constant else _ARRAY, *shape, (bits[:1] if constant else bits).tobytes()]
    else:
        raise TypeError(f"a truth is no {type(value).__name__}")


def decoded(data: bytes) -> Any:
    """The truth in these bytes, with read-only arrays. Raises Undecodable."""
    reader = _Reader(data)
    try:
        value = reader.value()
    except (struct.error, ValueError, UnicodeDecodeError) as error:
        raise Undecodable(str(error)) from None
    if reader.position != len(data):
        raise Undecodable("there is more of it")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def value(self) -> Any:
        kind = self._take(1)
        if kind == _NOTHING:
            return None
        if kind in (_ARRAY, _CONSTANT):
            shape = tuple(self._count() for _ in range(self._count()))
            size = 1 if kind == _CONSTANT else math.prod(shape)
            numbers = np.frombuffer(self._take(8 * size), "<f8")
            return np.broadcast_to(numbers, shape) if kind == _CONSTANT else numbers.reshape(shape)
        if kind == _PAIR:
            return DD(self.value(), self.value())
        if kind == _VALUE:
            return Value(self.value(), self.value())
        if kind == _NAMED:
            return {self._take(self._count()).decode(): self.value() for _ in range(self._count())}
        if kind == _LIST:
            return [self.value() for _ in range(self._count())]
        raise Undecodable(f"nothing is marked {kind!r}")

    def _count(self) -> int:
        return _COUNT.unpack(self._take(_COUNT.size))[0]

    def _take(self, count: int) -> bytes:
        found = self._data[self.position : self.position + count]
        if len(found) < count:
            raise Undecodable("the end is missing")
        self.position += count
        return found
