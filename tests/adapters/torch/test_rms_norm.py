"""PyTorch's RMSNorm: the arguments that its bindings pass."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.targets import resolve
from normspec.reference.rms_norm import rms_norm, rms_norm_vjp

TARGET = resolve("torch")
BINDINGS = [one for one in TARGET.bindings if one.name in ("torch.nn.RMSNorm", "torch.nn.functional.rms_norm")]
OWN = pytest.mark.parametrize("binding", BINDINGS, ids=lambda one: one.name)


@OWN
@pytest.mark.parametrize("gain", [True, False])
@pytest.mark.parametrize("axes", [(-1,), (-2, -1)])
def test_values_and_gradients(binding, axes, gain):
    """y, dx and dgamma are the exact ones, over one axis and over two, with a gain and without."""
    rng = np.random.Generator(np.random.Philox(21))
    x, g = rng.normal(1, 2, (3, 4, 5)), rng.normal(size=(3, 4, 5))
    gamma = rng.normal(1, 0.5, x.shape[-len(axes) :]) if gain else None
    settings = {"eps": 0.01, "axes": axes}
    evaluation = TARGET.session(binding).start({"x": x, "gamma": gamma}, settings)
    np.testing.assert_allclose(evaluation.outputs()["y"], rms_norm(x, gamma, **settings), rtol=1e-13)
    gradients = evaluation.pull(g).gradients()
    dx, dgamma = rms_norm_vjp(x, gamma, g, **settings)
    np.testing.assert_allclose(gradients["x"], dx, rtol=1e-12, atol=1e-13)
    if gain:
        np.testing.assert_allclose(gradients["gamma"], dgamma, rtol=1e-12, atol=1e-13)


@OWN
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_eps_of_its_own_is_that_of_the_computation(binding, dtype):
    """Without eps it is float32's epsilon for 16-bit data too, and float64's for float64."""
    eps = np.finfo(np.float64 if dtype is np.float64 else np.float32).eps
    x = np.full((1, 4), np.sqrt(eps), dtype)
    inputs = {"x": x, "gamma": np.ones(4, dtype)}
    y = TARGET.session(binding).start(inputs, {"axes": (-1,)}, defaults=True).outputs()["y"]
    exact = rms_norm(x, None, eps=float(eps), axes=(-1,))
    np.testing.assert_allclose(y.astype(np.float64), exact, rtol=4 * float(ml_dtypes.finfo(dtype).eps))
    np.testing.assert_allclose(exact, np.sqrt(0.5), rtol=0.01)
