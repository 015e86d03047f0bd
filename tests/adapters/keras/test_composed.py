"""The operators of Keras's layers and operations, against those of the NumPy target."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.binding import differentiable
from normspec.adapters.keras import target
from normspec.adapters.keras.bridge import BACKEND
from normspec.spec.operators import COMPOSED, OPERATORS

from ..composed_checks import agree_on, cases, drawn
from ..composed_problems import PROBLEMS, SHAPE

TARGET = target()
#: Without parts: an operator's settings.
GROUPS = {
    "layer_norm": {"eps": 0.1, "axes": (-2, -1)},
    "batch_norm": {"eps": 0.1, "momentum": 0.25, "training": True, "channel_axis": -2},
}

# On JAX each case is several seconds of compiling.
_DTYPES = (np.float32,) if BACKEND == "jax" else (np.float16, ml_dtypes.bfloat16, np.float32)

in_each_dtype = pytest.mark.parametrize("dtype", _DTYPES)


def _agree(binding, inputs, settings, parts, dtype):
    """The binding agrees with the NumPy target, where its backend is known to be right."""
    named = differentiable(binding.operator, inputs)
    # TensorFlow's second derivative of the variance is known to be wrong in x; those in the parameters are not.
    held = frozenset({"x"} if BACKEND == "tensorflow" and "gamma" in inputs else ())
    # PyTorch's layer_norm is not differentiable twice where it has a beta and no gamma.
    twice = BACKEND != "torch" or binding.operator == "batch_norm" or "gamma" in named or "beta" not in named
    agree_on(TARGET, binding, inputs, settings, parts, dtype, held=held, twice=twice)


@in_each_dtype
@pytest.mark.parametrize(("binding", "name"), cases(TARGET.bindings))
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
        "x": drawn(SHAPE, dtype, 3),
        "gamma": drawn(shape, dtype, 4) if parameters in ("both", "gamma") else None,
        "beta": drawn(shape, dtype, 5) if parameters in ("both", "beta") else None,
    }
    if operator == "batch_norm":
        inputs |= {"running_mean": drawn(shape, dtype, 6), "running_var": np.ones(shape, dtype)}
    for binding in (b for b in TARGET.bindings if b.operator == operator):
        _agree(binding, inputs, GROUPS[operator], None, dtype)


def test_nothing_is_kept_from_one_call_to_the_next():
    """A layer is made once and serves all calls: its own weights stay as they were, and others give other results."""
    (binding,) = (b for b in TARGET.bindings if b.name == "keras.layers.BatchNormalization")
    session, results = TARGET.session(binding), []
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
