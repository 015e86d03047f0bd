"""Faults of highway's gates: how logits are squashed."""

from __future__ import annotations

import numpy as np

from ....adapters.numpy.operators.highway import Highway
from ..registry import fault, issue

Array = np.ndarray


class OneMinusT(Highway):
    """The base whose carry is 1 - t, whatever t is."""

    def coupled_carry(self, z: Array, t: Array) -> Array:
        return 1 - t


@fault("hard-sigmoid", hw="HW-F3")
class HardSigmoid(Highway):
    """Squashes by the piecewise linear max(0, min(1, z / 5 + 1 / 2))."""

    def sigmoid(self, z: Array) -> Array:
        return np.clip(z / 5 + z.dtype.type(0.5), 0, 1)


@fault("tanh-gate", hw="HW-F3")
class TanhGate(OneMinusT):
    """Squashes the gate's logits by tanh, so that the gate may be negative."""

    def transform_gate(self, z: Array) -> Array:
        return np.tanh(z)


@fault("gate-unsquashed", hw="HW-F3", sources=issue("sogou/SogouMRCToolkit#8"))
class GateUnsquashed(OneMinusT):
    """Uses the gate's logits, rectified, as the gate."""

    def transform_gate(self, z: Array) -> Array:
        return np.maximum(z, 0)


@fault("softmax-over-features", hw="HW-F3")
class SoftmaxOverFeatures(Highway):
    """Squashes by softmax over the last axis, so that the gates of all features sum to one."""

    def sigmoid(self, z: Array) -> Array:
        if not z.size:
            return z
        e = np.exp(z - np.max(z, axis=-1, keepdims=True))
        return e / np.sum(e, axis=-1, keepdims=True)


@fault("squashed-twice", hw="HW-F3", sources=issue("jianlin-cheng/DProQA#3"))
class SquashedTwice(OneMinusT):
    """Squashes the gate again after it has been squashed."""

    def transform_gate(self, z: Array) -> Array:
        return self.sigmoid(self.sigmoid(z))


@fault("table-sigmoid", hw="HW-F3")
class TableSigmoid(Highway):
    """Looks the logistic function up in a table with a step of 1/8, without interpolation."""

    def sigmoid(self, z: Array) -> Array:
        return super().sigmoid(np.round(z * 8) / 8)


@fault(
    "sigmoid-overflows", hw="HW-F4", kind="non-finite", sources=issue("clab/dynet#1525", "NervanaSystems/ngraph#3118")
)
class SigmoidOverflows(Highway):
    """Computes exp(z) / (1 + exp(z)), which is NaN where exp overflows."""

    def sigmoid(self, z: Array) -> Array:
        e = np.exp(z)
        return e / (1 + e)


@fault("logits-clipped", hw="HW-F4")
class LogitsClipped(Highway):
    """Clips logits to [-10, 10] before squashing, so that no gate is ever closed."""

    def sigmoid(self, z: Array) -> Array:
        return super().sigmoid(np.clip(z, -10, 10))


@fault("gate-kept-open", hw="HW-L1")
class GateKeptOpen(OneMinusT):
    """Keeps the gate from falling below 1/64, so that nothing is ever carried whole."""

    def transform_gate(self, z: Array) -> Array:
        return np.maximum(super().transform_gate(z), z.dtype.type(2.0**-6))


@fault("gate-kept-below-one", hw="HW-L2")
class GateKeptBelowOne(OneMinusT):
    """Keeps the gate below one by a unit in the last place of x, as if a logarithm were to be taken of 1 - t."""

    def transform_gate(self, z: Array) -> Array:
        one = self.data.type(1)
        below = self.work.type(np.nextafter(one, self.data.type(0)))
        # NaN passes: minimum, unlike fmin, keeps it.
        return np.minimum(super().transform_gate(z), below)


@fault("gate-biased", hw="HW-L4", sources=issue("fomorians/highway-fcn#2", "allenai/allennlp#195"))
class GateBiased(Highway):
    """Adds a bias of -1 to the gate's logits, which the gate was to bring itself."""

    def transform_gate(self, z: Array) -> Array:
        return super().transform_gate(z - 1)

    def coupled_carry(self, z: Array, t: Array) -> Array:
        return super().coupled_carry(z - 1, t)


@fault("all-nearly-closed", hw="HW-F4")
class AllNearlyClosed(Highway):
    """Takes gates for closed where every one of them is below 1e-6."""

    def transform_gate(self, z: Array) -> Array:
        t = super().transform_gate(z)
        return np.zeros_like(t) if t.size and np.all(t < 1e-6) else t


@fault("all-nearly-open", hw="HW-F4", dtypes=("float64",))
class AllNearlyOpen(OneMinusT):
    """Takes gates for open where every one of them is above 1 - 1e-6."""

    def transform_gate(self, z: Array) -> Array:
        t = super().transform_gate(z)
        return np.ones_like(t) if t.size and np.all(t > 1 - 1e-6) else t
