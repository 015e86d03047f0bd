"""The formulas of pre_norm and post_norm, for a layer's recordings at its seams."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

EPS = 0.1


def drawn(shape: tuple[int, ...], dtype: Any) -> tuple[dict[str, Any], np.ndarray]:
    """x, gamma and beta, and a cotangent."""
    rng = np.random.Generator(np.random.Philox(31))
    n = shape[-1]
    inputs = {"x": rng.normal(size=shape), "gamma": rng.normal(1, 0.5, n), "beta": rng.normal(size=n)}
    return {name: array.astype(dtype) for name, array in inputs.items()}, rng.normal(size=shape).astype(dtype)


def _normalised(s, gamma, beta, g):
    """LN(s), and its three gradients for the cotangent g."""
    d = s - s.mean(-1, keepdims=True)
    r = 1 / np.sqrt((d * d).mean(-1, keepdims=True) + EPS)
    xhat, h = d * r, gamma * g
    ds = r * (h - h.mean(-1, keepdims=True) - xhat * (h * xhat).mean(-1, keepdims=True))
    return gamma * xhat + beta, ds, (g * xhat).sum((0, 1)), g.sum((0, 1))


def judged(target, binding, problem) -> None:
    """Assert that every block obeys the formulas, up to a few roundings of its dtype."""
    inputs, g = problem
    blocks = target.session(binding).seams(inputs, {"eps": EPS}, g, seed=3)
    dtype = inputs["x"].dtype
    for recorded in blocks:
        assert {array.dtype for array in recorded.values()} == {dtype}
        b = {name: array.astype(np.float64) for name, array in recorded.items()}
        x, gamma, beta = b["x"], b["gamma"], b["beta"]
        if binding.operator == "pre_norm":
            normal, ds, dgamma, dbeta = _normalised(x, gamma, beta, b["g_received"])
            expected = {"received": normal, "y": x + b["returned"], "g_returned": b["g"], "dx": b["g"] + ds}
        else:
            y, ds, dgamma, dbeta = _normalised(x + b["returned"], gamma, beta, b["g"])
            expected = {"received": x, "y": y, "g_returned": ds, "dx": ds + b["g_received"]}
        for name, exact in {**expected, "dgamma": dgamma, "dbeta": dbeta}.items():
            # 16-bit data: LayerNorm sums ten rows in 16 bits.
            tolerance = 32 * float(ml_dtypes.finfo(dtype).eps) * (1 + np.abs(exact).max())
            np.testing.assert_allclose(b[name], exact, atol=tolerance, err_msg=name)
