"""Accuracy and storage: the tightest class of spec/accuracy.md whose envelope holds all results."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping

import attrs
import numpy as np

from ...reference.accuracy import AccuracyClass
from ...reference.double_double import DD, div, mul, sqrt
from ...spec.operators import OPERATORS
from ..cases.case import Case
from ..cases.regimes import draw_group
from ..judging.composed_truth import ComposedTruth
from ..judging.findings import compare
from ..judging.truth import Truth, arithmetic_of, gradient_name
from .bench import NEGLIGIBLE_EPS, Bench
from .failing import UnclearAnswer
from .plain import SHAPE, composed_case
from .probe import BLOCKS, NORMALISATIONS, probe
from .table import Cell
from .variance import relative_variance

#: The tightest first: by the variance (centred, shifted about an element, one pass), then by the affine map.
_ARITHMETICS = [
    AccuracyClass(variance=variance, affine=affine)
    for variance in ("centred", "shifted", "one-pass")
    for affine in ("centred", "folded")
]
#: The storage classes, the tightest first, each with the weakest arithmetic: only storage is tested.
_STORAGES = [
    AccuracyClass(variance="one-pass", affine="folded", storage=storage) for storage in ("H0", "H1", "H2", "native")
]
#: The same for an operator without a mean: rounding before the gain is within H1 there.
_STORAGES_UNCENTRED = [_STORAGES[0], attrs.evolve(_STORAGES[0], cast="before-gain"), *_STORAGES[2:]]

#: Groups that tell the classes apart: means far above the deviation, outliers, heavy tails, and ordinary ones.
_GROUPS = (
    *(("offset", index) for index in range(8)),
    ("one_hot", 3),
    ("one_hot", 0),
    ("heavy_tailed", 0),
    ("heavy_tailed", 1),
    ("normal", 0),
    ("normal", 1),
    ("integers", 0),
    ("witness", 7),
    ("witness", 8),
)


@attrs.frozen(eq=False)
class Observed:
    """The results of a target on one case: its outputs, or its gradients."""

    case: Case
    #: y, dx, dgamma, dbeta.
    results: Mapping[str, np.ndarray]
    #: The variance that was used, divided by the biased one.
    divisor: float = 1.0

    def ratio(self, accuracy: AccuracyClass) -> float:
        """The worst error divided by the envelope of a class."""
        truth = self.case.truth("exact", "biased", Truth if self.case.operator in NORMALISATIONS else ComposedTruth)
        arithmetic, worst = arithmetic_of(self.case, accuracy), 0.0
        exact = truth.outputs() if "y" in self.results else truth.gradients()
        for name, got in self.results.items():
            value, bound = exact[name], truth.bound(name, arithmetic, range_rule=False)
            assert value is not None
            if self.divisor != 1.0 and name in ("y", "dx", "dgamma"):
                value, bound = _scaled(value, bound, self.divisor)
            worst = max(worst, compare(got, value, bound).ratio)
        return worst


def _scaled(value: DD, bound: np.ndarray, divisor: float) -> tuple[DD, np.ndarray]:
    """
    The value and its envelope if the variance is a multiple of the biased one.

    eps is negligible here, so y, dx and dgamma are divided by the root of the divisor.
    """
    zero = np.zeros_like(value.hi)
    root = sqrt(DD(np.full_like(value.hi, divisor), zero))
    one = DD(np.ones_like(value.hi), zero)
    return mul(value, div(one, root)), bound / math.sqrt(divisor)


def _cases(bench: Bench) -> Iterator[Case]:
    """Hard groups, scaled up by an exact power of two so that eps has no influence, in training and in inference."""
    scale = {"float16": 1.0, "float64": 2.0**60}.get(bench.dtype, 2.0**20)
    groups, n = SHAPE
    rows = np.array(
        [
            draw_group(name, index, n=n, eps=NEGLIGIBLE_EPS, format=bench.format, seed=0, row=row)
            for row, (name, index) in zip(range(groups), itertools.cycle(_GROUPS), strict=False)
        ]
    )
    gamma, g = _gamma_and_g(bench)
    yield bench.case(rows * scale, gamma=gamma, g=g)
    if bench.record.has_modes:
        # Statistics near the data's own: x - mean is then exact, or nearly so, and x times a factor is not.
        mean, var = rows.mean(axis=1) * scale, rows.var(axis=1) * scale**2
        yield bench.case(rows * scale, gamma=gamma, running=(mean, var * 1.25), training=False)


def _narrow_cases(bench: Bench) -> Iterator[Case]:
    """Ordinary groups in 16 bits: deviation 2, so that no power of r leaves float16; means of a few deviations."""
    if bench.operator not in NORMALISATIONS:
        yield composed_case(bench, SHAPE, NEGLIGIBLE_EPS)
        return
    random = np.random.Generator(np.random.Philox(16))
    rows = 2 * random.standard_normal(SHAPE) + random.integers(-6, 7, (SHAPE[0], 1))
    gamma, g = _gamma_and_g(bench)
    yield bench.case(rows, gamma=gamma, g=g)


def _gamma_and_g(bench: Bench) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.Generator(np.random.Philox(12))
    return random.standard_normal(bench.parameters(*SHAPE)) + 0.5, random.standard_normal(SHAPE) + 0.5


def _class(
    bench: Bench, classes: Iterable[tuple[str, AccuracyClass]], cases: Iterator[Case], *, gradients: bool
) -> Cell:
    """The name of the first class whose envelope holds all results; the ratio to the last class if none does."""
    observed: list[Observed] = []
    unbiased = bench.operator in NORMALISATIONS and _unbiased(bench)
    for case in cases:
        training = case.settings.get("training", True)
        if gradients and not training:
            continue
        if gradients:
            results = {gradient_name(name): value for name, value in bench.pull(case).items()}
        else:
            results = {"y": bench.outputs(case)["y"]}
        n = case.layout.size
        observed.append(Observed(case, results, n / (n - 1) if unbiased and training else 1.0))
    ratios: dict[str, float] = {}
    for name, accuracy in classes:
        worst = ratios[name] = max([0.0, *(one.ratio(accuracy) for one in observed)])
        if worst <= 1:
            return Cell(name, evidence={"ratios": ratios})
    return Cell("no class", evidence={"ratios": ratios})


def _arithmetics(bench: Bench) -> Iterator[tuple[str, AccuracyClass]]:
    """The classes of arithmetic, with their names."""
    for one in _ARITHMETICS:
        # Without a mean nothing cancels, and all classes of arithmetic are the same.
        yield f"{one.variance} / {one.affine}" if bench.record.centred else "within rounding", one


def _unbiased(bench: Bench) -> bool:
    """Whether the variance is divided by n - 1. That scales y, and is not about accuracy."""
    return abs(relative_variance(bench) / (4 / 3) - 1) < 2.0**-4


@probe("accuracy", "accuracy of y")
def accuracy_of_y(bench: Bench) -> Cell:
    """Finds how the variance is formed and how the affine map is applied, as far as errors show it."""
    return _class(bench, _arithmetics(bench), _cases(bench), gradients=False)


@probe("accuracy_gradients", "accuracy of gradients")
def accuracy_of_gradients(bench: Bench) -> Cell:
    """Finds the same for dx, dgamma and dbeta."""
    return _class(bench, _arithmetics(bench), _cases(bench), gradients=True)


def _stored(bench: Bench, *, gradients: bool) -> Cell:
    if bench.operator in BLOCKS and not abs(relative_variance(bench) - 1) < 2.0**-4:
        raise UnclearAnswer("the variance is not the biased one, which hides what is rounded")
    # A composed operator rounds nothing on the way, or each operation. The classes between are the same for it.
    classes = _STORAGES if bench.operator in NORMALISATIONS else [_STORAGES[0], _STORAGES[-1]]
    if not bench.record.centred:
        classes = _STORAGES_UNCENTRED
    named = ((one.storage if one.cast == "last" else one.cast, one) for one in classes)
    return _class(bench, named, _narrow_cases(bench), gradients=gradients)


def _storage_of_y(bench: Bench) -> Cell:
    """Finds what is rounded to 16 bits on the way to y."""
    return _stored(bench, gradients=False)


def _storage_of_gradients(bench: Bench) -> Cell:
    """Finds what is rounded to 16 bits on the way to the gradients."""
    return _stored(bench, gradients=True)


for _dtype in ("float16", "bfloat16"):
    probe(_dtype, f"{_dtype}: y", OPERATORS, dtype=_dtype)(_storage_of_y)
    probe(f"{_dtype}_gradients", f"{_dtype}: gradients", OPERATORS, dtype=_dtype)(_storage_of_gradients)
