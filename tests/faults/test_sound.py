"""The sound variants agree with a plain float64 evaluation, and keep the contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from normspec.conformance.sound import DECLARED, SOUND, Sound

from .probes import DTYPES, Situation, attempt, normal

pytestmark = pytest.mark.exhaustive

#: Those of the operators that stand alone; test_composed_sound.py has the others.
ALONE = ("layer_norm", "batch_norm")
every_sound = pytest.mark.parametrize("sound", [s for s in SOUND if s.operator in ALONE], ids=lambda sound: sound.name)
#: Conventions of functions that are handed or return something else than the case holds.
TRANSLATED = {"float64", "mixed_dtypes", "gain"}
every_declared = pytest.mark.parametrize(
    "sound",
    [s for s in DECLARED if s.operator in ALONE and not TRANSLATED & s.conventions.keys()],
    ids=lambda sound: sound.name,
)

#: Loose: the envelope judges properly elsewhere. Some units in the last place of values up to about 10.
TOLERANCE = {"float16": 2e-2, "bfloat16": 2e-1, "float32": 1e-4, "float64": 1e-12}

LENGTHS = [1, 2, 3, 7, 8, 64, 65, 1025, 4097]


def exact(s: Situation) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Outputs and gradients of a two-axis situation in float64, straight from the formulas."""
    x, gamma, beta, g = (np.asarray(a, np.float64) for a in (s.x, s.gamma, s.beta, s.g))
    axis = 1 if s.operator == "layer_norm" else 0
    mean, var = x.mean(axis=axis, keepdims=True), x.var(axis=axis, keepdims=True)
    statistics = []
    if s.operator == "batch_norm":
        rm, rv = np.asarray(s.mean, np.float64), np.asarray(s.variance, np.float64)
        if s.training:
            statistics = [rm + s.momentum * (mean[0] - rm), rv + s.momentum * (var[0] - rv)]
        else:
            mean, var, statistics = rm[None], rv[None], [rm, rv]
    r = 1 / np.sqrt(var + s.eps)
    xhat, h = (x - mean) * r, gamma * g
    dx = r * h
    if s.operator == "layer_norm" or s.training:
        dx = r * (h - h.mean(axis=axis, keepdims=True) - xhat * (h * xhat).mean(axis=axis, keepdims=True))
    return [gamma * xhat + beta, *statistics], [dx, (g * xhat).sum(axis=0), g.sum(axis=0)]


def agree(got: object, want: list[np.ndarray], dtype: str) -> None:
    """Each result is within the tolerance of its exact value, relative to the largest."""
    results = got if isinstance(got, tuple) else (got,)
    assert len(results) == len(want)
    for value, reference in zip(results, want, strict=True):
        scale = 1 + np.abs(reference).max(initial=0)
        assert value.shape == reference.shape
        assert np.abs(value.astype(np.float64) - reference).max(initial=0) <= TOLERANCE[dtype] * scale


@every_sound
@pytest.mark.parametrize("dtype", DTYPES)
def test_variants_agree_with_the_formulas(sound: Sound, dtype: str) -> None:
    """Outputs and gradients of every variant are those of the formulas, in training and inference."""
    for length in LENGTHS:
        shape = (3, length) if sound.operator == "layer_norm" else (length, 3)
        for training in (True, False):
            s = Situation(sound.operator, normal(*shape), DTYPES[dtype], training=training)
            outputs, gradients = exact(s)
            implementation = sound.build()
            agree(s.call(implementation), outputs, dtype)
            agree(s.vjp(implementation), gradients, dtype)


@every_sound
def test_variants_return_the_dtypes_of_the_inputs(sound: Sound) -> None:
    """y and dx have the dtype of x; parameter gradients and statistics that of the parameters."""
    s = Situation(sound.operator, normal(4, 6), np.float16, parameters=np.float32)
    implementation = sound.build()
    outputs = s.call(implementation)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    assert [o.dtype.name for o in outputs] == ["float16", "float32", "float32"][: len(outputs)]
    assert [g.dtype.name for g in s.vjp(implementation)] == ["float16", "float32", "float32"]


@every_sound
def test_variants_neither_change_nor_share_their_inputs(sound: Sound) -> None:
    """Nothing handed in is written to, and nothing handed out lies in its memory."""
    for changes in ({}, {"gamma": None, "beta": None}, {"training": False}):
        s = Situation(sound.operator, normal(4, 6), np.float64, **changes)
        arrays = [a for a in (*s.arrays, s.g) if a is not None]
        before = [a.copy() for a in arrays]
        implementation = sound.build()
        results = [implementation.call(*s.arrays, **s.settings), *implementation.vjp(*s.arrays, s.g, **s.settings)]
        for a, b in zip(arrays, before, strict=True):
            assert a.tobytes() == b.tobytes()
        for result in results:
            for part in result if isinstance(result, tuple) else (result,):
                assert part is None or not any(np.shares_memory(part, a) for a in arrays)


@every_sound
def test_variants_keep_nan_in_its_group(sound: Sound) -> None:
    """A NaN makes all of its own group NaN in training, and nothing else."""
    x = normal(5, 5)
    x[2, 2] = np.nan
    y = Situation(sound.operator, x, np.float32).call(sound.build())
    y = y if sound.operator == "layer_norm" else y[0].T
    assert np.isnan(y[2]).all()
    assert np.isfinite(np.delete(y, 2, axis=0)).all()


@every_sound
def test_variants_take_an_infinite_group(sound: Sound) -> None:
    """An Inf leaves no finite value in its own group in training, and touches nothing else."""
    x = normal(5, 5)
    x[2, 2] = np.inf
    y = Situation(sound.operator, x, np.float32).call(sound.build())
    y = y if sound.operator == "layer_norm" else y[0].T
    assert not np.isfinite(y[2]).any()
    assert np.isfinite(np.delete(y, 2, axis=0)).all()


@every_sound
def test_variants_take_an_empty_batch(sound: Sound) -> None:
    """No groups, or no samples, give an empty y, zero parameter gradients and unchanged statistics."""
    s = Situation(sound.operator, normal(0, 4), np.float32)
    outputs = s.call(sound.build())
    y = outputs if sound.operator == "layer_norm" else outputs[0]
    assert y.shape == (0, 4)
    dx, dgamma, dbeta = s.vjp(sound.build())
    assert dx.shape == (0, 4)
    assert (dgamma == 0).all()
    assert (dbeta == 0).all()
    if sound.operator == "batch_norm":
        assert (outputs[1] == s.mean).all()
        assert (outputs[2] == s.variance).all()


@every_sound
@pytest.mark.parametrize(
    "wrong",
    [
        {"eps": -1.0},
        {"eps": float("inf")},
        {"eps": float("nan")},
        {"axes": (0,), "channel_axis": 2},
        {"axes": (-3,), "channel_axis": -3},
        {"gamma": np.ones(7, np.float32)},
    ],
    ids=["eps", "infinite eps", "NaN for eps", "axis", "negative axis", "gamma"],
)
def test_variants_refuse_bad_arguments(sound: Sound, wrong: dict) -> None:
    """A bad argument raises ValueError."""
    s = Situation(sound.operator, normal(4, 6), np.float32)
    for name, value in wrong.items():
        setattr(s, name, value)
    assert s.call(sound.build()) == "ValueError"


def test_bad_running_statistics_are_refused() -> None:
    """Running statistics of another length raise ValueError."""
    for sound in SOUND:
        if sound.operator == "batch_norm":
            s = Situation("batch_norm", normal(4, 6), np.float32, mean=np.zeros(5, np.float32))
            assert s.call(sound.build()) == "ValueError"


@pytest.mark.parametrize("momentum", [-0.25, 1.25, float("nan")])
def test_a_bad_momentum_is_refused(momentum: float) -> None:
    """A momentum outside 0 to 1 raises ValueError."""
    for sound in (*SOUND, *DECLARED):
        if sound.operator == "batch_norm":
            s = Situation("batch_norm", normal(4, 6), np.float32, momentum=momentum)
            assert s.call(sound.build()) == "ValueError"


def test_a_single_value_gives_beta() -> None:
    """One value a channel in training gives y = beta and a batch variance of zero."""
    for sound in SOUND:
        if sound.operator == "batch_norm":
            s = Situation("batch_norm", normal(1, 4), np.float64, momentum=1.0)
            y, mean, variance = s.call(sound.build())
            np.testing.assert_allclose(y[0], s.beta, rtol=0, atol=1e-12)
            np.testing.assert_allclose(mean, s.x[0], rtol=1e-12)
            assert (variance == 0).all()


@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
def test_there_are_enough_variants(operator: str) -> None:
    """At least nine variants an operator need no declaration, and their names are unique."""
    names = [sound.name for sound in (*SOUND, *DECLARED) if sound.operator == operator]
    assert len(names) == len(set(names))
    assert sum(sound.operator == operator for sound in SOUND) >= 9


STEP = 1e-5


def moved(s: Situation, directions: tuple[np.ndarray, ...], sign: float) -> Situation:
    """The situation a small step along the directions of x, gamma and beta."""
    other = Situation(s.operator, s.x, np.float64, training=s.training, eps=s.eps)
    given = zip((s.x, s.gamma, s.beta), directions, strict=True)
    other.x, other.gamma, other.beta = (value + sign * STEP * direction for value, direction in given)
    return other


def slope(of: Callable[[Situation], Any], s: Situation, directions: tuple[np.ndarray, ...]) -> Any:
    """The central difference of a function of the situation along the directions."""
    return (of(moved(s, directions, 1)) - of(moved(s, directions, -1))) / (2 * STEP)


@every_sound
@pytest.mark.parametrize("training", [True, False])
def test_higher_derivatives_agree_with_differences(sound: Sound, training: bool) -> None:
    """jvp and vjp_vjp equal central differences of the call and of the vjp."""
    s = Situation(sound.operator, normal(4, 5), np.float64, training=training, eps=0.1)
    implementation = sound.build()
    random = np.random.default_rng(7)
    directions = tuple(random.normal(size=array.shape) for array in (s.x, s.gamma, s.beta))
    cotangents = tuple(random.normal(size=array.shape) for array in (s.x, s.gamma, s.beta))

    def y(situation: Situation) -> np.ndarray:
        returned = situation.call(implementation)
        return returned if sound.operator == "layer_norm" else returned[0]

    def paired(situation: Situation) -> float:
        gradients = situation.vjp(implementation)
        return sum(float((p * q).sum()) for p, q in zip(gradients, cotangents, strict=True))

    ty = implementation.jvp(*s.arrays, *directions, **s.settings)
    np.testing.assert_allclose(ty, slope(y, s, directions), rtol=1e-6, atol=1e-6)
    x_bar, gamma_bar, g_bar = implementation.vjp_vjp(*s.arrays, s.g, *cotangents, **s.settings)
    along = float((x_bar * directions[0]).sum() + (gamma_bar * directions[1]).sum())
    assert along == pytest.approx(slope(paired, s, directions), rel=1e-5, abs=1e-5)
    assert float((g_bar * s.g).sum()) == pytest.approx(paired(s), rel=1e-9)


@every_declared
def test_declared_variants_name_their_convention(sound: Sound) -> None:
    """A declared variant says what it declares, and runs."""
    assert sound.conventions
    s = Situation(sound.operator, normal(4, 6), np.float32)
    assert not isinstance(attempt(lambda: sound.build().call(*s.arrays, **s.settings)), str)
