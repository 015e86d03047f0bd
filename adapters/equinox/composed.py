"""Transformer blocks around Equinox's LayerNorm, as users write them."""

from __future__ import annotations

from ..binding import Binding
from ..jax.composed import ADDED
from .layers import BROADCAST, SOURCE, layer_norm


def _pre_norm(x, sublayer, gamma, beta, *, eps):
    return x + sublayer(layer_norm(x, gamma, beta, axes=(-1,), eps=eps))


def _post_norm(x, sublayer, gamma, beta, *, eps):
    return layer_norm(x + sublayer(x), gamma, beta, axes=(-1,), eps=eps)


_KNOWN_VIOLATIONS = (*BROADCAST, *ADDED)

BINDINGS: tuple[Binding, ...] = (
    Binding(
        "pre_norm",
        "equinox x + sublayer(nn.LayerNorm(x))",
        _pre_norm,
        known_violations=_KNOWN_VIOLATIONS,
    ),
    Binding(
        "post_norm",
        "equinox nn.LayerNorm(x + sublayer(x))",
        _post_norm,
        conventions={"storage": "H1"},
        reasons={
            "storage": (
                "x + F(x) of 16-bit arrays is rounded to 16 bits before it is normalised;"
                f" {SOURCE}_normalisation.py (LayerNorm.__call__)"
            ),
        },
        known_violations=_KNOWN_VIOLATIONS,
    ),
)
