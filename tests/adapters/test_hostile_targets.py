"""Whatever a target does, calling it gives a result or one of three exceptions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.binding import Binding
from normspec.adapters.numpy import BRIDGE
from normspec.adapters.session import Session
from normspec.spec.errors import BadOutput, MissingGradient, TargetRaised

LAYER_NORM = {"eps": 0.1, "axes": (-1,)}
BATCH_NORM = {"eps": 0.1, "momentum": 0.25, "training": True, "channel_axis": -1}


class Nasty(BaseException):
    """Derives from nothing that a careless caller catches, and cannot be printed."""

    def __str__(self):
        raise RuntimeError


class Liar:
    """Raises on every access."""

    @property
    def __class__(self):
        raise RuntimeError("no class")


class BadLength(tuple):
    """Cannot say how long it is."""

    def __len__(self):
        raise RuntimeError("no length")


def _raise(error):
    raise error


def _session(operator, call, **derivatives):
    binding = Binding(operator, "own", call, derivatives)
    return Session(BRIDGE, binding)


@pytest.mark.parametrize(
    "error", [ValueError("no"), SystemExit(0), GeneratorExit(), MemoryError(), Nasty(), StopIteration()]
)
def test_what_it_raises_is_kept(layer_norm_inputs, error):
    """Any exception, whatever its base class, arrives as TargetRaised."""
    with pytest.raises(TargetRaised) as caught:
        _session("layer_norm", lambda *a, **k: _raise(error)).start(layer_norm_inputs, LAYER_NORM)
    assert caught.value.original is error
    assert caught.value.stage == "call"
    assert str(caught.value).startswith(type(error).__name__)


def test_keyboard_interrupt_passes(layer_norm_inputs):
    """Ctrl-C is the user's."""
    with pytest.raises(KeyboardInterrupt):
        _session("layer_norm", lambda *a, **k: _raise(KeyboardInterrupt())).start(layer_norm_inputs, LAYER_NORM)


def test_endless_recursion_ends(layer_norm_inputs):
    """A target that calls itself for ever is reported as what Python makes of it."""

    def call(*a, **k):
        return call(*a, **k)

    with pytest.raises(TargetRaised, match="RecursionError"):
        _session("layer_norm", call).start(layer_norm_inputs, LAYER_NORM)


@pytest.mark.parametrize(
    ("returned", "message", "kind"),
    [
        (None, "y is None, not a numpy.ndarray", "type"),
        (1.0, "y is float", "type"),
        (np.float64(1.0), "y is float64", "type"),
        ([np.zeros(3)], "layer_norm returned a list of one value in place of y", "count"),
        ((np.zeros(3), np.zeros(3)), "layer_norm returned 2 values in place of y", "count"),
        ((), "layer_norm returned 0 values in place of y", "count"),
        (np.zeros((4, 7)).tolist(), "y is list, not a numpy.ndarray", "type"),
        ([0.0], "y is list, not a numpy.ndarray", "type"),
        ((None, None), "y is tuple, not a numpy.ndarray", "type"),
        ([np.zeros(3, int)], "layer_norm returned a list of one value in place of y", "count"),
        ("text", "y is str", "type"),
        (np.zeros((4, 7), complex), "y has dtype complex128", "dtype"),
        (np.zeros((4, 7), int), "y has dtype int64", "dtype"),
        (np.zeros((4, 7), object), "y has dtype object", "dtype"),
        (np.zeros((4, 7), bool), "y has dtype bool", "dtype"),
        (np.zeros((4, 7), ml_dtypes.float8_e5m2), "y has dtype float8_e5m2", "dtype"),
        (np.zeros(3, [("a", float)]), "y has dtype void", "dtype"),
        (np.ma.masked_array(np.zeros(3), [0, 1, 0]), "y is a masked array with masked values$", "type"),
    ],
)
def test_what_is_no_array_of_floats(layer_norm_inputs, returned, message, kind):
    """A result of the wrong type or dtype is reported as what it is."""
    with pytest.raises(BadOutput, match=message) as caught:
        _session("layer_norm", lambda *a, **k: returned).start(layer_norm_inputs, LAYER_NORM)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, r"batch_norm returned None in place of \(y, new_running_mean, new_running_var\)"),
        (np.zeros((5, 3)), "batch_norm returned y alone in place of"),
        ((np.zeros((5, 3)),) * 2, "batch_norm returned 2 values in place of"),
        ((np.zeros((5, 3)), None, np.zeros(3)), "new_running_mean is None"),
        ({}, "batch_norm returned dict"),
        (np.zeros((5, 3)).tolist(), "batch_norm returned list in place of"),
        ([np.zeros((5, 3)).tolist(), np.zeros(3), np.zeros(3)], "y is list, not a numpy.ndarray"),
    ],
)
def test_what_is_no_triple(batch_norm_inputs, returned, message):
    """batch_norm returns three arrays."""
    with pytest.raises(BadOutput, match=message):
        _session("batch_norm", lambda *a, **k: returned).start(batch_norm_inputs, BATCH_NORM)


@pytest.mark.parametrize("kind", [Liar, BadLength])
def test_results_that_raise_when_looked_at(batch_norm_inputs, kind):
    """A result that resists being looked at is the target's doing."""
    with pytest.raises((TargetRaised, BadOutput)):
        _session("batch_norm", lambda *a, **k: kind()).start(batch_norm_inputs, BATCH_NORM)


@pytest.mark.parametrize(
    ("operator", "inputs", "settings", "wanted"),
    [("layer_norm", "layer_norm_inputs", LAYER_NORM, "y"), ("batch_norm", "batch_norm_inputs", BATCH_NORM, r"\(y, ")],
)
@pytest.mark.filterwarnings("error")
def test_what_is_not_awaited(request, operator, inputs, settings, wanted):
    """A coroutine is no result, and Python has nothing to say of it."""

    async def later(*a, **k):
        return a[0]

    with pytest.raises(BadOutput, match=f"{operator} returned a coroutine in place of {wanted}"):
        _session(operator, lambda *a, **k: later(*a, **k)).start(request.getfixturevalue(inputs), settings)


def test_a_list_of_three_will_do(batch_norm_inputs):
    """Three results may come in a list."""
    session = _session("batch_norm", lambda x, g, b, m, v, **k: [x, m, v])
    assert len(session.start(batch_norm_inputs, BATCH_NORM).outputs()) == 3


def test_odd_shapes_are_passed_on(layer_norm_inputs):
    """The session does not check shapes; the code that compares results does."""
    session = _session("layer_norm", lambda *a, **k: np.array(1.0))
    assert session.start(layer_norm_inputs, LAYER_NORM).outputs()["y"].shape == ()


def test_inputs_bent_out_of_shape(layer_norm_inputs):
    """A target that changes an input's shape leaves an evaluation that can still be read."""

    def reshape(x, *a, **k):
        x.resize((2, 14), refcheck=False)
        return x.copy()

    evaluation = _session("layer_norm", reshape).start(layer_norm_inputs, LAYER_NORM)
    assert evaluation.inputs()["x"].shape == (2, 14)


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (None, BadOutput, "own_vjp returned NoneType in place of three gradients"),
        ((np.zeros(3),), BadOutput, "own_vjp returned 1 values"),
        ((np.zeros((4, 7)), None, np.zeros(7)), MissingGradient, "no gradient reaches gamma"),
        ((None, None, None), MissingGradient, "no gradient reaches x, gamma, beta"),
        ((np.zeros((4, 7)), 0.0, np.zeros(7)), BadOutput, "the gradient of gamma is float"),
        ((np.zeros((4, 7), int), np.zeros(7), np.zeros(7)), BadOutput, "the gradient of x has dtype int64"),
    ],
)
def test_gradients_that_are_none(layer_norm_inputs, returned, error, message):
    """A gradient that is missing, or of the wrong type, is reported by the input that it belongs to."""
    session = _session("layer_norm", lambda x, *a, **k: x, vjp=lambda *a, **k: returned)
    evaluation = session.start(layer_norm_inputs, LAYER_NORM)
    with pytest.raises(error, match=message):
        evaluation.pull(layer_norm_inputs["x"])


@pytest.mark.parametrize("stage", ["vjp", "jvp", "vjp_vjp"])
def test_derivatives_that_raise(layer_norm_inputs, stage):
    """The stage names the derivative in which the target raised."""
    session = _session("layer_norm", lambda x, *a, **k: x, **{stage: lambda *a, **k: _raise(Nasty())})
    x = layer_norm_inputs["x"]
    with pytest.raises(TargetRaised) as caught:
        if stage == "vjp":
            session.start(layer_norm_inputs, LAYER_NORM).pull(x)
        elif stage == "jvp":
            session.jvp(layer_norm_inputs, LAYER_NORM, {"x": x})
        else:
            session.vjp_vjp(layer_norm_inputs, LAYER_NORM, x, {"x": x})
    assert caught.value.stage == stage


def test_derivatives_that_return_nonsense(layer_norm_inputs):
    """A tangent or second-order gradient of the wrong type is refused."""
    session = _session("layer_norm", lambda x, *a, **k: x, jvp=lambda *a, **k: None, vjp_vjp=lambda *a, **k: 3)
    x = layer_norm_inputs["x"]
    with pytest.raises(BadOutput, match="the tangent of y is None"):
        session.jvp(layer_norm_inputs, LAYER_NORM, {"x": x})
    with pytest.raises(BadOutput, match="own_vjp_vjp returned int in place of three"):
        session.vjp_vjp(layer_norm_inputs, LAYER_NORM, x, {"x": x})
