"""Keys from the values that a truth depends on: equal values give equal keys, in every process."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Hashable
from functools import lru_cache
from typing import Any

import attrs
import numpy as np

from ...reference.accuracy import Arithmetic
from ..sources import sources

#: Bytes of a key. Among 10^12 contents, two have the same key with probability 10^-14.
KEY_BYTES = 16

#: All code that a truth runs, below the package. A test compares the list with what truths import.
TRUTH_SOURCES = (
    "reference",
    "spec",
    "adapters/binding.py",
    "conformance/kept",
    "conformance/cases/case.py",
    "conformance/judging/truth.py",
    "conformance/judging/composed_truth.py",
)


def token(value: Any) -> Hashable:
    """The hashable form of a value in a key."""
    if isinstance(value, (Arithmetic, str)) or value is None:  # most arguments
        return value
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.shape, hashlib.blake2b(value.tobytes(), digest_size=KEY_BYTES).digest()
    if isinstance(value, tuple):
        return tuple(map(token, value))
    if isinstance(value, dict):
        return tuple((name, token(one)) for name, one in value.items())
    return value


def fingerprint(*tokens: Hashable) -> bytes:
    """One token for several."""
    return hashlib.blake2b(repr(_reproducible(tokens)).encode(), digest_size=KEY_BYTES).digest()


def digest(*tokens: Hashable) -> bytes:
    """The key for several tokens and this version of the code."""
    return hashlib.blake2b(repr(_reproducible(tokens)).encode(), digest_size=KEY_BYTES, key=_version()).digest()


def _reproducible(value: Any) -> Any:
    """A token in a form whose repr is the same in every process."""
    if isinstance(value, tuple):
        return tuple(map(_reproducible, value))
    return _arithmetic(value) if isinstance(value, Arithmetic) else value


@lru_cache
def _arithmetic(value: Arithmetic) -> str:
    numbers = attrs.asdict(value)
    numbers["accuracy"]["flushed"] = sorted(numbers["accuracy"]["flushed"])  # the order of a set varies
    return repr(numbers)


@lru_cache(maxsize=1)
def _version() -> bytes:
    """The version that results depend on: our code, NumPy's, and the kind of machine."""
    return hashlib.blake2b(f"{sources(*TRUTH_SOURCES)} {np.__version__} {platform.machine()}".encode()).digest()
