"""Running statistics: what momentum weighs, its default, and which variance is averaged."""

from __future__ import annotations

import math

import numpy as np

from .bench import Answer, Bench
from .decimals import shortest
from .failing import ByCaller, UnclearAnswer
from .probe import probe
from .table import Cell

#: Four values of mean 9 and biased variance 16; then the running statistics they are averaged with.
_VALUES = np.array([5.0, 13.0, 5.0, 13.0])
_MEAN, _BIASED, _OLD = 9.0, 16.0, 1.0


def _weight(answer: Answer) -> float:
    """The weight of the new mean, from the position of the result between the old and the new mean."""
    assert answer.mean is not None
    weight = (float(answer.mean[0]) - _OLD) / (_MEAN - _OLD)
    if not math.isfinite(weight):
        raise UnclearAnswer(f"the new running mean is {answer.mean[0]}")
    return weight


def _update(bench: Bench) -> Answer:
    return bench.once("update", lambda b: b.call([_VALUES], eps=1.0, running=(_OLD, _OLD)))


@probe("momentum", "momentum weighs", ("batch_norm",))
def momentum(bench: Bench) -> Cell:
    """Compares the weight of the batch's mean in the result with the momentum that was passed."""
    handed = 1 - bench.momentum if bench.binding.conventions.get("momentum") == "old" else bench.momentum
    weight = _weight(_update(bench))
    evidence = {"momentum": handed, "weight_of_new": weight}
    near = 16 * bench.format.unit_roundoff
    for value, name in ((handed, "the new"), (1 - handed, "the old")):
        if abs(weight - value) <= near:
            return Cell(name, evidence=evidence)
    return Cell("neither new nor old", evidence=evidence)


@probe("default_momentum", "default momentum", ("batch_norm",))
def default_momentum(bench: Bench) -> Cell:
    """Measures the weight of the new mean in a call without momentum."""
    if bench.binding.defaults is None:
        raise ByCaller(f"{bench.binding.name} has no default momentum")
    wide = bench.widest
    weight = _weight(wide.with_defaults(wide.case([_VALUES], running=(_OLD, _OLD))))
    # The running mean is rounded to its dtype. The weight keeps all but a few of its digits.
    tolerance = max(256 * wide.format.unit_roundoff, 2.0**-20)
    return Cell(
        f"{shortest(weight, tolerance)} of the new" if weight > tolerance else "0 of the new",
        evidence={"weight_of_new": weight, "dtype": wide.dtype},
    )


@probe("running_variance", "running variance", ("batch_norm",))
def running_variance(bench: Bench) -> Cell:
    """Computes the variance that entered the average, from the weight that the mean shows."""
    answer = _update(bench)
    assert answer.var is not None
    weight = _weight(answer)
    entered = (float(answer.var[0]) - (1 - weight) * _OLD) / weight if weight else math.nan
    if not math.isfinite(entered):
        raise UnclearAnswer(f"the new running variance is {answer.var[0]}, at weight {weight:g}")
    evidence = {"entered": entered, "biased": _BIASED, "weight_of_new": weight}
    for value, name in (
        (_BIASED, "biased"),
        (_BIASED * 4 / 3, "Bessel (n - 1)"),
        (_BIASED + 1, "biased, with eps"),
        (_BIASED * 4 / 3 + 1, "Bessel, with eps"),
    ):
        if abs(entered - value) <= max(2.0**-9, 16 * bench.format.unit_roundoff) * value:
            return Cell(name, evidence=evidence)
    return Cell(f"{shortest(entered / _BIASED, 2.0**-9)} times biased", evidence=evidence)
