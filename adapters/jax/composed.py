"""
The composed operators, written with JAX's functions as users write them: JAX ships no layers of these names.

There are no checks beyond JAX's own: a branch's result that can be broadcast to x's shape is broadcast.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp

from ..binding import Binding
from ..composed import highway, mhc, post_norm, pre_norm, residual
from ..departures import Departures
from ..known import ONE_OF, broadcasts_results
from .layers import BROADCAST, FAST, SOURCE, fast_layer_norm

#: Why the other operators round every operation.
_EACH_ROUNDED = (
    "each operation on 16-bit arrays rounds its result to 16 bits: the gate or the weights, every product and every"
    f" sum; {SOURCE}jax/_src/nn/functions.py"
)

#: Why a result of another shape is accepted if it can be broadcast.
ADDED = (
    broadcasts_results(
        "addition and multiplication broadcast as NumPy's do",
        "https://numpy.org/doc/stable/user/basics.broadcasting.html",
    ),
)

#: The broadcasting that the weighted sum accepts; branches of another shape cannot be stacked.
ONE_LOGIT = (replace(BROADCAST[0], reason="a weight of one element is broadcast by einsum", notes=(ONE_OF["logits"],)),)


def _weighted(x, logits, outputs):
    return (x + jnp.einsum("k,k...->...", jax.nn.softmax(logits), jnp.stack(outputs))).astype(x.dtype)


_BLOCK = replace(FAST, known_violations=(*BROADCAST, *ADDED))
_ARITHMETIC = Departures({"storage=native": _EACH_ROUNDED}, ADDED)

BINDINGS: tuple[Binding, ...] = (
    Binding("residual", "jax x + branch(x)", residual, known_violations=ADDED),
    _BLOCK.binding("pre_norm", "jax x + sublayer(jax.nn.standardize(x))", pre_norm(fast_layer_norm)),
    _BLOCK.binding("post_norm", "jax jax.nn.standardize(x + sublayer(x))", post_norm(fast_layer_norm)),
    _ARITHMETIC.binding("highway", "jax H * t + x * (1 - t)", highway(jax.nn.sigmoid)),
    _ARITHMETIC.binding("mhc", "jax x + einsum(softmax(logits), stack(H))", mhc(_weighted), known_violations=ONE_LOGIT),
)
