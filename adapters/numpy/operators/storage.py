"""Reading inputs into the working dtype and writing results out of it."""

from __future__ import annotations

import numpy as np

from .arguments import check_float

Array = np.ndarray


class Storage:
    """Copies inputs and results: no input is written to, and no result shares memory with an input."""

    #: Set at the start of every call: the shape of x, its dtype, and the dtype to compute in.
    shape: tuple[int, ...]
    data: np.dtype
    work: np.dtype

    def begin_with(self, x: Array) -> None:
        """Note the shape, the dtype and the working dtype of this call."""
        self.shape, self.data, self.work = x.shape, x.dtype, self.working_dtype(x.dtype)

    def working_dtype(self, dtype: np.dtype) -> np.dtype:
        """float32 for 16-bit data, otherwise the dtype itself."""
        return np.dtype(np.float32) if dtype.itemsize == 2 else dtype

    def number(self, value: float) -> np.floating:
        """A setting (eps, momentum) in the working dtype."""
        return self.work.type(value)

    def read(self, array: Array, role: str) -> Array:
        """A new C-ordered copy of an input in the working dtype.

        The role is the argument's name in the canonical signature: "x", "gamma", "g", "tx", "running_mean", ...
        """
        check_float(array, role)
        return np.array(array, dtype=self.work, order="C")

    def write(self, array: Array, shape: tuple[int, ...], dtype: np.dtype, role: str) -> Array:
        """A new C-ordered result of the given shape and dtype.

        The role names the result: "y", "dx", "dgamma", "dbeta", "running_mean", "running_var", "ty", "x_bar", ...
        """
        return np.array(array.reshape(shape), dtype=dtype, order="C")
