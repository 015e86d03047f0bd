"""Every erratum's counter-example gives both values that the page prints: the wrong one and the right one."""

from __future__ import annotations

import re
from fractions import Fraction as F
from math import exp

import numpy as np
import pytest

from normspec.reference import batch_norm, layer_norm, layer_norm_vjp
from normspec.reference.group_norm import group_norm
from normspec.reference.instance_norm import instance_norm
from normspec.reference.rms_norm import rms_norm
from normspec.spec import pages

DIGITS = 5e-5  # values on the page are rounded to four digits


def ln(*x: float, eps: float, gamma=None):
    """Layer normalisation of one group by the reference."""
    gamma = None if gamma is None else np.asarray(gamma, float)
    return layer_norm(np.asarray([x], float), gamma, None, eps=eps, axes=(-1,))[0]


def dx(*x: float, eps: float, h: tuple[float, ...]):
    """Gradient of x for one group and gamma = 1, by the reference."""
    return layer_norm_vjp(np.asarray([x], float), None, None, np.asarray([h], float), eps=eps, axes=(-1,))[0][0]


def moments(x: np.ndarray) -> tuple[np.ndarray, float]:
    """Deviations and biased variance."""
    d = x - x.mean()
    return d, float((d * d).mean())


def near(*values: float | F):
    """Values to within the last place of the reference, whose results are rounded once."""
    return pytest.approx([float(value) for value in values], rel=1e-15, abs=1e-15)


def test_err_1_deviation_under_the_root():
    """sqrt(sigma + eps) gives 8/7 where 8/9 is right, and breaks the bound."""
    x, eps = (-2.0, 2.0), 17 / 16
    assert ln(*x, eps=eps) == near(F(-8, 9), F(8, 9))
    d, var = moments(np.asarray(x))
    printed = d / np.sqrt(np.sqrt(var) + eps)
    assert printed == near(F(-8, 7), F(8, 7))
    assert abs(printed[0]) > 1


def test_err_2_eps_on_the_deviation():
    """sigma + eps gives 4/13 where 4/5 is right, and 0.9990 where 0.7071 is."""
    d, var = moments(np.asarray((-4.0, 4.0)))
    assert ln(-4, 4, eps=9) == near(F(-4, 5), F(4, 5))
    assert d / (np.sqrt(var) + 9) == near(F(-4, 13), F(4, 13))
    d, var = moments(np.asarray((-1e-3, 1e-3)))
    assert ln(-1e-3, 1e-3, eps=1e-6) == pytest.approx([-0.7071, 0.7071], abs=DIGITS)
    assert d / (np.sqrt(var) + 1e-6) == pytest.approx([-0.9990, 0.9990], abs=DIGITS)


def test_err_2_gradient_of_a_constant_group():
    """The derivative of sqrt(var) + eps is not a number in a constant group; that of sqrt(var + eps) is finite."""
    with np.errstate(all="ignore"):
        slope = np.float64(1) / (2 * np.sqrt(np.float64(0)))  # d sqrt(var) / d var at 0
        printed = slope * 0.0  # times d var / dx = 2 d / n = 0
    assert np.isnan(printed)
    assert np.isfinite(dx(3, 3, eps=4, h=(1, 0))).all()


def test_err_3_no_eps():
    """Without eps a constant group gives NaN, and a group of small variance gives 1."""
    assert ln(3, 3, eps=1e-5) == near(0, 0)
    d, var = moments(np.asarray((3.0, 3.0)))
    with np.errstate(all="ignore"):
        assert np.isnan(d / np.sqrt(var)).all()
    d, var = moments(np.asarray((-1e-3, 1e-3)))
    assert d / np.sqrt(var) == near(-1, 1)
    assert ln(-1e-3, 1e-3, eps=1e-6) == pytest.approx([-0.7071, 0.7071], abs=DIGITS)


def test_err_4_affine_invariance():
    """A scale changes y unless eps is scaled too, and a negative one turns its sign."""
    assert ln(-3, 3, eps=16) == near(F(-3, 5), F(3, 5))
    assert ln(-12, 12, eps=16) == pytest.approx([-0.9487, 0.9487], abs=DIGITS)
    assert ln(-12, 12, eps=256) == near(F(-3, 5), F(3, 5))
    assert ln(3, -3, eps=16) == near(F(3, 5), F(-3, 5))
    assert ln(-3 + 7, 3 + 7, eps=16) == near(F(-3, 5), F(3, 5))


#: The group of ERR-5 and ERR-6: x = (-1, 1), eps = 3, h = (1, 0), in exact arithmetic.
XHAT, H, R = (F(-1, 2), F(1, 2)), (F(1), F(0)), F(1, 2)
C1, C2 = sum(H) / 2, sum(h * z for h, z in zip(H, XHAT, strict=True)) / 2


def test_err_5_extra_xhat():
    """An xhat on the mean term gives (9/16, -1/16) where (3/16, -3/16) is right, and a sum of 1/2."""
    means = [C1, C2]
    assert means == [F(1, 2), F(-1, 4)]
    right = [R * (h - C1 - z * C2) for h, z in zip(H, XHAT, strict=True)]
    printed = [R * (h - z * C1 - z * C2) for h, z in zip(H, XHAT, strict=True)]
    assert right == [F(3, 16), F(-3, 16)]
    assert printed == [F(9, 16), F(-1, 16)]
    assert sum(printed) == F(1, 2)
    assert dx(-1, 1, eps=3, h=(1, 0)) == near(*right)


def test_err_6_reciprocal_deviation():
    """1/sigma in the gradient gives twice the right dx, and divides by 0 in a constant group."""
    sigma = F(1)
    printed = [(h - C1 - z * C2) / sigma for h, z in zip(H, XHAT, strict=True)]
    assert printed == [F(3, 8), F(-3, 8)]
    assert dx(-1, 1, eps=3, h=(1, 0)) == near(F(3, 16), F(-3, 16))
    assert dx(3, 3, eps=4, h=(1, 0)) == near(F(1, 4), F(-1, 4))
    assert moments(np.asarray((3.0, 3.0)))[1] == 0


def test_err_7_gain_by_sample():
    """A gain indexed by the sample gives each sample its own multiple of xhat."""
    x = np.asarray([(-1.0, 1.0)] * 2)
    gamma = np.asarray((1.0, 2.0))
    right = layer_norm(x, gamma, None, eps=3.0, axes=(-1,))
    printed = gamma[:, None] * layer_norm(x, None, None, eps=3.0, axes=(-1,))
    assert right.tolist() == [[-0.5, 1], [-0.5, 1]]
    assert printed.tolist() == [[-0.5, 0.5], [-1, 1]]


def test_err_8_effect_at_the_start():
    """With gamma = 1 and beta = 0 y is far from x; a uniform cotangent has gradient 0, and xhat a share of 9/25."""
    assert ln(96, 104, eps=9, gamma=(1, 1)) == near(F(-4, 5), F(4, 5))
    assert dx(96, 104, eps=9, h=(1, 1)).tolist() == [0, 0]
    assert dx(96, 104, eps=9, h=(F(-4, 5), F(4, 5))) == near(F(-36, 625), F(36, 625))


def test_err_9_normalised_scores():
    """Scores normalised in the softmax give a weight of 0.8808 where Pre-LN gives 0.9999999."""
    tokens = np.asarray([(-1.0, 1.0), (1.0, -1.0)])
    normalised = layer_norm(tokens, None, None, eps=0.0, axes=(-1,))
    assert normalised.tolist() == tokens.tolist()

    def weight(scores) -> float:
        return 1 / (1 + exp(scores[1] - scores[0]))

    scores = (2 * normalised) @ (2 * normalised).T
    assert scores[0].tolist() == [8, -8]
    assert weight(scores[0]) == pytest.approx(0.9999999, abs=5e-8)
    assert weight(scores[0]) == pytest.approx(1 / (1 + exp(-16)))
    assert ln(*scores[0], eps=0) == near(1, -1)
    assert weight(ln(*scores[0], eps=0)) == pytest.approx(0.8808, abs=DIGITS)
    assert weight(ln(*(1000 * scores[0]), eps=0)) == pytest.approx(0.8808, abs=DIGITS)


def test_err_10_batch_axis_alone():
    """Statistics of each position make two positions equal that differ."""
    x = np.asarray([[[-3.0], [-1.0]], [[1.0], [3.0]]])
    zeros, ones = np.zeros(1), np.ones(1)
    y, mean, var = batch_norm(x, None, None, zeros, ones, eps=4.0, momentum=1.0, training=True, channel_axis=-1)
    assert y.ravel() == near(-1, F(-1, 3), F(1, 3), 1)
    assert (mean.tolist(), var.tolist()) == ([0], [5])
    centred = x - x.mean(axis=0)
    printed = centred / np.sqrt((centred**2).mean(axis=0) + 4)
    assert printed.ravel() == pytest.approx([-0.7071, -0.7071, 0.7071, 0.7071], abs=DIGITS)


def slope(f, x: float) -> float:
    """Derivative of f at x by a central difference, right to about 1e-9."""
    h = 1e-5
    return (f(x + h) - f(x - h)) / (2 * h)


def sigmoid(z: float) -> float:
    """The logistic function."""
    return 1 / (1 + exp(-z))


def test_err_11_highway_gate_term():
    """Without (H - x) dT/dx the highway gradient is 2 where 5/2 is right, and 1/2 where -1/2 is."""
    t, dt = F(1, 2), F(1, 4)  # sigmoid and its derivative at 0
    x, h, dh = F(1), F(3), F(3)
    printed = t * dh + (1 - t)
    assert (printed, printed + (h - x) * dt) == (2, F(5, 2))
    assert slope(lambda x: 3 * x * sigmoid(x - 1) + x * (1 - sigmoid(x - 1)), 1.0) == pytest.approx(2.5, abs=1e-8)
    h, dh, dt = F(0), F(0), F(4) * F(1, 4)
    printed = t * dh + (1 - t)
    assert (printed, printed + (h - x) * dt) == (F(1, 2), F(-1, 2))
    assert slope(lambda x: x * (1 - sigmoid(4 * (x - 1))), 1.0) == pytest.approx(-0.5, abs=1e-8)


def test_err_11_is_right_for_a_constant_gate():
    """Where the gate does not depend on x, the printed gradient is the derivative."""
    assert slope(lambda x: 3 * x * 0.5 + x * 0.5, 1.0) == pytest.approx(2.0, abs=1e-8)


def test_err_12_residual_gradient():
    """F = -identity makes the residual gradient 0 where at least 1 is printed, and ten halves make it 1/1024."""
    g = F(1)

    def dx(slopes: list[F]) -> F:
        found = g
        for of_branch in slopes:
            found = found + of_branch * found  # g + J^T g
        return found

    assert dx([F(-1)]) == 0
    assert slope(lambda x: x + -x, 1.0) == 0
    assert dx([F(-1, 2)] * 10) == F(1, 1024)
    assert dx([F(1)] * 10) == 1024


def test_err_13_second_root_of_the_mean_square():
    """The root of RMS + eps gives (1/4, 7/4) where (1/6, 7/6) is right, and breaks the bound."""
    x = np.asarray([[1.0, 7.0]])
    assert rms_norm(x, None, eps=11.0, axes=(-1,))[0] == near(F(1, 6), F(7, 6))
    printed = x[0] / np.sqrt(np.sqrt((x * x).mean()) + 11)
    assert printed == near(F(1, 4), F(7, 4))
    assert printed[1] > np.sqrt(2) == pytest.approx(1.4142, abs=DIGITS)


def test_err_14_number_of_groups():
    """One group spans the whole sample, and as many as there are channels are instance normalisation."""
    x, settings = np.asarray([[[1.0, 3.0], [5.0, 7.0]]]), {"eps": 4.0, "channel_axis": 1}
    assert group_norm(x, None, None, groups=1, **settings).ravel() == near(-1, F(-1, 3), F(1, 3), 1)
    whole = layer_norm(x, None, None, eps=4.0, axes=(-2, -1))
    assert group_norm(x, None, None, groups=1, **settings).tolist() == whole.tolist()
    apart = group_norm(x, None, None, groups=2, **settings)
    assert apart.ravel() == pytest.approx([-0.4472, 0.4472, -0.4472, 0.4472], abs=DIGITS)
    assert apart.tolist() == instance_norm(x, None, None, **settings).tolist()


def test_err_15_correlations_stay():
    """The channels' correlation is 3/5 before and after."""
    x = np.asarray([[-1.0, -7.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 7.0]])
    statistics = np.zeros(2), np.ones(2)
    y, *_ = batch_norm(x, None, None, *statistics, eps=0.0, momentum=0.5, training=True, channel_axis=1)
    assert y.ravel() == near(-1, F(-7, 5), -1, F(1, 5), 1, F(-1, 5), 1, F(7, 5))
    assert [np.corrcoef(one.T)[0, 1] for one in (x, y)] == near(F(3, 5), F(3, 5))


def test_every_erratum_is_tested():
    """Each number on the page has a test of that number here, and the numbers run from 1."""
    numbers = [int(number) for number in re.findall(r"^### ERR-(\d+): ", pages()["errata"], re.M)]
    assert numbers == list(range(1, len(numbers) + 1))
    tested = {int(m[1]) for name in globals() if (m := re.match(r"test_err_(\d+)_", name))}
    assert tested == set(numbers)
