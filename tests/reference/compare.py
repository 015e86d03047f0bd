"""One comparison of the reference with the oracle: everything an operator returns, for one draw."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

from normspec import reference

from . import oracle
from .bounds import Bounds
from .judge import worst
from .regimes import Data, draw

Figures = dict[str, tuple[float, float]]

#: A momentum whose complement rounds.
MOMENTUM = 0.1


class Comparison:
    """The reference and the oracle on one regime at one size, for one operator."""

    def __init__(self, operator: str, regime: str, n: int, *, training: bool = True, rows: int = 3) -> None:
        self.columns = operator == "layer_norm"
        self.data: Data = draw(regime, n, columns=self.columns, rows=rows)
        self.bounds = Bounds(self.data, operator, training)
        self.training = training
        self.operator = operator

    def _settings(self) -> dict[str, Any]:
        if self.columns:
            return {"eps": self.data.eps, "axes": (-1,)}
        return {"eps": self.data.eps, "momentum": MOMENTUM, "training": self.training, "channel_axis": 0}

    def _call(self, derivative: str, *operands):
        """Call the reference: `derivative` is "", "_vjp", "_jvp" or "_vjp_vjp"."""
        data = self.data
        given = () if self.columns else (data.running_mean, data.running_var)
        function = getattr(reference, self.operator + derivative)
        return function(data.x, data.gamma, data.beta, *given, *operands, **self._settings())

    def _exactly(self) -> tuple:
        """Return x, gamma, beta, eps and the given statistics in the oracle's form."""
        data, shape = self.data, (1, -1) if self.columns else (-1, 1)
        x, mean, var = (oracle.exact(v) for v in (data.x, data.running_mean, data.running_var))
        gamma, beta = (oracle.exact(v).reshape(shape) for v in (data.gamma, data.beta))
        given = None if self.training else (mean[:, None], var[:, None])
        return x, gamma, beta, mpmath.mpf(data.eps), given

    def _precise(self, *more, order: int = 1):
        data = self.data
        operands = [data.x, data.gamma, data.beta, data.g, data.eps, *more]
        if not self.columns:
            operands += [data.running_mean, data.running_var]
        return mpmath.workprec(oracle.precision(*operands, order=order))

    def outputs(self) -> Figures:
        """Compare y and the running statistics."""
        with self._precise():
            x, gamma, beta, eps, given = self._exactly()
            true = {"y": oracle.forward(x, gamma, beta, eps, given)}
            bounds = self.bounds.outputs(MOMENTUM)
            got = self._call("")
            if self.columns:
                return {"y": worst(got, true["y"], bounds["y"])}
            if not self.training:
                return {"y": worst(got[0], true["y"], bounds["y"])}
            m = mpmath.mpf(MOMENTUM)
            mean, var = (s[:, 0] for s in oracle.statistics(x))
            true["new_running_mean"] = (1 - m) * oracle.exact(self.data.running_mean) + m * mean
            true["new_running_var"] = (1 - m) * oracle.exact(self.data.running_var) + m * var
            return {name: worst(g, true[name], bounds[name]) for name, g in zip(true, got, strict=True)}

    def gradients(self) -> Figures:
        """Compare dx, dgamma and dbeta."""
        with self._precise():
            x, gamma, _, eps, given = self._exactly()
            true = oracle.backward(x, gamma, eps, oracle.exact(self.data.g), 0 if self.columns else 1, given)
            bounds = self.bounds.gradients()
            got = self._call("_vjp", self.data.g)
            return {
                name: worst(g, t.reshape(g.shape), bounds[name]) for name, g, t in zip(bounds, got, true, strict=True)
            }

    def _operands(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Draw an operand for each of x, gamma and beta: of magnitude 1, and scaled to matter equally."""
        rng = np.random.Generator(np.random.Philox(key=7))
        plain = [rng.standard_normal(v.shape) for v in (self.data.x, self.data.gamma, self.data.beta)]
        exponents = (self.bounds.of_a, self.bounds.of_b, self.bounds.of_b)
        scaled = [np.ldexp(v, k) for v, k in zip(plain, exponents, strict=True)]
        return [np.ldexp(v, -k) for v, k in zip(scaled, exponents, strict=True)], scaled

    def _operands_exactly(self, scaled: list[np.ndarray]) -> list[np.ndarray]:
        shape = (1, -1) if self.columns else (-1, 1)
        return [oracle.exact(scaled[0]), *(oracle.exact(v).reshape(shape) for v in scaled[1:])]

    def jvp(self) -> Figures:
        """Compare the forward-mode derivative."""
        plain, scaled = self._operands()
        with self._precise(*scaled):
            x, gamma, beta, eps, given = self._exactly()
            tx, tgamma, tbeta = self._operands_exactly(scaled)
            true = oracle.forward_along(x, gamma, beta, eps, tx, tgamma, tbeta, given)
            return {"ty": worst(self._call("_jvp", *scaled), true, self.bounds.jvp(*plain))}

    def second_order(self) -> Figures:
        """Compare the vjp of the vjp."""
        plain, scaled = self._operands()
        with self._precise(*scaled, order=2):
            x, gamma, _, eps, given = self._exactly()
            a, b, c = self._operands_exactly(scaled)
            shared = 0 if self.columns else 1
            true = oracle.second_order(x, gamma, eps, oracle.exact(self.data.g), a, b, c, shared, given)
            bounds = self.bounds.vjp_vjp(*plain)
            got = self._call("_vjp_vjp", self.data.g, *scaled)
            return {
                f"{name}_bar": worst(g, t.reshape(g.shape), bounds[name])
                for name, g, t in zip(bounds, got, true, strict=True)
            }
