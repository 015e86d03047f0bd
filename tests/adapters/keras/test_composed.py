"""The operators of Keras's layers and operations, against those of the NumPy target."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters import numpy as plain
from normspec.adapters.binding import COMPOSED, OPERATORS, differentiable
from normspec.adapters.keras import target
from normspec.adapters.keras.bridge import BACKEND
from normspec.adapters.session import Session

from ..composed_problems import PROBLEMS, SHAPE

TARGET = target()
PLAIN = plain.target()
CASES = [
    pytest.param(binding, name, id=f"{binding.name}, {name}")
    for binding in TARGET.bindings
    for name, problem in PROBLEMS.items()
    if problem.operator == binding.operator
]
#: Without parts: an operator's settings.
GROUPS = {
    "layer_norm": {"eps": 0.1, "axes": (-2, -1)},
    "batch_norm": {"eps": 0.1, "momentum": 0.25, "training": True, "channel_axis": -2},
}

# On JAX each case is several seconds of compiling.
_DTYPES = (np.float32,) if BACKEND == "jax" else (np.float16, ml_dtypes.bfloat16, np.float32)

in_each_dtype = pytest.mark.parametrize("dtype", _DTYPES)


def _drawn(shape, dtype, seed):
    return np.random.Generator(np.random.Philox(seed)).normal(size=shape).astype(dtype)


def _wide(arrays):
    return {name: None if array is None else array.astype(np.float64) for name, array in arrays.items()}


def _agree(binding, inputs, settings, parts, dtype):
    """Value, gradients, tangent and second order are those of the NumPy target in float64, up to roundings."""
    (exactly,) = (b for b in PLAIN.bindings if b.operator == binding.operator)
    names = differentiable(binding.operator, inputs)
    explicit = [n for n in names if "." not in n]
    along = {n: _drawn(inputs[n].shape, dtype, 2) for n in names}
    # TensorFlow's second derivative of the variance is known to be wrong in x; those in the parameters are not.
    second = {n: along[n] for n in explicit if n != "x" or BACKEND != "tensorflow" or "gamma" not in inputs}

    # PyTorch's layer_norm is not differentiable twice where it has a beta and no gamma.
    twice = BACKEND != "torch" or binding.operator == "batch_norm" or "gamma" in along or "beta" not in along

    def all_of(session, inputs, g, along, second):
        evaluation = session.start(inputs, settings, parts=parts)
        found = {
            **evaluation.outputs(),
            **{f"d{n}": gradient for n, gradient in evaluation.pull(g).gradients().items()},
            "tangent": session.jvp(inputs, settings, along, parts=parts),
        }
        if twice:
            bars = session.vjp_vjp(inputs, settings, g, second, parts=parts)
            found |= {f"{n}_bar": bar for n, bar in bars.items()}
        return found

    g = _drawn(SHAPE, dtype, 1)
    got = all_of(Session(TARGET, binding), inputs, g, along, second)
    exact = all_of(Session(PLAIN, exactly), _wide(inputs), g.astype(np.float64), _wide(along), _wide(second))
    assert got.keys() == exact.keys()
    for what, value in exact.items():
        if value is None:
            assert got[what] is None, what
            continue
        assert got[what].dtype == dtype, what
        # A few dozen roundings of values of the largest's size: loose, since only the wiring is in question here.
        tolerance = 64 * float(ml_dtypes.finfo(dtype).eps) * (1 + np.abs(value).max())
        np.testing.assert_allclose(got[what].astype(np.float64), value, atol=tolerance, err_msg=what)


@in_each_dtype
@pytest.mark.parametrize(("binding", "name"), CASES)
def test_composed(binding, name, dtype):
    """A composed operator's values and derivatives are right, those of its parts' leaves among them."""
    problem = PROBLEMS[name]
    _agree(binding, problem.drawn(dtype), problem.settings, problem.parts, dtype)


@in_each_dtype
@pytest.mark.parametrize("parameters", ["both", "none"] if BACKEND == "jax" else ["both", "gamma", "beta", "none"])
@pytest.mark.parametrize("operator", GROUPS)
def test_normalisations(operator, parameters, dtype):
    """LayerNorm over two axes and BatchNorm over a middle one are right, with both parameters, either and none."""
    shape = SHAPE[-2:] if operator == "layer_norm" else SHAPE[-2:-1]
    inputs = {
        "x": _drawn(SHAPE, dtype, 3),
        "gamma": _drawn(shape, dtype, 4) if parameters in ("both", "gamma") else None,
        "beta": _drawn(shape, dtype, 5) if parameters in ("both", "beta") else None,
    }
    if operator == "batch_norm":
        inputs |= {"running_mean": _drawn(shape, dtype, 6), "running_var": np.ones(shape, dtype)}
    for binding in (b for b in TARGET.bindings if b.operator == operator):
        _agree(binding, inputs, GROUPS[operator], None, dtype)


def test_nothing_is_kept_from_one_call_to_the_next():
    """A layer is made once and serves all calls: its own weights stay as they were, and others give other results."""
    (binding,) = (b for b in TARGET.bindings if b.name == "keras.layers.BatchNormalization")
    session, results = Session(TARGET, binding), []
    for scale in (1, 2, 1):
        inputs = {
            "x": np.array([[1.0], [3.0]], np.float32),
            "gamma": np.full(1, scale, np.float32),
            "beta": np.zeros(1, np.float32),
            "running_mean": np.full(1, scale, np.float32),
            "running_var": np.ones(1, np.float32),
        }
        results.append(session.start(inputs, {**GROUPS["batch_norm"], "channel_axis": 1}).outputs())
    assert all((results[0][name] == results[2][name]).all() for name in results[0])
    np.testing.assert_allclose(results[1]["y"], 2 * results[0]["y"])
    np.testing.assert_allclose([r["new_running_mean"][0] for r in results], [1.25, 2.0, 1.25])


def test_every_operator_has_a_binding():
    """Each operator is there."""
    assert {binding.operator for binding in TARGET.bindings} == set(OPERATORS) >= set(COMPOSED)
