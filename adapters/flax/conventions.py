"""The conventions of Flax's normalisations: the two interfaces share their statistics and differ in their dtypes."""

from __future__ import annotations

from collections.abc import Mapping

SOURCE = "https://github.com/google/flax/blob/main/flax/"

_ONE_PASS = (
    "use_fast_variance=True, the default, forms the variance as mean(x^2) - mean(x)^2, clipped at 0;"
    f" {SOURCE}linen/normalization.py (_compute_stats), https://github.com/google/flax/issues/1491"
)

_OLD = (
    "momentum is the decay of the running statistics, so the weight of the old one;"
    " https://flax.readthedocs.io/en/latest/api_reference/flax.nnx/nn/normalization.html"
)

#: Why 16-bit data has class H1.
PARTS_ROUNDED = (
    "H1",
    "x is converted to float32 twice, for the statistics and for the difference from the mean, so that the parts of dx"
    f" that come by either are each rounded to 16 bits before they are added; {SOURCE}linen/normalization.py"
    " (_compute_stats, _normalize)",
)

#: Why it has class native in nnx.BatchNorm.
INFERENCE_ROUNDED = (
    "native",
    "with dtype=bfloat16 inference rounds the running statistics to 16 bits, and every operation after them;"
    f" {SOURCE}nnx/nn/normalization.py (BatchNorm.__call__)",
)


def declared(
    storage: tuple[str, str] | None, *, fast: bool, statistics: bool
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Conventions with reasons, for a class of 16-bit data, one or two passes, and running statistics or none."""
    found: dict[str, tuple[str, str]] = {}
    if storage is not None:
        found["storage"] = storage
    if fast:
        found["variance_algorithm"] = ("one-pass", _ONE_PASS)
    if statistics:
        found["momentum"] = ("old", _OLD)
    return {key: value for key, (value, _) in found.items()}, {key: reason for key, (_, reason) in found.items()}
