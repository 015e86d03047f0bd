"""Sessions on NumPy targets that behave."""

from __future__ import annotations

import gc
import warnings

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.binding import Binding
from normspec.adapters.numpy import BRIDGE
from normspec.adapters.session import Session
from normspec.adapters.targets import resolve
from normspec.spec.errors import DeviceUnavailable, LayoutNotApplicable, Unsupported
from normspec.spec.parts import Part

LAYER_NORM = {"eps": 0.1, "axes": (-1,)}
BATCH_NORM = {"eps": 0.1, "momentum": 0.25, "training": True, "channel_axis": -1}


def _session(operator, call, derivatives=None, **options):
    binding = Binding(operator, "own", call, derivatives or {}, **options)
    return Session(BRIDGE, binding)


@pytest.fixture
def layer_norm():
    """Make a session on the built-in layer_norm."""
    target = resolve("numpy", op="layer_norm")
    return target.session(target.bindings[0])


def test_outputs_are_named(layer_norm, layer_norm_inputs, batch_norm_inputs):
    """Results come back by name."""
    assert set(layer_norm.start(layer_norm_inputs, LAYER_NORM).outputs()) == {"y"}
    target = resolve("numpy", op="batch_norm")
    evaluation = target.session(target.bindings[0]).start(batch_norm_inputs, BATCH_NORM)
    assert set(evaluation.outputs()) == {"y", "new_running_mean", "new_running_var"}
    assert set(evaluation.inputs()) == set(batch_norm_inputs)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_dtypes_pass_unchanged(layer_norm_inputs, dtype):
    """The target gets the same dtype as was given, and its result keeps its own."""
    inputs = {name: array.astype(dtype) for name, array in layer_norm_inputs.items()}
    seen = []

    def call(x, gamma, beta, *, eps, axes):
        seen.extend((x.dtype, gamma.dtype, beta.dtype))
        return x.astype(np.float32)

    outputs = _session("layer_norm", call).start(inputs, LAYER_NORM).outputs()
    assert seen == [dtype] * 3
    assert outputs["y"].dtype == np.float32


def test_foreign_byte_order_is_read_as_the_machines(layer_norm, layer_norm_inputs):
    """A result in the other byte order has the same values and dtype name."""
    session = _session("layer_norm", lambda x, gamma, beta, *, eps, axes: x.astype(x.dtype.newbyteorder()))
    y = session.start(layer_norm_inputs, LAYER_NORM).outputs()["y"]
    assert y.dtype == np.float64
    assert (y == layer_norm_inputs["x"]).all()


def test_what_the_caller_holds_is_never_handed_over(layer_norm_inputs):
    """A target that changes its inputs changes the session's copies, and that shows."""

    def call(x, gamma, beta, *, eps, axes):
        x *= 2
        return x

    before = layer_norm_inputs["x"].copy()
    evaluation = _session("layer_norm", call).start(layer_norm_inputs, LAYER_NORM)
    assert (layer_norm_inputs["x"] == before).all()
    assert (evaluation.inputs()["x"] == 2 * before).all()
    evaluation.outputs()["y"][...] = 0
    assert (evaluation.outputs()["y"] == 2 * before).all()


def test_a_reused_buffer_shows(layer_norm_inputs):
    """Outputs are read afresh: a later call that overwrites an earlier result is seen."""
    buffer = np.zeros((4, 7))

    def call(x, gamma, beta, *, eps, axes):
        buffer[...] = x
        return buffer

    session = _session("layer_norm", call)
    first = session.start(layer_norm_inputs, LAYER_NORM)
    kept = first.outputs()["y"]
    session.start({**layer_norm_inputs, "x": layer_norm_inputs["x"] + 1}, LAYER_NORM)
    assert (first.outputs()["y"] == kept + 1).all()


def test_a_reused_gradient_and_a_changed_cotangent_show(layer_norm_inputs):
    """Gradients and the cotangent are read afresh."""
    buffer = np.zeros((4, 7))

    def vjp(x, gamma, beta, g, *, eps, axes):
        buffer[...] = g
        g += 1
        return buffer, gamma, beta

    session = _session("layer_norm", lambda x, gamma, beta, *, eps, axes: x, {"vjp": vjp})
    evaluation = session.start(layer_norm_inputs, LAYER_NORM)
    g = np.ones((4, 7))
    first = evaluation.pull(g)
    assert (g == 1).all()
    assert (first.cotangent() == 2).all()
    evaluation.pull(3 * g)
    assert (first.gradients()["x"] == 3).all()


def test_the_gradient_sees_the_arrays_of_the_forward(layer_norm_inputs):
    """A vjp is called when it is requested, with the same arrays as the forward call."""
    seen = []

    def call(x, gamma, beta, *, eps, axes):
        seen.append((id(x), id(gamma), id(beta)))
        return x

    def vjp(x, gamma, beta, g, *, eps, axes):
        seen.append((id(x), id(gamma), id(beta)))
        return x, gamma, beta

    evaluation = _session("layer_norm", call, {"vjp": vjp}).start(layer_norm_inputs, LAYER_NORM)
    assert len(seen) == 1
    evaluation.pull(layer_norm_inputs["x"])
    assert seen[0] == seen[1]


def test_only_the_gradients_asked_for_come_back(layer_norm, layer_norm_inputs):
    """wrt restricts the gradients; an absent parameter has none."""
    g = layer_norm_inputs["x"]
    pulled = layer_norm.start(layer_norm_inputs, LAYER_NORM, wrt=("gamma",)).pull(g).gradients()
    assert pulled["x"] is pulled["beta"] is None
    assert pulled["gamma"].shape == (7,)
    pulled = layer_norm.start({**layer_norm_inputs, "beta": None}, LAYER_NORM).pull(g).gradients()
    assert pulled["beta"] is None
    assert pulled["x"].shape == g.shape


def test_layouts_reach_the_target(layer_norm_inputs):
    """Inputs and the cotangent arrive in the layouts that are named, with equal values."""
    seen = {}

    def call(x, gamma, beta, *, eps, axes):
        seen.update(x=x, gamma=gamma)
        return x

    def vjp(x, gamma, beta, g, *, eps, axes):
        seen["g"] = g
        return x, gamma, beta

    session = _session("layer_norm", call, {"vjp": vjp})
    evaluation = session.start(layer_norm_inputs, LAYER_NORM, layouts={"x": "transposed", "gamma": "negative"})
    evaluation.pull(layer_norm_inputs["x"], layout="strided")
    assert seen["x"].strides == (8, 32)
    assert seen["gamma"].strides == (-8,)
    assert seen["g"].strides == (112, 16)
    for name, array in {**layer_norm_inputs, "g": layer_norm_inputs["x"]}.items():
        assert name == "beta" or (seen[name] == array).all()


def test_a_layout_that_cannot_be_is_the_callers_mistake(layer_norm, layer_norm_inputs):
    """An array that cannot have this layout is the caller's mistake, not the target's."""
    with pytest.raises(LayoutNotApplicable):
        layer_norm.start(layer_norm_inputs, LAYER_NORM, layouts={"x": "zero_stride"})


def test_momentum_of_the_old(batch_norm_inputs):
    """A binding whose momentum weighs the old statistic gets one minus it."""
    seen = []

    def call(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
        seen.append(momentum)
        return x, running_mean, running_var

    _session("batch_norm", call, conventions={"momentum": "old"}).start(batch_norm_inputs, BATCH_NORM)
    _session("batch_norm", call).start(batch_norm_inputs, BATCH_NORM)
    assert seen == [0.75, 0.25]


def test_modes_reach_a_binding_that_has_them(layer_norm_inputs):
    """The mode is passed to a binding that has modes, and to no other."""
    seen = []

    def call(x, gamma, beta, *, eps, axes, mode):
        seen.append(mode)
        return x

    session = _session("layer_norm", call, has_modes=True)
    session.start(layer_norm_inputs, LAYER_NORM)
    session.start(layer_norm_inputs, LAYER_NORM, mode="inference")
    assert seen == ["training", "inference"]


def test_nothing_is_pulled_through_inference(layer_norm, layer_norm_inputs):
    """An evaluation in inference mode has no gradients."""
    evaluation = layer_norm.start(layer_norm_inputs, LAYER_NORM, mode="inference")
    with pytest.raises(Unsupported, match="nothing was tracked"):
        evaluation.pull(layer_norm_inputs["x"])


def test_derivatives_that_are_missing_are_unsupported(layer_norm_inputs):
    """Without autodiff, a derivative that the target lacks is unsupported, and the message says what to write."""
    session = _session("layer_norm", lambda x, gamma, beta, *, eps, axes: x)
    x = layer_norm_inputs["x"]
    with pytest.raises(Unsupported, match="no function named own_vjp"):
        session.start(layer_norm_inputs, LAYER_NORM).pull(x)
    with pytest.raises(Unsupported, match="own_jvp"):
        session.jvp(layer_norm_inputs, LAYER_NORM, {"x": x})
    with pytest.raises(Unsupported, match="own_vjp_vjp"):
        session.vjp_vjp(layer_norm_inputs, LAYER_NORM, x, {"x": x})


def test_forward_mode_is_linear_in_the_tangents(layer_norm, layer_norm_inputs):
    """An absent tangent counts as zero."""
    x, gamma, beta = layer_norm_inputs.values()
    along = [layer_norm.jvp(layer_norm_inputs, LAYER_NORM, {name: array}) for name, array in layer_norm_inputs.items()]
    together = layer_norm.jvp(layer_norm_inputs, LAYER_NORM, {"x": x, "gamma": gamma, "beta": beta})
    np.testing.assert_allclose(sum(along), together, atol=1e-12)


def test_second_order_is_linear_in_the_cotangents(layer_norm, layer_norm_inputs):
    """An absent cotangent counts as zero, and an absent gamma has no gradient."""
    g = layer_norm_inputs["x"][::-1]
    parts = [
        layer_norm.vjp_vjp(layer_norm_inputs, LAYER_NORM, g, {name: array}) for name, array in layer_norm_inputs.items()
    ]
    together = layer_norm.vjp_vjp(layer_norm_inputs, LAYER_NORM, g, layer_norm_inputs)
    assert set(together) == {"x", "gamma", "g"}
    for name, total in together.items():
        np.testing.assert_allclose(sum(part[name] for part in parts), total, atol=1e-12)
    without = {**layer_norm_inputs, "gamma": None}
    assert layer_norm.vjp_vjp(without, LAYER_NORM, g, {"x": g})["gamma"] is None


def test_warnings_of_the_target_are_silent(layer_norm_inputs, recwarn):
    """Overflow, NaN and the target's warnings do not disturb the report, and NumPy's settings stay."""

    def call(x, gamma, beta, *, eps, axes):
        warnings.warn("look at me", stacklevel=1)
        np.seterr(all="raise")
        np.seterr(all="warn")
        return x / np.zeros_like(x)

    before = np.geterr()
    _session("layer_norm", call).start(layer_norm_inputs, LAYER_NORM).outputs()
    assert not recwarn.list
    assert np.geterr() == before


def test_numpy_has_one_device():
    """Any other device is refused with what to do."""
    target = resolve("numpy")
    with pytest.raises(DeviceUnavailable, match="numpy has no device 'cuda': leave --device out"):
        target.session(target.bindings[0], "cuda")


@pytest.mark.parametrize("fresh", [False, True])
def test_a_second_call_on_the_memory_of_the_first(layer_norm_inputs, fresh):
    """It gets the first call's tensors, or others on their memory, with the later values; its gradient does too."""
    handed = []

    def call(x, gamma, beta, *, eps, axes):
        handed.append(x)
        return x * gamma + beta

    def vjp(x, gamma, beta, g, *, eps, axes):
        handed.append(x)
        return g * gamma, (g * x).sum(0), g.sum(0)

    later = {name: value + 1 for name, value in layer_norm_inputs.items()}
    g = np.ones_like(later["x"])
    session = _session("layer_norm", call, {"vjp": vjp})
    outputs, gradients = session.recall(layer_norm_inputs, LAYER_NORM, later, g=g, fresh=fresh)
    np.testing.assert_array_equal(outputs["y"], call(**later, **LAYER_NORM))
    np.testing.assert_array_equal(gradients["gamma"], later["x"].sum(0))
    first, second = handed[0], handed[2]
    assert handed[1] is first and handed[3] is second
    assert (first is second) is not fresh and np.shares_memory(first, second)
    assert session.recall(layer_norm_inputs, LAYER_NORM, later)[1] == {}


def test_both_calls_on_one_memory_are_made_in_a_mode():
    """A layer that has modes is called as where it serves."""
    modes = []

    def call(x, branch, *, mode, shortcut=None, activation=None):
        modes.append(mode)
        return branch(x)

    session = Session(BRIDGE, Binding("residual", "own", call, has_modes=True))
    x = np.ones((2, 3), np.float32)
    outputs, _ = session.recall({"x": x}, {}, {"x": x * 3}, parts={"branch": Part("negated")}, mode="inference")
    np.testing.assert_array_equal(outputs["y"], -3 * x)
    assert modes == ["inference", "inference"]


def test_no_second_call_where_nothing_is_written_to(layer_norm_inputs, monkeypatch):
    """A framework that never writes to tensors in place has no such call."""
    monkeypatch.setattr(type(BRIDGE), "rewrites", False)
    session = _session("layer_norm", lambda x, gamma, beta, *, eps, axes: x)
    with pytest.raises(Unsupported, match="in place"):
        session.recall(layer_norm_inputs, LAYER_NORM, layer_norm_inputs)


def test_repeated_results_that_agree_share_memory(layer_norm_inputs):
    """Each call counts; those with the bits of the first are the first, and the others stand as they came."""
    calls = []

    def call(x, gamma, beta, *, eps, axes):
        calls.append(x)
        return x + (len(calls) == 3)

    found = _session("layer_norm", call).call(layer_norm_inputs, LAYER_NORM, times=4)
    assert len(calls) == len(found) == 4
    assert found[1] is found[3] is found[0]
    np.testing.assert_array_equal(found[2]["y"], layer_norm_inputs["x"] + 1)


@pytest.mark.parametrize("shape", [(5, 7), (33, 33)])
def test_a_place_that_a_repeated_call_does_not_write_holds_no_right_value(shape):
    """The third call leaves its first row unwritten, and would find it in the memory of the second."""
    calls = []

    def add_one(x):
        calls.append(None)
        y = np.empty_like(x)
        rows = slice(len(calls) == 3, None)
        np.add(x[rows], 1, out=y[rows])
        return y

    def plain(x, gamma, beta, *, eps, axes):
        return x + 0

    def vjp(x, gamma, beta, g, *, eps, axes):
        return add_one(x), None, None

    inputs = {"x": np.random.default_rng(0).normal(size=shape), "gamma": None, "beta": None}
    session = _session("layer_norm", lambda x, gamma, beta, *, eps, axes: add_one(x))
    y = session.call(inputs, LAYER_NORM, times=3)[2]["y"]
    assert not np.allclose(y[0], inputs["x"][0] + 1)
    calls.clear()
    _, gradients = _session("layer_norm", plain, {"vjp": vjp}).vjp(inputs, LAYER_NORM, inputs["x"], times=3)
    assert not np.allclose(gradients[2]["x"][0], inputs["x"][0] + 1)


def test_a_call_leaves_nothing_for_the_garbage_collector():
    """Its tensors are freed at once: a worker would hold those of many calls."""
    target = resolve("numpy", op="mhc")
    session, parts = target.session(target.bindings[0]), {"branches": (Part("identity"), Part("identity"))}
    inputs = {"x": np.ones((2, 3)), "logits": np.zeros(2)}
    gc.collect()
    gc.disable()
    try:
        session.call(inputs, {}, parts=parts)
        session.vjp(inputs, {}, inputs["x"], parts=parts)
        assert gc.collect() == 0
    finally:
        gc.enable()
