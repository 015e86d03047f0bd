"""A layer's own eps and momentum, read from an attribute or measured."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...spec.errors import WrongSignature
from ...spec.operators import OPERATORS, Groups
from .canonical_calls import Layers
from .constructor import attribute
from .trial import given_of, numbers_of, rank_of, shape_of, size_of, trial_results

#: The deviation of the values on which eps is measured: its square, 2^-40, is below any eps in use.
_DEVIATION = 2.0**-20

#: The relative distance within which a measured number becomes a round one: float32 leaves an error of about 1e-6.
_NEAR = 1e-4


def eps_of(layers: Layers) -> float:
    """The eps of a layer. Raises WrongSignature if it cannot be found out."""
    value = _attribute_number(layers, "eps")
    if value is not None:
        return value
    found = {dtype: _measured_eps(layers, dtype) for dtype in ("float32", "float64")}
    told = {dtype: eps for dtype, eps in found.items() if eps is not None}
    if not told:
        raise WrongSignature(
            f"{layers.label} has no attribute that says its eps, and none can be measured: say --fixed eps=1e-6"
        )
    if len(set(told.values())) > 1:
        each = ", ".join(f"{eps:g} in {dtype}" for dtype, eps in told.items())
        raise WrongSignature(f"{layers.label} has an eps for each dtype ({each}): make it with one, or name its class")
    return next(iter(told.values()))


def momentum_of(layers: Layers) -> float:
    """
    The weight of the new statistic in a layer.

    One training step shows whether the attribute gives this weight or the old statistic's; the attribute's digits are
    used.
    """
    said = _attribute_number(layers, "momentum")
    measured = _measured_momentum(layers)
    weighs = said is None and measured is not None and math.isfinite(measured)
    if weighs and measured != _measured_momentum(layers):
        raise WrongSignature(
            f"{layers.label} gives a new batch another weight in each call, as an average over all batches does:"
            " give it a momentum, or say --fixed training=no to check it in inference"
        )
    if said is None and measured == 0:
        raise WrongSignature(
            f"{layers.label} has no attribute that says its momentum, and its running mean stays what it is: say"
            " --fixed momentum=0.1, or --fixed training=no where it is not trained"
        )
    if said is None:
        return 0.0 if measured is None else _short_number(measured) or measured
    candidates = (1.0 - said, said) if layers.kit.old_momentum else (said, 1.0 - said)
    return candidates[0] if measured is None else min(candidates, key=lambda one: abs(one - measured))


def _measured_momentum(layers: Layers) -> float | None:
    """The weight of a batch of ones beside a running mean of zeros; None if the layer takes no training call."""
    try:
        _, mean, _ = trial_results(layers, np.ones(shape_of(layers, rank_of(layers))), training=True)
    except Exception:  # no training case is judged
        return None
    return float(np.median(mean))


def _attribute_number(layers: Layers, key: str) -> float | None:
    """The number in an attribute, with a usual name for ``key``, of a layer or of one inside it."""
    made = layers.made(size_of(layers), given_of(layers), **numbers_of(layers))
    value: Any = attribute(list(layers.kit.within(made.layer).values()), key)
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def _measured_eps(layers: Layers, dtype: str) -> float | None:
    """The eps in y = (x - mean) / sqrt(variance + eps), measured on alternating values +d and -d; None if none fits."""
    shape = shape_of(layers, rank_of(layers))
    x = np.where(np.arange(math.prod(shape)) % 2, -_DEVIATION, _DEVIATION).reshape(shape)
    record = OPERATORS[layers.operator]
    try:
        y = trial_results(layers, x, dtype=dtype, variance=_DEVIATION**2)[0].astype(np.float64)
    except Exception:
        return None
    mean, variance = 0.0, _DEVIATION**2
    if record.groups is Groups.TRAILING:
        x, y = (values.reshape(-1, math.prod(size_of(layers)))[0] for values in (x, y))
        mean = float(x.mean()) if record.centred else 0.0
        variance = float(((x - mean) ** 2).mean())
    with np.errstate(all="ignore"):
        found = ((x - mean) / y) ** 2 - variance
    measured = float(np.median(found))
    if not (np.abs(found - measured) <= _NEAR * (abs(measured) + variance)).all():
        return None  # another formula, or groups with unequal numbers of +d and -d
    return 0.0 if abs(measured) <= 2 * _NEAR * variance else _short_number(measured)


def _short_number(measured: float) -> float | None:
    """The number with few digits, or the power of two, that is near the measured one; None if there is none."""
    if not (math.isfinite(measured) and measured > 0):
        return None
    candidates = float(f"{measured:.2e}"), 2.0 ** round(math.log2(measured))
    best = min(candidates, key=lambda one: abs(one - measured))
    return best if abs(best - measured) <= _NEAR * measured else None
