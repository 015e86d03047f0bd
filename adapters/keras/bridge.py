"""
The bridge for Keras: its tensors are those of its backend, so its bridge is that of its backend.

The backend is chosen once in a process, by KERAS_BACKEND or by Keras's configuration file, before Keras is imported.
No other backend's folder is imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import keras
import numpy as np

from ...spec.errors import FrameworkMissing
from ..trait import Trait

#: The backends that normspec supports, each with the class of its bridge in the folder of that name.
_BRIDGES = {"tensorflow": "TensorFlowBridge", "torch": "TorchBridge", "jax": "JaxBridge"}

#: The active backend.
BACKEND: str = keras.backend.backend()

if BACKEND not in _BRIDGES:
    raise FrameworkMissing(
        f"keras runs on {BACKEND}, which normspec does not drive: set KERAS_BACKEND to {', '.join(_BRIDGES)}"
    )

_Backend: Any = getattr(importlib.import_module(f"..{BACKEND}.bridge", __package__), _BRIDGES[BACKEND])


class KerasBridge(_Backend):
    """The active backend's bridge, with Keras's name and version."""

    name = "keras"
    version = keras.__version__

    #: The device of the last tensor.
    _place = "cpu"

    def tensor(self, array: Any, layout: str, device: str, *, tracked: bool = False) -> Any:
        self._place = device
        return super().tensor(array, layout, device, tracked=tracked)

    def own_traits(self, device: str) -> tuple[Trait, ...]:
        """The backend's traits, and whether Keras's own operations compute float64 in float32, as on some backends."""
        beyond = 1 + 2.0**-40  # not representable in float32
        given = self.tensor(np.full(2, beyond), "contiguous", device)
        with self.guarded(2, gradients=False):
            mean = float(keras.ops.convert_to_numpy(keras.ops.mean(given)))
        found = super().own_traits(device)
        if mean == beyond:
            return found
        return (*found, Trait("float64", "float64", "float32", f"keras.ops.mean of 1 + 2^-40 is {mean:.17g}"))

    @contextmanager
    def guarded(self, size: int, *, gradients: bool, training: bool = True) -> Iterator[None]:
        # Unless told otherwise, Keras on PyTorch moves its inputs to its own device, a GPU if there is one.
        device = keras.device(self._place) if BACKEND == "torch" else nullcontext()
        with device, super().guarded(size, gradients=gradients, training=training):
            yield
