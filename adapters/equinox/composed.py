"""Transformer blocks around Equinox's LayerNorm, as users write them."""

from __future__ import annotations

from ..binding import Binding
from ..composed import post_norm, pre_norm
from ..departures import Departures
from ..jax.composed import ADDED
from .layers import BROADCAST, SOURCE, layer_norm

_KNOWN_VIOLATIONS = (*BROADCAST, *ADDED)

#: What a block declares that normalises a sum.
_OF_SUM = Departures(
    {
        "storage=H1": (
            "x + F(x) of 16-bit arrays is rounded to 16 bits before it is normalised;"
            f" {SOURCE}_normalisation.py (LayerNorm.__call__)"
        ),
    },
    _KNOWN_VIOLATIONS,
)

BINDINGS: tuple[Binding, ...] = (
    Binding(
        "pre_norm",
        "equinox x + sublayer(nn.LayerNorm(x))",
        pre_norm(layer_norm),
        known_violations=_KNOWN_VIOLATIONS,
    ),
    _OF_SUM.binding("post_norm", "equinox nn.LayerNorm(x + sublayer(x))", post_norm(layer_norm)),
)
