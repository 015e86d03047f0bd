"""The conventions of Flax's normalisations: the two interfaces share their statistics and differ in their dtypes."""

from __future__ import annotations

from collections.abc import Mapping

from ..departures import Departures
from ..known import KnownViolation

SOURCE = "https://github.com/google/flax/blob/main/flax/"

_ONE_PASS = (
    "use_fast_variance=True, the default, forms the variance as mean(x^2) - mean(x)^2, clipped at 0;"
    f" {SOURCE}linen/normalization.py (_compute_stats), https://github.com/google/flax/issues/1491"
)

_OLD = (
    "momentum is the decay of the running statistics, so the weight of the old one;"
    " https://flax.readthedocs.io/en/latest/api_reference/flax.nnx/nn/normalization.html"
)

#: The class of 16-bit data, and that of nnx.BatchNorm.
PARTS_ROUNDED = {
    "storage=H1": (
        "x is converted to float32 twice, for the statistics and for the difference from the mean, so that the parts of"
        " dx that come by either are each rounded to 16 bits before they are added;"
        f" {SOURCE}linen/normalization.py (_compute_stats, _normalize)"
    ),
}
INFERENCE_ROUNDED = {
    "storage=native": (
        "with dtype=bfloat16 inference rounds the running statistics to 16 bits, and every operation after them;"
        f" {SOURCE}nnx/nn/normalization.py (BatchNorm.__call__)"
    ),
}


def declared(
    storage: Mapping[str, str], *, fast: bool, statistics: bool, known_violations: tuple[KnownViolation, ...] = ()
) -> Departures:
    """What a layer declares: a class of 16-bit data, one pass or two, and running statistics or none."""
    one_pass = {"variance_algorithm=one-pass": _ONE_PASS} if fast else {}
    old = {"momentum=old": _OLD} if statistics else {}
    return Departures({**storage, **one_pass, **old}, known_violations)
