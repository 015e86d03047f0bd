"""The bridge for NumPy arrays: nothing needs converting, and the only derivatives are the binding's own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ...spec.errors import BadOutput, DeviceUnavailable
from ...spec.parts import Part
from ..bridge import Bridge
from ..dtypes import DTYPES, NAMES
from ..layouts import LAYOUTS, place, why_not
from ..operation import Operation
from . import arithmetic
from .build_parts import build_part


class _Quiet:
    """Silences NumPy's warnings about the target's arithmetic: the checks themselves look at overflow and NaN."""

    __slots__ = ("_errors", "_warnings")

    def __enter__(self) -> None:
        self._errors = np.errstate(all="ignore")
        self._warnings = warnings.catch_warnings()
        self._errors.__enter__()
        self._warnings.__enter__()
        warnings.simplefilter("ignore")

    def __exit__(self, *error: Any) -> None:
        self._warnings.__exit__(*error)
        self._errors.__exit__(*error)


class NumpyBridge(Bridge):
    """NumPy on the CPU; bfloat16 is the dtype added by ml_dtypes."""

    name = "numpy"
    version = np.__version__
    dtypes = tuple(DTYPES)
    layouts = LAYOUTS
    differentiates = False
    rewrites = True
    functions = arithmetic

    def check_device(self, device: str) -> None:
        if device != "cpu":
            raise DeviceUnavailable(f"numpy has no device {device!r}: leave --device out, or check another target")

    def tensor(self, array: np.ndarray, layout: str, device: str, *, tracked: bool = False) -> np.ndarray:
        if layout == "contiguous":
            return np.array(array, order="C")
        return place(array, layout).view()

    def move_axis(self, tensor: np.ndarray, source: int, destination: int) -> np.ndarray:
        moved = np.moveaxis(tensor, source, destination)
        return np.ascontiguousarray(moved) if tensor.flags.c_contiguous else moved

    def written_back(self, handed: np.ndarray, x: np.ndarray, source: int, destination: int) -> None:
        if not np.shares_memory(handed, x):
            x[...] = np.moveaxis(handed, source, destination)

    def rewritten(self, tensor: np.ndarray, array: np.ndarray, *, fresh: bool) -> np.ndarray:
        tensor[...] = array
        return tensor.view() if fresh else tensor

    def check_tensor(self, value: Any, what: str) -> None:
        if not isinstance(value, np.ndarray):
            got = "None" if value is None else type(value).__name__
            raise BadOutput(f"{what} is {got}, not a numpy.ndarray")
        if value.dtype not in NAMES:
            raise BadOutput(f"{what} has dtype {value.dtype.name}", "dtype")
        if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
            # Whoever reads it does not get the numbers below the mask, so they are not to be judged.
            raise BadOutput(f"{what} is a masked array with masked values")

    def describe(self, value: np.ndarray) -> tuple[tuple[int, ...], str]:
        return value.shape, NAMES[value.dtype]

    def array(self, value: Any, what: str) -> np.ndarray:
        self.check_tensor(value, what)
        # The dtype is set again because a target may return the other byte order.
        return np.array(value, dtype=DTYPES[NAMES[value.dtype]], order="C")

    def guarded(self, size: int, *, gradients: bool, training: bool = True) -> AbstractContextManager[Any]:
        return _Quiet()

    def view(self, x: np.ndarray) -> np.ndarray:
        return x.view()

    def laid_out(self, value: np.ndarray, layout: str) -> np.ndarray:
        return place(value, layout).view() if why_not(value, layout) is None else value

    def buffer(self, value: np.ndarray) -> np.ndarray:
        return np.empty(value.shape, value.dtype)

    def write(self, value: np.ndarray, buffer: np.ndarray) -> np.ndarray:
        buffer[...] = value
        return buffer

    def part_with_derivatives(
        self,
        part: Part,
        tensors: Mapping[str, Any],
        *,
        memory: dict[Any, Any],
        notes: dict[Any, Any] | None,
        tangents: Mapping[str, Any] | None,
        operation: Operation | None,
    ) -> Callable[..., Any]:
        return build_part(part, tensors, self, memory=memory, notes=notes, tangents=tangents, operation=operation)
