"""Faults of what a part returns in another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....adapters.numpy.operators.composed import Composed
from ..registry import fault

Array = np.ndarray


@fault("result-dtype-kept", everywhere="CM-C11", kind="dtype", dtypes=("float16", "bfloat16", "float32"))
class ResultDtypeKept(Composed):
    """Returns y in the widest dtype that a part returned."""

    widest: np.dtype

    def before(self, stage: str, arrays: tuple[Any, ...]) -> None:
        self.widest = arrays[0].dtype
        super().before(stage, arrays)

    def taken(self, result: Any, role: str) -> Array:
        self.widest = max(self.widest, result.dtype, key=lambda dtype: dtype.itemsize)
        return super().taken(result, role)

    def write(self, array: Array, shape: tuple[int, ...], dtype: np.dtype, role: str) -> Array:
        return super().write(array, shape, self.widest if role == "y" else dtype, role)
