"""Derivatives of functions on TensorFlow tensors: by tapes, late, repeatedly, and of the second order."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from normspec.adapters import numpy as plain
from normspec.adapters.binding import Binding
from normspec.adapters.target import Target
from normspec.adapters.tensorflow import BRIDGE
from normspec.adapters.tensorflow.tapes import Tapes
from normspec.spec.errors import BadOutput, MissingGradient, TargetRaised, Unsupported

SETTINGS = {"eps": 0.1, "axes": (-1,)}


def _session(function, **derivatives):
    target = Target("own", "tensorflow", BRIDGE.version, BRIDGE, (Binding("layer_norm", "own", function, derivatives),))
    return target.session(target.bindings[0])


def _norm(x, gamma, beta, *, eps, axes):
    d = x - tf.reduce_mean(x, axes, keepdims=True)
    y = d * tf.math.rsqrt(tf.reduce_mean(d * d, axes, keepdims=True) + eps)
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


FUNCTIONS = {
    "eager": _norm,
    "tf.function": tf.function(_norm),
    "tf.function, compiled": tf.function(_norm, jit_compile=True),
    "tf.recompute_grad": lambda x, g, b, **s: tf.recompute_grad(lambda *t: _norm(*t, **s))(x, g, b),
}


@pytest.fixture
def expected(layer_norm_inputs):
    """The NumPy target's results on the same inputs."""
    target = plain.target()
    (binding,) = (b for b in target.bindings if b.operator == "layer_norm")
    return target.session(binding)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "tf.recompute_grad"])
def test_every_derivative(layer_norm_inputs, expected, name):
    """Value, gradients, tangent and second order are those of the NumPy target, of functions traced or compiled too."""
    session, g = _session(FUNCTIONS[name]), layer_norm_inputs["x"][::-1].copy()
    along = {n: np.cos(array) for n, array in layer_norm_inputs.items()}

    def all_of(one):
        evaluation = one.start(layer_norm_inputs, SETTINGS)
        return {
            **evaluation.outputs(),
            **{f"d{n}": gradient for n, gradient in evaluation.pull(g).gradients().items()},
            "tangent": one.jvp(layer_norm_inputs, SETTINGS, along),
            **one.vjp_vjp(layer_norm_inputs, SETTINGS, g, along),
        }

    got = all_of(session)
    for what, value in all_of(expected).items():
        np.testing.assert_allclose(got[what], value, atol=1e-12, err_msg=what)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_evaluations_are_pulled_late_and_in_any_order(layer_norm_inputs, name):
    """Each of several evaluations has its own gradient, whichever is pulled first, and twice where it is kept."""
    session = _session(FUNCTIONS[name])
    calls = [{**layer_norm_inputs, "x": k * layer_norm_inputs["x"]} for k in (1.0, 2.0, 3.0)]
    g = layer_norm_inputs["x"][::-1].copy()
    alone = [session.start(inputs, SETTINGS).pull(g).gradients()["x"] for inputs in calls]
    evaluations = [session.start(inputs, SETTINGS) for inputs in calls]
    for index in (1, 0, 2, 1):
        pulled = evaluations[index].pull(g, keep=True).gradients()["x"]
        np.testing.assert_array_equal(pulled, alone[index])
    twice = evaluations[0].pull(2 * g, keep=True).gradients()["x"]
    np.testing.assert_allclose(twice, 2 * alone[0], atol=1e-12)


def test_gradients_of_some_inputs(layer_norm_inputs):
    """Only requested inputs are watched, and pulled."""
    evaluation = _session(_norm).start(layer_norm_inputs, SETTINGS, wrt=("gamma",))
    gradients = evaluation.pull(layer_norm_inputs["x"]).gradients()
    assert gradients["x"] is None
    assert gradients["gamma"].shape == (7,)


@pytest.mark.parametrize(
    ("function", "missing"),
    [
        (lambda x, g, b, **s: tf.stop_gradient(_norm(x, g, b, **s)), ("x", "gamma", "beta")),
        (lambda x, g, b, **s: tf.constant(_norm(x, g, b, **s).numpy()), ("x", "gamma", "beta")),
        (lambda x, g, b, **s: tf.Variable(_norm(x, g, b, **s)), ("x", "gamma", "beta")),
        (lambda x, g, b, **s: _norm(x, tf.stop_gradient(g), b, **s), ("gamma",)),
        (lambda x, g, b, **s: tf.numpy_function(np.copy, [_norm(x, g, b, **s)], x.dtype), ("x", "gamma", "beta")),
    ],
)
def test_gradients_that_do_not_arrive(layer_norm_inputs, function, missing):
    """A gradient that no tape carries to an input is missing, and not zero; and so is a tangent."""
    session = _session(function)
    with pytest.raises(MissingGradient, match="no gradient reaches " + ", ".join(missing)) as caught:
        session.start(layer_norm_inputs, SETTINGS).pull(layer_norm_inputs["x"])
    assert caught.value.missing == missing
    if len(missing) == 3:
        with pytest.raises(MissingGradient, match="no tangent reaches y"):
            session.jvp(layer_norm_inputs, SETTINGS, {"x": layer_norm_inputs["x"]})
        with pytest.raises(Unsupported, match="no gradient that could be differentiated again"):
            session.vjp_vjp(layer_norm_inputs, SETTINGS, layer_norm_inputs["x"], {"x": layer_norm_inputs["x"]})


def test_a_gradient_in_slices_is_a_gradient(layer_norm_inputs):
    """The gradient of tf.gather, rows with their numbers, arrives as the tensor that it stands for."""

    def layer_norm(x, gamma, beta, **settings):
        return _norm(x, tf.gather(gamma, tf.range(7)), beta, **settings)

    g, gradients = layer_norm_inputs["x"][::-1].copy(), []
    for function in (layer_norm, _norm):
        session = _session(function)
        gradients.append(session.start(layer_norm_inputs, SETTINGS).pull(g).gradients()["gamma"])
        gradients.append(session.vjp_vjp(layer_norm_inputs, SETTINGS, g, {"x": g})["gamma"])
    np.testing.assert_allclose(gradients[:2], gradients[2:], atol=1e-12)


@tf.custom_gradient
def _doubled(x):
    """2 x, with a gradient from outside TensorFlow."""
    return 2 * x, lambda g: tf.constant(2 * g.numpy())


def test_a_backward_that_is_not_differentiable(layer_norm_inputs):
    """A backward outside the tape's sight has no second order, which is no violation."""
    session = _session(lambda x, g, b, **s: _doubled(x))
    inputs = {**layer_norm_inputs, "gamma": None, "beta": None}
    x = inputs["x"]
    assert (session.start(inputs, SETTINGS).pull(x).gradients()["x"] == 2 * x).all()
    with pytest.raises(Unsupported, match="the backward is not differentiable"):
        session.vjp_vjp(inputs, SETTINGS, x, {"x": x})


def test_recomputation_has_a_gradient_alone(layer_norm_inputs):
    """tf.recompute_grad refuses forward mode with NotImplementedError, which is reported as what it is."""
    with pytest.raises(Unsupported, match=r"no forward-mode .*: recompute_grad tried to transpose"):
        _session(FUNCTIONS["tf.recompute_grad"]).jvp(layer_norm_inputs, SETTINGS, {"x": layer_norm_inputs["x"]})


def test_what_raises_in_the_backward(layer_norm_inputs):
    """A backward that raises ends in TargetRaised with its stage."""

    @tf.custom_gradient
    def broken(x):
        def pulled(g):
            raise ValueError("no backward")

        return tf.identity(x), pulled

    session = _session(lambda x, g, b, **s: broken(x) * g + b)
    x = layer_norm_inputs["x"]
    for stage, act in (
        ("vjp", lambda: session.start(layer_norm_inputs, SETTINGS).pull(x)),
        ("jvp", lambda: session.jvp(layer_norm_inputs, SETTINGS, {"x": x})),
        ("vjp_vjp", lambda: session.vjp_vjp(layer_norm_inputs, SETTINGS, x, {"x": x})),
    ):
        with pytest.raises(TargetRaised, match="no backward") as caught:
            act()
        assert caught.value.stage == stage


def test_a_kernel_brings_its_own_gradient(layer_norm_inputs):
    """Where no tape sees anything, a written-out vjp serves; where one does, the tape does."""

    def vjp(x, gamma, beta, g, **settings):
        return 3 * g, gamma, beta

    x = layer_norm_inputs["x"]
    unseen = _session(lambda x, g, b, **s: tf.constant(2 * x.numpy()), vjp=vjp)
    assert (unseen.start(layer_norm_inputs, SETTINGS).pull(x).gradients()["x"] == 3 * x).all()
    seen = _session(lambda x, g, b, **s: 2 * x * g + b, vjp=vjp)
    np.testing.assert_allclose(
        seen.start(layer_norm_inputs, SETTINGS).pull(x).gradients()["x"], 2 * x * layer_norm_inputs["gamma"]
    )


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x, g, b, **s: tf.reduce_sum(x * g + b), BadOutput, r"y has shape \(\) in place of \(4, 7\)"),
        (lambda x, g, b, **s: tf.cast(x * g + b, tf.float32), BadOutput, "y has dtype float32 in place of float64"),
    ],
)
def test_no_gradient_without_the_cotangents_shape(layer_norm_inputs, function, error, message):
    """A y of another shape or dtype than the cotangent has no gradient."""
    evaluation = _session(function).start(layer_norm_inputs, SETTINGS)
    assert evaluation.outputs()
    with pytest.raises(error, match=message):
        evaluation.pull(layer_norm_inputs["x"])


def test_inference_watches_nothing(layer_norm_inputs):
    """In inference nothing is tracked, and there is nothing to pull."""
    evaluation = _session(_norm).start(layer_norm_inputs, SETTINGS, mode="inference")
    with pytest.raises(Unsupported, match="nothing was tracked"):
        evaluation.pull(layer_norm_inputs["x"])


def test_old_tapes_are_let_go():
    """Enough tapes are kept that the newest can always be pulled; a dropped one is reported as what it is."""
    tapes, tensors = Tapes(), [tf.constant(float(k)) for k in range(40)]
    for x in tensors:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
        tapes.add(tape, [x], 1)
    assert tapes.of(tensors[-1]) is tape
    assert tapes.of(tensors[-32]) is not tape
    with pytest.raises(RuntimeError, match="no tape is left of that evaluation"):
        tapes.of(tensors[0])
    tapes.add(tf.GradientTape(), [tf.constant(1.0)], 1 << 23)
    assert tapes.of(tensors[-1]) is tape  # the newest two are kept, however large
    with pytest.raises(RuntimeError, match="no tape is left"):
        tapes.of(tensors[-2])
