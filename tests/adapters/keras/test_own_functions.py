"""The user's own functions of keras.ops: they get the backend's tensors and use its differentiation."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import ops

from normspec.adapters.keras.bridge import BACKEND
from normspec.adapters.targets import resolve

SETTINGS = {"eps": 0.1, "axes": (-1,)}


def _norm(x, gamma, beta, *, eps, axes):
    d = x - ops.mean(x, axes, keepdims=True)
    return d / ops.sqrt(ops.mean(ops.square(d), axes, keepdims=True) + eps) * gamma + beta


def test_it_is_handed_keras_tensors(layer_norm_inputs):
    """Value and gradients of a function of keras.ops come back, on whichever backend is active."""
    target = resolve(_norm, op="layer_norm", framework="keras")
    assert (target.framework, target.version) == ("keras", keras.__version__)
    inputs = {n: None if a is None else a.astype(np.float32) for n, a in layer_norm_inputs.items()}
    evaluation = target.session(target.bindings[0]).start(inputs, SETTINGS)
    x = inputs["x"]
    d = x - x.mean(-1, keepdims=True)
    y = d / np.sqrt((d * d).mean(-1, keepdims=True) + 0.1) * inputs["gamma"] + inputs["beta"]
    np.testing.assert_allclose(evaluation.outputs()["y"], y, rtol=1e-5, atol=1e-6)
    gradients = evaluation.pull(np.ones_like(x)).gradients()
    np.testing.assert_allclose(gradients["beta"], np.full(x.shape[-1], x.size / x.shape[-1]))


@pytest.mark.parametrize("module", ["keras", "keras.ops"])
def test_the_framework_is_told_from_the_imports(tmp_path, module):
    """A file that imports keras is for Keras."""
    path = tmp_path / "own.py"
    path.write_text(f"import {module}\ndef layer_norm(x, gamma, beta, *, eps, axes):\n    return x\n", "utf-8")
    assert resolve(f"{path}:layer_norm").framework == "keras", BACKEND
