"""PyTorch's own layers, called canonically."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.numpy.operators import function
from normspec.adapters.targets import resolve
from normspec.spec.errors import TargetRaised

TARGET = resolve("torch", op=("layer_norm", "batch_norm"))
DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
RANKS = {"torch.nn.BatchNorm2d": 4, "torch.nn.BatchNorm3d": 5}
SHAPES: dict[int, tuple[int, ...]] = {2: (7, 5), 4: (3, 5, 2, 4), 5: (3, 5, 2, 4, 2)}


def _cases(*operators):
    for binding in TARGET.bindings:
        if operators and binding.operator not in operators:
            continue
        for training in (True, False) if binding.operator == "batch_norm" else (True,):
            yield pytest.param(binding, training, id=f"{binding.name}-{'training' if training else 'inference'}")


def _problem(binding, training, dtype, seed=5):
    rng = np.random.Generator(np.random.Philox(seed))
    shape = SHAPES[RANKS.get(binding.name, 2)]
    c = shape[1]
    drawn = {"x": rng.normal(1, 2, shape), "gamma": rng.normal(1, 0.5, c), "beta": rng.normal(0, 1, c)}
    settings = {"eps": 0.01, "axes": (-1,)}
    if binding.operator == "batch_norm":
        drawn.update(running_mean=rng.normal(0, 1, c), running_var=rng.uniform(0.5, 2, c))
        settings = {"eps": 0.01, "momentum": 0.3, "training": training, "channel_axis": 1}
    others = [rng.normal(size=shape), rng.normal(size=shape), rng.normal(size=c), rng.normal(size=c)]
    return {name: array.astype(dtype) for name, array in drawn.items()}, settings, [a.astype(dtype) for a in others]


def _expected(binding, suffix, inputs, settings, *more):
    """The results of the plain NumPy layers, in float64."""
    made = function(binding.operator, suffix.removeprefix("_") or "call")
    wide = [array.astype(np.float64) for array in (*inputs.values(), *more)]
    result = made(*wide, **settings)
    return result if isinstance(result, tuple) else (result,)


def _close(got, expected, dtype):
    # 20 units of the dtype, on values of a few units: loose, since only the wiring is in question here.
    tolerance = 20 * float(ml_dtypes.finfo(dtype).eps)
    assert got.dtype == dtype
    np.testing.assert_allclose(got.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("binding", "training"), list(_cases()))
def test_values_and_derivatives(binding, training, dtype):
    """Forward, gradients, tangent and second order are wired to the inputs that they belong to."""
    inputs, settings, (g, a, b, c) = _problem(binding, training, dtype)
    session = TARGET.session(binding)
    evaluation = session.start(inputs, settings)
    outputs = evaluation.outputs()
    expected = _expected(binding, "", inputs, settings)
    _close(outputs["y"], expected[0], dtype)
    if binding.operator == "batch_norm":
        _close(outputs["new_running_mean"], expected[1], dtype)
    for got, exact in zip(
        evaluation.pull(g).gradients().values(), _expected(binding, "_vjp", inputs, settings, g), strict=True
    ):
        _close(got, exact, dtype)
    tangent = session.jvp(inputs, settings, {"x": a, "gamma": b, "beta": c})
    _close(tangent, _expected(binding, "_jvp", inputs, settings, a, b, c)[0], dtype)
    second = session.vjp_vjp(inputs, settings, g, {"x": a, "gamma": b, "beta": c})
    for got, exact in zip(second.values(), _expected(binding, "_vjp_vjp", inputs, settings, g, a, b, c), strict=True):
        _close(got, exact, dtype)


@pytest.mark.parametrize(("binding", "training"), list(_cases()))
def test_float32_parameters(binding, training):
    """16-bit x with float32 parameters gives y in x's dtype, and parameter gradients and statistics in float32."""
    inputs, settings, (g, *_) = _problem(binding, training, np.float32)
    inputs["x"], g = inputs["x"].astype(ml_dtypes.bfloat16), g.astype(ml_dtypes.bfloat16)
    evaluation = TARGET.session(binding).start(inputs, settings)
    outputs, gradients = evaluation.outputs(), evaluation.pull(g).gradients()
    assert outputs.pop("y").dtype == gradients.pop("x").dtype == ml_dtypes.bfloat16
    assert {array.dtype for array in (*outputs.values(), *gradients.values())} == {np.dtype(np.float32)}


@pytest.mark.parametrize("absent", [("gamma",), ("beta",), ("gamma", "beta")])
@pytest.mark.parametrize(("binding", "training"), list(_cases()))
def test_absent_parameters(binding, training, absent):
    """None for gamma or beta means ones or zeros, in the modules as well."""
    inputs, settings, (g, a, *_) = _problem(binding, training, np.float64)
    default = {"gamma": np.ones_like(inputs["gamma"]), "beta": np.zeros_like(inputs["beta"])}
    session = TARGET.session(binding)
    evaluation = session.start({**inputs, **dict.fromkeys(absent)}, settings)
    filled = {**inputs, **{name: default[name] for name in absent}}
    _close(evaluation.outputs()["y"], _expected(binding, "", filled, settings)[0], np.float64)
    gradients = evaluation.pull(g).gradients()
    assert {name for name, value in gradients.items() if value is None} == set(absent)
    second = session.vjp_vjp({**inputs, **dict.fromkeys(absent)}, settings, g, {"x": a})
    assert (second["gamma"] is None) is ("gamma" in absent)


@pytest.mark.parametrize("wrt", [("x",), ("gamma",), ("beta",), ("x", "beta")])
@pytest.mark.parametrize(("binding", "training"), list(_cases()))
def test_gradient_masks(binding, training, wrt):
    """Only requested gradients are tracked, and they have the same values."""
    inputs, settings, (g, *_) = _problem(binding, training, np.float64)
    session = TARGET.session(binding)
    every = session.start(inputs, settings).pull(g).gradients()
    some = session.start(inputs, settings, wrt=wrt).pull(g).gradients()
    assert {name for name, value in some.items() if value is not None} == set(wrt)
    for name in wrt:
        _close(some[name], every[name], np.float64)


@pytest.mark.parametrize("layout", ["transposed", "strided", "offset"])
@pytest.mark.parametrize(("binding", "training"), list(_cases()))
def test_layouts_of_every_input(binding, training, layout):
    """A view of any layout gives the values of its contiguous copy, as input and as cotangent."""
    inputs, settings, (g, *_) = _problem(binding, training, np.float64)
    layouts = dict.fromkeys(inputs, layout)
    if layout == "transposed":
        layouts = {"x": layout}
    session = TARGET.session(binding)
    plainly, oddly = session.start(inputs, settings), session.start(inputs, settings, layouts=layouts)
    for name, value in plainly.outputs().items():
        _close(oddly.outputs()[name], value, np.float64)
    for name, value in plainly.pull(g, keep=True).gradients().items():
        _close(oddly.pull(g, layout, keep=True).gradients()[name], value, np.float64)


@pytest.mark.parametrize("axis", [0, 2, -1, -3])
def test_channel_axis_is_moved(axis):
    """Any channel axis works: x is moved there and y back."""
    binding = next(b for b in TARGET.bindings if b.name == "torch.nn.BatchNorm1d")
    rng = np.random.Generator(np.random.Philox(6))
    x = rng.normal(size=(3, 4, 5))
    c = x.shape[axis]
    inputs = {"x": x, "gamma": rng.normal(size=c), "beta": None, "running_mean": np.zeros(c), "running_var": np.ones(c)}
    settings = {"eps": 0.01, "momentum": 0.3, "training": True, "channel_axis": axis}
    y = TARGET.session(binding).start(inputs, settings).outputs()["y"]
    expected = function("batch_norm")(*inputs.values(), **settings)[0]
    _close(y, expected, np.float64)


def test_several_axes():
    """LayerNorm's normalized_shape covers all the axes that are named."""
    rng = np.random.Generator(np.random.Philox(7))
    inputs = {"x": rng.normal(size=(3, 4, 5)), "gamma": rng.normal(size=(4, 5)), "beta": None}
    settings = {"eps": 0.01, "axes": (-2, -1)}
    for binding in resolve("torch", op="layer_norm").bindings:
        y = TARGET.session(binding).start(inputs, settings).outputs()["y"]
        _close(y, function("layer_norm")(*inputs.values(), **settings), np.float64)


@pytest.mark.parametrize(("binding", "training"), list(_cases("batch_norm")))
def test_running_statistics_are_new_tensors(binding, training):
    """PyTorch updates running statistics in place; the tensors passed are nevertheless left unchanged."""
    inputs, settings, _ = _problem(binding, training, np.float32)
    evaluation = TARGET.session(binding).start(inputs, settings)
    for name, now in evaluation.inputs().items():
        assert (now == inputs[name]).all()
    outputs = evaluation.outputs()
    changed = (outputs["new_running_mean"] != inputs["running_mean"]).all()
    assert changed == training


@pytest.mark.parametrize(("binding", "training"), list(_cases("layer_norm")))
def test_inference_mode_of_layer_norm(binding, training):
    """In inference mode LayerNorm computes the same."""
    inputs, settings, _ = _problem(binding, training, np.float32)
    session = TARGET.session(binding)
    y = session.start(inputs, settings).outputs()["y"]
    assert (session.start(inputs, settings, mode="inference").outputs()["y"] == y).all()


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("torch.nn.BatchNorm1d", {2, 3}),
        ("torch.nn.BatchNorm2d", {4}),
        ("torch.nn.BatchNorm3d", {5}),
        ("torch.nn.functional.batch_norm", {2, 3, 4, 5, 6}),
        ("torch.nn.LayerNorm", {1, 2, 3, 4, 5, 6}),
        ("torch.nn.functional.layer_norm", {1, 2, 3, 4, 5, 6}),
    ],
)
def test_ranks_accepted_are_those_that_work(name, ranks):
    """A binding accepts exactly the ranks that its layer takes, and gives a reason for the others."""
    binding = next(b for b in TARGET.bindings if b.name == name)
    session = TARGET.session(binding)
    for rank in range(1, 7):
        shape: tuple[int, ...] = (3, 2, 2, 2, 2, 2)[:rank]
        x = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
        if binding.operator == "layer_norm":
            inputs, settings = {"x": x, "gamma": None, "beta": None}, {"eps": 0.1, "axes": (-1,)}
        else:
            axis = min(1, rank - 1)
            c = shape[axis]
            inputs = {"x": x, "gamma": None, "beta": None, "running_mean": np.zeros(c), "running_var": np.ones(c)}
            settings = {"eps": 0.1, "momentum": 0.5, "training": True, "channel_axis": axis}
        reason = binding.accepts(shape, settings)
        assert (reason is None) is (rank in ranks), (rank, reason)
        if reason is None:
            session.start(inputs, settings).outputs()
        else:
            assert name in reason
            with pytest.raises(TargetRaised):
                session.start(inputs, settings)
