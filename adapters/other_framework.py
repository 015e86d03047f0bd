"""Hints that a function may be written for another framework than the one whose tensors it is handed."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..spec.errors import one_line
from .frameworks import IMPLIED
from .traceback_lines import files_within

_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep


def hint_from_value(value: Any, framework: str) -> str:
    """The end of a message about a returned value: how to judge a function of such values; empty if it is of none."""
    if isinstance(value, np.generic):  # a number, such as a sum may be
        return ""
    module = getattr(type(value), "__module__", "")
    other = IMPLIED.get(module.partition(".")[0], framework) if isinstance(module, str) else framework
    return "" if other == framework else f" (if the function is written for {other}, add --framework {other})"


def hint_from_error(error: BaseException, framework: str) -> str:
    """The end of a message about an exception, if tensors of the framework were used as arrays of NumPy; or empty."""
    if framework == "numpy":
        return ""
    if isinstance(error, AttributeError):  # x.astype: an array has what a tensor lacks
        as_arrays = hasattr(np.ndarray, getattr(error, "name", None) or "")
    elif isinstance(error, TypeError):
        as_arrays = "ndarray" in one_line(error) or any(file.startswith(_NUMPY) for file in files_within(error))
    else:
        as_arrays = False
    return " (if the function is written for numpy, add --framework numpy)" if as_arrays else ""
