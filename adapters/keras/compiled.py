"""What is compiled before it runs: on JAX whatever Keras computes in one call, as its own training loop has it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from .bridge import BACKEND

#: How many configurations of a layer, or shapes of a function, are kept. Cases come one after the other and each is put
#: to all its checks at once, so that few are needed at a time; and a compiled one takes megabytes.
KEPT = 32


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """
    The function of tensors, any of which may be None, under ``jax.jit`` on JAX, and as it is on the others.

    Without it, JAX compiles each of the dozen operations of a normalisation, and twice as many of its gradient, anew
    for every shape: three to ten times the work of compiling each as one.
    """
    if BACKEND != "jax":
        return function
    # By name, since it is another room's framework, and is not there with the other backends.
    jit = importlib.import_module("jax").jit

    @lru_cache(maxsize=KEPT)
    def of(signature: tuple[Any, ...]) -> Callable[..., Any]:
        # One for each signature: JAX lets go of what it compiled with the function that it was compiled of.
        return jit(lambda *tensors: function(*tensors))

    def call(*tensors: Any) -> Any:
        return of(tuple(None if one is None else (one.shape, str(one.dtype)) for one in tensors))(*tensors)

    return call
