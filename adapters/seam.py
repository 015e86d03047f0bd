"""
Seams: the record around the sublayer of a layer that has sublayers of its own.

Between the seams is the layer's own sublayer, such as attention, which no bound covers. At the seams are the
normalisation and the addition of a pre_norm or post_norm block; they are judged on the record.
"""

from __future__ import annotations

#: The arrays that one block records.
RECORDED: tuple[str, ...] = (
    "x",  # the block's input
    "gamma",  # the scale and shift of its normalisation
    "beta",
    "received",  # the sublayer's input
    "returned",  # the sublayer's output, as it is added
    "y",  # the block's output
    "g",  # the cotangent of y
    "g_returned",  # the cotangent of ``returned``
    "g_received",  # the cotangent of ``received``, through the sublayer
    "dx",  # the gradient of the block's input, only through this block
    "dgamma",
    "dbeta",
)
