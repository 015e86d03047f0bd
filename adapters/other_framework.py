"""Hints that a function may be written for another framework than the one whose tensors it is handed."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from ..spec.errors import one_line
from .frameworks import IMPLIED
from .traceback_lines import files_within

#: What a TypeError says where something else is called as PyTorch's functions are, or handed to one.
_WORDS_OF_TORCH = ("must be Tensor", "keyword argument 'keepdim'", "keyword argument 'dim'")
_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep


def hint_from_value(value: Any, framework: str) -> str:
    """The end of a message about a returned value: how to judge a function of such values; empty if it is of none."""
    if isinstance(value, np.generic):  # a number, such as a sum may be
        return ""
    module = getattr(type(value), "__module__", "")
    other = IMPLIED.get(module.partition(".")[0], framework) if isinstance(module, str) else framework
    return "" if other == framework else f" (if the function is written for {other}, add --framework {other})"


def hint_from_error(error: BaseException, framework: str) -> str:
    """The end of a message about an exception, if tensors were used as those of another framework; or empty."""
    used = {"numpy": _used_as_array, "torch": _used_as_tensor}
    found = (name for name, is_used in used.items() if name != framework and is_used(error))
    return next((f" (if the function is written for {name}, add --framework {name})" for name in found), "")


def _used_as_array(error: BaseException) -> bool:
    """Whether something was used as an array of NumPy."""
    if isinstance(error, AttributeError):  # x.astype: an array has what a tensor lacks
        return hasattr(np.ndarray, getattr(error, "name", None) or "")
    if isinstance(error, TypeError):
        return "ndarray" in one_line(error) or any(file.startswith(_NUMPY) for file in files_within(error))
    return False


def _used_as_tensor(error: BaseException) -> bool:
    """Whether something was used as a tensor of PyTorch, which is imported where that is so."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(error, AttributeError):  # x.float: a tensor has what an array lacks
        return hasattr(torch.Tensor, getattr(error, "name", None) or "")
    words = one_line(error) if torch is not None and isinstance(error, TypeError) else ""
    return any(one in words for one in _WORDS_OF_TORCH)
