"""Probes on functions with several changes, and their answers about odd functions."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.conformance.compare.decimals import shortest
from normspec.conformance.compare.placement import PLACEMENTS
from normspec.conformance.compare.run import compare
from normspec.spec.operators import OPERATORS

from .planted import BASES, OnePass, OnTheDeviation, Plain, Unbiased, target

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version


def _text(change, row, operator="layer_norm", **options):
    return compare(target(operator, change, "own"), op=operator, **options).cell(operator, row, "own").text


def _placed(placement):
    class Placed(Plain):
        default_eps = 0.03125

        def rstd(self, variance, eps):
            n = variance.dtype.type
            values = [placement.factor(float(np.sqrt(v)), float(eps)) if v > 0 else 0.0 for v in variance.ravel()]
            return np.array(values, n).reshape(variance.shape)

    return Placed


@pytest.mark.parametrize("placement", PLACEMENTS, ids=lambda p: p.name)
@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm", "rms_norm"])
def test_every_placement_is_named_and_its_default_solved_for(placement, operator):
    """Each formula is distinguished from all others, and gives the equation for eps."""
    table = compare(target(operator, _placed(placement), "own"), op=operator)
    assert table.cell(operator, "eps_placement", "own").text == placement.words(OPERATORS[operator])
    default = table.cell(operator, "default_eps", "own").text
    assert default == ("unclear" if placement.solve is None else "0.03125")
    effective = table.cell(operator, "eps_effective", "own").text
    assert effective == ("unclear" if placement.solve is None else "as given")


@pytest.mark.parametrize("eps", [1e-3, 1e-5, 1e-6, 1e-7, 1e-12])
def test_a_default_is_found_to_the_last_digit(eps):
    """For any default, the shortest decimal near it is shown."""
    change = type("Change", (Plain,), {"default_eps": eps})
    assert _text(change, "default_eps") == f"{eps:g}"
    both = type("Both", (Unbiased, OnTheDeviation), {"default_eps": eps})
    assert _text(both, "default_eps") == f"{eps:g}"


class _EpsOfTheDtype(Plain):
    default_eps = 3 * 2.0**-30  # a number that no call passes

    def rstd(self, variance, eps):
        eps = np.finfo(self.data).eps if eps == self.default_eps else eps
        return super().rstd(variance, variance.dtype.type(eps))


def test_a_default_that_depends_on_the_dtype_is_told_for_both():
    """A default of 2^-23 in float32 and 2^-52 in float64 is shown with both."""
    assert _text(_EpsOfTheDtype, "default_eps", "rms_norm") == "1.19209e-07; 2.220446e-16 in float64"
    assert _text(_EpsOfTheDtype, "default_eps", "rms_norm", dtype="float64") == "2.220446e-16"


def test_changes_do_not_hide_one_another():
    """Three things changed at once show in three rows."""
    change = type("Three", (Unbiased, OnTheDeviation, OnePass), {})
    table = compare([target("batch_norm"), target("batch_norm", change, "own")], op="batch_norm")
    found = {row.key: row.cells[1].text for _, row in table.differences}
    # The moments of the first class in line call those of the last: the variance is unbiased and in one pass.
    assert found == {
        "eps_placement": "on the deviation",
        "variance": "unbiased (n - 1)",
        "accuracy": "one-pass / centred",
    }


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("operator", BASES)
def test_a_table_in_another_dtype_says_the_same(operator, dtype):
    """A plain function is the same in every dtype: nothing that a row says depends on it."""
    texts = []
    for one in ("float32", dtype):
        (section,) = compare(target(operator), op=operator, dtype=one).sections
        # In 16 bits only results are rounded, which hides how they were computed.
        texts.append({row.key: row.cells[0].text for row in section.rows if row.key not in ("accuracy", "constant")})
    assert texts[0] == texts[1]


class _NotDivided(Plain):
    def variance(self, x, mean):
        return super().variance(x, mean) * x.dtype.type(x.shape[1])


class _MeanSubtracted(Plain):
    def read(self, array, role):
        values = super().read(array, role)
        return values - values.mean(axis=-1, keepdims=True) if role == "x" else values


class _RoundedBeforeTheGain(Plain):
    def normalise(self, x, s):
        return super().normalise(x, s).astype(self.data).astype(self.work)


@pytest.mark.parametrize(
    ("change", "row", "text"),
    [
        (_NotDivided, "mean_square", "not divided"),
        (_NotDivided, "eps_placement", "inside the root"),
        (_MeanSubtracted, "mean_square", "divided by n; mean subtracted"),
        (_RoundedBeforeTheGain, "float16", "before-gain"),
        (OnTheDeviation, "eps_placement", "on the root mean square"),
        (Plain, "eps_zero", "as given; zeros NaN"),
        (Plain, "accuracy", "within rounding"),
    ],
)
def test_what_an_rms_norm_can_do_otherwise_is_named(change, row, text):
    """A sum instead of a mean, a subtracted mean, a rounding before the gain: each in the words of rms_norm."""
    assert _text(change, row, "rms_norm") == text


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda g: np.abs(g), "the magnitude of gamma"),
        (lambda g: np.ones_like(g), "not used"),
        (np.exp, "another function of gamma"),
    ],
)
def test_what_becomes_of_gamma_is_named(change, text):
    """A gain that is neither gamma nor 1 + gamma is distinguished from both."""

    class Changed(Plain):
        def parameter(self, array, role):
            value = super().parameter(array, role)
            return change(value) if role == "gamma" else value

    assert _text(Changed, "gain") == text


@pytest.mark.parametrize(
    ("value", "tolerance", "text"),
    [(9.99999974e-06, 1e-6, "1e-05"), (0.0010000001, 1e-6, "0.001"), (0.1, 1e-9, "0.1"), (1.001e-5, 1e-6, "1.001e-05")],
)
def test_numbers_are_written_as_short_as_is_known(value, tolerance, text):
    """A solved number is rounded to the digits that its error leaves."""
    assert shortest(value, tolerance) == text
