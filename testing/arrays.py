"""Converts arrays of any framework, on any device, to NumPy arrays of the same numbers."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np

from ..reference.formats import FORMATS, format_of

#: pytest then shows the test's line that passed these arguments, not the line here that refuses them.
__tracebackhide__ = True

#: The methods that copy an array to NumPy: of TensorFlow and ONNX Runtime, of MXNet, and of CuPy. The attribute tells
#: the array from what else has such a method: a dict and a pandas Series have a get.
_COPIES = {"numpy": "dtype", "asnumpy": "dtype", "get": "device"}


def array(name: str, value: Any) -> np.ndarray:
    """
    Return the numbers of an array of any framework, on any device, as a NumPy array of the same dtype.

    ``name`` is used in the message. Raises TypeError if the value is not an array or holds no floating point numbers.
    """
    try:
        found = _numpy(value)
    except Exception as error:  # a sparse tensor, one without data, one of a dtype that NumPy lacks, a traced array
        raise TypeError(
            f"{name} cannot be read as an array of NumPy ({_first_line(error)}): pass a dense array with its values, of"
            f" one of {', '.join(FORMATS)}"
        ) from error
    if np.ma.is_masked(value):
        raise TypeError(f"{name} has masked values: pass an array of which every value is judged")
    if found is None:
        raise TypeError(f"{name} is {_article(value)}: pass an array, of NumPy or of a framework")
    try:
        native = format_of(found.dtype).dtype
    except KeyError:
        raise TypeError(f"{name} is of dtype {found.dtype}: pass an array of one of {', '.join(FORMATS)}") from None
    return found.astype(native, copy=False)  # the order of the bytes is no other dtype


def optional(name: str, value: Any) -> np.ndarray | None:
    """As `array`, and None for None."""
    return None if value is None else array(name, value)


def _numpy(value: Any) -> np.ndarray | None:
    if isinstance(value, np.ndarray):
        return np.asarray(value)  # a subclass may compute in its own way
    if callable(getattr(value, "detach", None)) and callable(getattr(value, "cpu", None)):
        return _of_torch(value)
    for copy, attribute in _COPIES.items():  # before __array__, which CuPy has too, and refuses
        if callable(getattr(value, copy, None)) and hasattr(value, attribute):
            return np.asarray(getattr(value, copy)())
    if callable(getattr(value, "numpy", None)):  # an OrtValue has no attribute dtype
        return np.asarray(value.numpy())
    if hasattr(value, "__array__"):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return _of_dlpack(value)
    try:
        return np.asarray(memoryview(value))
    except TypeError:
        return None


def _of_torch(tensor: Any) -> np.ndarray:
    """A PyTorch tensor. NumPy itself has no bfloat16, so those 16 bits pass through integers."""
    here = tensor.detach().cpu().resolve_neg().contiguous()
    if str(here.dtype) == "torch.bfloat16":  # torch is imported, since there is a tensor
        return here.view(sys.modules["torch"].int16).numpy().view(ml_dtypes.bfloat16)
    return here.numpy()


def _of_dlpack(value: Any) -> np.ndarray:
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError):  # it lies on a device: from NumPy 2.1 on its owner can copy it
        return np.from_dlpack(value, device="cpu", copy=True)  # type: ignore[call-arg]


def _article(value: Any) -> str:
    name = type(value).__name__
    return "None" if value is None else f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
