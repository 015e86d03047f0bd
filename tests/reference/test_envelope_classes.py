"""How the envelopes of different classes and of scaled problems compare."""

from __future__ import annotations

import itertools
from functools import partial

import attrs
import ml_dtypes
import numpy as np
import pytest

from normspec.reference.accuracy import AccuracyClass, Arithmetic
from normspec.reference.envelope import envelope_of
from normspec.reference.formats import FORMATS

from .envelope_data import adversarial, problem, regimes
from .envelope_judge import Problem
from .envelope_zoo import cast

#: The values of each choice, every one at least as tight as the next.
ORDERS = {
    "variance": [("centred", "shifted"), ("centred", "one-pass")],
    "affine": [("centred", "folded")],
    "storage": list(itertools.combinations(("H0", "H1", "H2"), 2)),
    "flushed": [(frozenset(), frozenset(FORMATS))],
}
PAIRS = [
    pytest.param(name, *pair, id="-".join((name, *pair)) if name != "flushed" else "subnormals kept-flushed")
    for name, pairs in ORDERS.items()
    for pair in pairs
]


def every_bound(rows: Problem, accuracy: AccuracyClass) -> dict[str, np.ndarray]:
    """All envelopes of a problem, those of second order and the running statistics too."""
    found = {f"first {name}": bound for name, bound in rows.bounds(accuracy).items()}
    envelope = rows.envelope(accuracy)
    a, b = np.roll(rows.g, 1, axis=1), rows.beta
    found |= {f"second {name}": bound for name, bound in envelope.vjp_vjp(rows.g, a, b, b).items()}
    found["jvp"] = envelope.jvp(a, b, b)
    if rows.operator == "batch_norm":
        found |= envelope.running(rows.beta, np.abs(rows.beta), 0.1, bessel=True)
    return {name: np.where(np.isnan(bound), np.inf, bound) for name, bound in found.items()}


@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
@pytest.mark.parametrize(("name", "tight", "weak"), PAIRS)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_a_weaker_class_is_never_tighter(dtype, name, tight, weak, operator):
    """For each pair of classes, all else equal, every element's envelope in the weaker is at least as large."""
    hard = np.clip(adversarial(np.random.default_rng(0), 2, 8, np.float32), -1e4, 1e4).astype(dtype)
    rows = problem(np.concatenate([hard, regimes(8, 1e-5, dtype, 0)]), operator)
    for other in (AccuracyClass(), AccuracyClass(affine="centred", storage="H2", variance="one-pass")):
        low, high = (every_bound(rows, attrs.evolve(other, **{name: value})) for value in (tight, weak))
        for result in low:
            assert (low[result] <= high[result] * (1 + 1e-12)).all(), result


@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
def test_a_coarser_format_is_never_tighter(operator):
    """The same numbers have larger envelopes in float32 than in float64, and in bfloat16 than in float16."""
    x = np.round(8 * np.random.default_rng(1).standard_normal((6, 8))) / 8
    rows = problem(x, operator)
    rows = cast(cast(rows, np.dtype(ml_dtypes.bfloat16)), np.dtype(np.float16))  # exact in both
    sizes = [
        every_bound(cast(rows, np.dtype(dtype)), AccuracyClass())
        for dtype in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)
    ]
    for fine, coarse in itertools.pairwise(sizes):
        assert all((fine[result] <= coarse[result]).all() for result in fine)


@pytest.mark.parametrize("k", [-10, 7])
@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
def test_scaling_by_a_power_of_two_scales_the_envelope(operator, k):
    """x 2^k and eps 4^k leave the envelopes of y and the parameter gradients, and scale that of dx by 2^-k."""
    x = np.random.default_rng(2).standard_normal((6, 8)).astype(np.float32)
    rows = problem(x, operator, eps=2.0**-17)
    scaled = attrs.evolve(rows, x=(rows.x * np.float32(2.0**k)), eps=rows.eps * 4.0**k)
    arithmetic = attrs.evolve(Arithmetic.of(np.float32), eta=0.0, eta_data=0.0, eta_parameter=0.0)
    found = []
    for each in (rows, scaled):
        build = partial(envelope_of, operator)
        zero = () if operator == "layer_norm" else (np.zeros(6), np.ones(6))
        envelope = build(each.x, each.gamma, each.beta, *zero, **each.settings, arithmetic=arithmetic)
        found.append({"y": envelope.y(), **envelope.gradients(each.g)})
    for result, exponent in (("y", 0), ("dx", -k), ("dgamma", 0), ("dbeta", 0)):
        np.testing.assert_allclose(found[1][result], found[0][result] * 2.0**exponent, rtol=1e-12)


def test_scaling_cotangents_scales_gradients():
    """A cotangent times 2^k scales the envelope of every gradient by 2^k."""
    rows = problem(np.random.default_rng(3).standard_normal((6, 8)).astype(np.float32), "layer_norm")
    larger = attrs.evolve(rows, g=rows.g * np.float32(2.0**9))
    for result in ("dx", "dgamma", "dbeta"):
        np.testing.assert_allclose(larger.bounds()[result], rows.bounds()[result] * 2.0**9, rtol=1e-9)


@pytest.mark.parametrize("storage", ["H0", "H1", "H2", "native"])
def test_storage_means_nothing_to_wide_formats(storage):
    """In float32 and float64 all storage classes are the same."""
    for dtype in (np.float32, np.float64):
        rows = problem(np.random.default_rng(4).standard_normal((6, 8)).astype(dtype), "layer_norm")
        plain, other = every_bound(rows, AccuracyClass()), every_bound(rows, AccuracyClass(storage=storage))
        assert all((plain[result] == other[result]).all() for result in plain)
