"""
Seams: what is recorded around the sublayer of a layer that brings its own.

Between the seams lies the layer's own sublayer, attention for one, which no bound covers. At the seams stand the
normalisation and the addition of a pre_norm or post_norm block, and these are judged on what was recorded.
"""

from __future__ import annotations

#: What one block records, each an array.
RECORDED: tuple[str, ...] = (
    "x",  # the block's input
    "gamma",  # the scale and shift of its normalisation
    "beta",
    "received",  # what its sublayer was handed
    "returned",  # what its sublayer returned, as it is added
    "y",  # the block's output
    "g",  # the cotangent of y
    "g_returned",  # the cotangent of what the sublayer returned
    "g_received",  # the cotangent of what it was handed, by way of the sublayer
    "dx",  # the gradient of the block's input, by way of this block alone
    "dgamma",
    "dbeta",
)
