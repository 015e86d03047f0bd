"""Compilation on JAX: everything that Keras computes in one call is compiled as one, as in its own training loop."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from .bridge import BACKEND

#: How many configurations of a layer, or shapes of a function, are kept. Cases come one after the other, each with all
#: its checks, so few are needed at a time; and a compiled one takes megabytes.
KEPT = 32


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """
    The function of tensors, any of which may be None: under ``jax.jit`` on JAX, unchanged on other backends.

    Without it, JAX compiles each of the dozen operations of a normalisation, and twice as many of its gradient, for
    every shape: three to ten times the work of compiling them as one.
    """
    if BACKEND != "jax":
        return function
    # Imported by name, because JAX belongs to another folder and is not installed with the other backends.
    jit = importlib.import_module("jax").jit

    @lru_cache(maxsize=KEPT)
    def of(signature: tuple[Any, ...]) -> Callable[..., Any]:
        # A new lambda for each signature: JAX frees compiled code together with the function it was compiled from.
        return jit(lambda *tensors: function(*tensors))

    def call(*tensors: Any) -> Any:
        return of(tuple(None if one is None else (one.shape, str(one.dtype)) for one in tensors))(*tensors)

    return call
