"""The user's own functions on TensorFlow tensors: sound ones conform, traced and compiled too, and faulty ones fail."""

from __future__ import annotations

import pytest
import tensorflow as tf

from normspec import Report, Verdict
from normspec.adapters.binding import Binding
from normspec.adapters.target import Target
from normspec.adapters.tensorflow import BRIDGE

from ..runs import result, run, verdicts


def _check(operator, function, **options) -> Report:
    binding = Binding(operator, "own", function)
    return run(Target("own", "tensorflow", BRIDGE.version, BRIDGE, (binding,)), **options)


def layer_norm(x, gamma, beta, *, eps, axes):
    """A sound layer_norm."""
    d = x - tf.reduce_mean(x, axes, keepdims=True)
    y = d / tf.sqrt(tf.reduce_mean(d * d, axes, keepdims=True) + eps)
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def misplaced(x, gamma, beta, *, eps, axes):
    """One that adds eps to the deviation."""
    d = x - tf.reduce_mean(x, axes, keepdims=True)
    y = d / (tf.sqrt(tf.reduce_mean(d * d, axes, keepdims=True)) + eps)
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def constant_mean(x, gamma, beta, *, eps, axes):
    """A layer_norm whose gradient does not go through the mean."""
    d = x - tf.stop_gradient(tf.reduce_mean(x, axes, keepdims=True))
    y = d / tf.sqrt(tf.reduce_mean(d * d, axes, keepdims=True) + eps)
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def test_a_sound_function_conforms():
    """A layer_norm written out has every derivative, and violates no MUST."""
    report = _check("layer_norm", layer_norm)
    assert report.failures() == ()
    assert report.errors() == ()
    assert {r.requirement for r in report.results if r.verdict is Verdict.UNSUPPORTED} == set()
    assert result(report, "LN-G9").verdict is Verdict.PASS
    for requirement in ("LN-G10", "LN-G12", "LN-G13", "LN-G14"):
        assert result(report, requirement).verdict is Verdict.PASS


@pytest.mark.parametrize("compiled", [False, True])
def test_a_traced_function_conforms(compiled):
    """So does a tf.function, compiled by XLA or not."""
    function = tf.function(layer_norm, jit_compile=compiled)
    report = _check("layer_norm", function, requirements={"LN-F3"})
    assert set(verdicts(report).values()) == {"pass"}


@pytest.mark.parametrize("compiled", [False, True])
def test_parts_are_handed_to_a_traced_function(compiled):
    """A tf.function can get parts; their values, and the gradients of their leaves, arrive."""

    @tf.function(jit_compile=compiled, autograph=False)
    def residual(x, branch, *, shortcut=None, activation=None):
        y = branch(x) + (x if shortcut is None else shortcut(x))
        return y if activation is None else activation(y)

    report = _check("residual", residual, requirements={"RS-F2", "CM-C8"})
    assert set(verdicts(report).values()) == {"pass"}


@pytest.mark.parametrize(
    ("function", "violated"),
    [(misplaced, {"LN-F3"}), (tf.function(misplaced), {"LN-F3"}), (constant_mean, {"LN-G1", "LN-G4"})],
)
def test_a_faulty_function_fails(function, violated):
    """eps in the wrong place fails the formula, and a gradient that misses a term the requirements on it."""
    report = _check("layer_norm", function, requirements={"LN-F3", "LN-G1", "LN-G4"})
    failed = {requirement for requirement, verdict in verdicts(report).items() if verdict == "fail"}
    assert violated <= failed
    assert ("LN-F3" in failed) is ("LN-F3" in violated)


def test_an_eps_that_is_cast_fails_in_float64():
    """tf.cast makes a float32 tensor of a Python float before it casts that: eps is rounded, and the check says so."""

    def cast(x, gamma, beta, *, eps, axes):
        return layer_norm(x, gamma, beta, eps=tf.cast(eps, x.dtype), axes=axes)

    report = _check("layer_norm", cast, requirements={"LN-F4"}, dtypes=("float32", "float64"), explain=True)
    assert result(report, "LN-F4").verdict is Verdict.PASS
    found = result(report, "LN-F4", "float64")
    assert found.verdict is Verdict.FAIL
    assert report.subjects[0]["passes_under"] == ("eps_dtype=float32",)


def test_a_function_that_answers_in_numpy_fails():
    """A function that returns NumPy arrays returns no tensors, and the report says so."""
    report = _check("layer_norm", lambda *t, **s: layer_norm(*t, **s).numpy(), requirements={"CM-T1"})
    assert result(report, "CM-T1").verdict is Verdict.FAIL
    assert "y is ndarray, not a tf.Tensor" in result(report, "CM-T1").reason


def test_a_variable_that_is_used_again_fails():
    """A layer that returns its own tf.Variable gives a result that its next call overwrites."""
    held = {}

    def kept(x, gamma, beta, *, eps, axes):
        y = layer_norm(x, gamma, beta, eps=eps, axes=axes)
        variable = held.setdefault((y.shape, y.dtype), tf.Variable(y))
        variable.assign(y)
        return variable

    report = _check("layer_norm", kept, requirements={"CM-P4", "LN-F1"})
    assert result(report, "CM-P4").verdict is Verdict.FAIL
