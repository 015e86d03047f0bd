"""
Results as bytes: pickles that may contain only our own value classes and arrays.

A pickle can name anything to be called. Here only attrs classes, dataclasses and enumerations of this package are
allowed, and the functions that make an array. Thus no file of a cache can run anything.
"""

from __future__ import annotations

import dataclasses
import enum
import io
import pickle
import zlib
from typing import Any

import attrs

#: Our own package.
_OWN_PACKAGE = __name__.partition(".")[0]

#: The other allowed names: arrays, their dtypes and scalars, and containers.
_OTHERS_ALLOWED = {
    ("builtins", "set"),
    ("builtins", "frozenset"),
    ("builtins", "complex"),
    ("builtins", "slice"),
    ("builtins", "range"),
    ("collections", "Counter"),
    ("collections", "OrderedDict"),
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy.core.numeric", "_frombuffer"),
    ("ml_dtypes", "bfloat16"),
    ("ml_dtypes._ml_dtypes_ext", "bfloat16"),
}


class Unreadable(ValueError):
    """The bytes do not come from `pickled`."""


class Unwritable(ValueError):
    """A value contains something that another process could not read."""


def pickled(value: Any) -> bytes:
    """A value of ours as bytes. Raises Unwritable, also for a value that `unpickled` would refuse."""
    try:
        data = zlib.compress(pickle.dumps(value, protocol=5), level=1)
        unpickled(data)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError, Unreadable) as error:
        raise Unwritable(str(error)) from None
    return data


def unpickled(data: bytes) -> Any:
    """The value in these bytes. Raises Unreadable, and then nothing was run."""
    try:
        return _Reader(io.BytesIO(zlib.decompress(data))).load()
    except (zlib.error, pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, ImportError) as error:
        raise Unreadable(str(error)) from None


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """The class that a pickle names, if it is allowed."""
        if (module, name) in _OTHERS_ALLOWED:
            return super().find_class(module, name)
        if module.partition(".")[0] == _OWN_PACKAGE and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and _holds_values(found):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is not a class of values")


def _holds_values(one: type) -> bool:
    return attrs.has(one) or dataclasses.is_dataclass(one) or issubclass(one, enum.Enum)
