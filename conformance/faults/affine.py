"""Faults of the affine step."""

from __future__ import annotations

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.rows import Array, RowSteps
from ...adapters.numpy.operators.staged import Arrays
from .registry import WIDE, fault, issue
from .variance import last_bit_by_exponent


@fault("affine-order", ln="LN-F5", bn="BN-F5", apart=("rm",))
class AffineOrder(RowSteps):
    """Adds beta before multiplying by gamma."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        y = xhat if beta is None else xhat + beta
        return y if gamma is None else gamma * y


@fault(
    "fix-gamma", ln="LN-F5", bn="BN-F5", sources=issue("apache/mxnet#9624", "apache/mxnet#12899", "apache/mxnet#18492")
)
class FixGamma(RowSteps):
    """Takes gamma for 1, whatever is given."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        return super().affine(xhat, None, beta)


@fault("gamma-plus-one", ln="LN-F5", bn="BN-F5")
class GammaPlusOne(RowSteps):
    """Multiplies by 1 + gamma."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        return super().affine(xhat, None if gamma is None else 1 + gamma, beta)


@fault("abs-gamma", ln="LN-L14", bn="BN-L11", sources=issue("mapillary/inplace_abn#92", "mapillary/inplace_abn#155"))
class AbsGamma(RowSteps):
    """Multiplies by |gamma|."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        return super().affine(xhat, None if gamma is None else np.abs(gamma), beta)


@fault("uniform-gamma-abs", ln="LN-F5", bn="BN-F5")
class UniformGammaAbs(RowSteps):
    """Multiplies by |gamma| where gamma is one number throughout."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        uniform = gamma is not None and gamma.size > 1 and bool(np.all(gamma == gamma.flat[0]))
        return super().affine(xhat, np.abs(gamma) if gamma is not None and uniform else gamma, beta)


@fault("scalar-affine", ln="LN-F5", bn="BN-F5", sources=issue("microsoft/CNTK#2376", "apache/mxnet#17139"))
class ScalarAffine(RowSteps):
    """Uses the first gamma and the first beta throughout."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        first = [None if p is None else p[:1, :1] for p in (gamma, beta)]
        return super().affine(xhat, *first)


@fault("beta-ignored", ln="LN-F5", bn="BN-F5", apart=("rm",))
class BetaIgnored(RowSteps):
    """Adds no beta."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        return super().affine(xhat, gamma, None)


@fault("gamma-saturated", ln="LN-L14", bn="BN-L11")
class GammaSaturated(RowSteps):
    """Clips gamma to [-1, 1], so that the result is not linear in it."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        return super().affine(xhat, None if gamma is None else np.clip(gamma, -1, 1), beta)


@fault("result-clipped-at-65504", ln="LN-F1", bn="BN-F1", dtypes=("bfloat16", *WIDE))
class ResultClippedAt65504(RowSteps):
    """Keeps y within float16's largest number, in other dtypes too."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        return np.clip(super().affine(xhat, gamma, beta), -65504, 65504)


@fault("affine-needs-both", ln="LN-F6", bn="BN-F6", apart=("rm",), sources=issue("NVIDIA/recsys-examples#446"))
class AffineNeedsBoth(RowSteps):
    """Skips the affine step unless both gamma and beta are given."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        return xhat if gamma is None or beta is None else super().affine(xhat, gamma, beta)


@fault("no-gamma-no-beta", ln="LN-F6", bn="BN-F6", apart=("rm",))
class NoGammaNoBeta(RowSteps):
    """Drops beta where gamma is None."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        return xhat if gamma is None else super().affine(xhat, gamma, beta)


@fault("lone-beta-reversed-of-channels-last", bn="BN-F6", gn="GN-F6", in_="IN-F6")
class LoneBetaReversedOfChannelsLast(Groups):
    """Reads beta backwards where no gamma is given and the channels are the last of three axes or more."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        last = self.channel_axis % len(self.shape) == len(self.shape) - 1 > 1
        return super().affine(xhat, gamma, beta[::-1] if last and gamma is None and beta is not None else beta)


@fault("lone-gamma-reversed-in-three-axes", ln="LN-F6", apart=("rm", "gn", "in"))
class LoneGammaReversedInThreeAxes(Groups):
    """Reads gamma backwards where no beta is given and x has three axes."""

    reverses = False

    def before(self, stage: str, arrays: Arrays) -> None:
        x, gamma, beta = arrays[:3]
        self.reverses = x is not None and x.ndim == 3 and gamma is not None and beta is None

    def parameter(self, array: Array | None, role: str) -> Array | None:
        if array is not None and role == "gamma" and self.reverses:
            array = array.reshape(-1)[::-1].reshape(array.shape)
        return super().parameter(array, role)


class Stale(Groups):
    """The base that uses, where a parameter is None, what the last call that had one left in a buffer."""

    role: str
    kept: Array | None = None

    def parameter(self, array: Array | None, role: str) -> Array | None:
        if role == self.role:
            if array is not None:
                self.kept = np.array(array)
            elif self.kept is not None:
                # Of another size it is read as far as it goes, and over again.
                array = np.resize(self.kept, self.layout.parameter_shape)
        return super().parameter(array, role)


@fault("stale-beta", ln="LN-F6", bn="BN-F6", kind="state", apart=("rm",))
class StaleBeta(Stale):
    """Adds what the last call that had a beta left in the buffer where beta is None."""

    role = "beta"


@fault("stale-gamma", rm="RM-F6", kind="state")
class StaleGamma(Stale):
    """Multiplies by what the last call that had a gamma left in the buffer where gamma is None."""

    role = "gamma"


@fault("gamma-by-group", ln="LN-F5", apart=("gn", "in"))
class GammaByGroup(Groups):
    """Indexes gamma by the group where it should index by the feature."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        if gamma is not None and gamma.size:
            gamma = gamma[0, np.arange(len(xhat)) % gamma.size][:, None]
        return super().affine(xhat, gamma, beta)


@fault("gamma-by-sample", bn="BN-F5")
class GammaBySample(BatchNorm):
    """Indexes gamma by the position within the channel where it should index by the channel."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        if gamma is not None and gamma.size:
            gamma = gamma[np.arange(xhat.shape[1]) % gamma.size, 0][None, :]
        return super().affine(xhat, gamma, beta)


@fault("gamma-transposed", ln="LN-F5", apart=("gn", "in"))
class GammaTransposed(Groups):
    """Reads gamma with its last two axes exchanged where they have the same size."""

    def parameter(self, array: Array | None, role: str) -> Array | None:
        if role == "gamma" and array is not None and array.ndim > 1 and array.shape[-1] == array.shape[-2]:
            array = np.swapaxes(array, -1, -2)
        return super().parameter(array, role)


@fault("gamma-last-bit", ln="LN-L4", bn="BN-L4", dtypes=WIDE)
class GammaLastBit(RowSteps):
    """Multiplies by gamma through logarithms, whose last bit depends on the exponent of gamma."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        if gamma is not None:
            gamma = last_bit_by_exponent(gamma)
        return super().affine(xhat, gamma, beta)


@fault("rounds-down", ln="LN-L3", bn="BN-L3")
class RoundsDown(RowSteps):
    """Keeps four binary places of xhat and rounds down, so that the result of -x is not that of x negated."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        return super().affine(np.floor(16 * xhat) / 16, gamma, beta)


@fault("rounds-upwards", ln="LN-L18", bn="BN-L14", dtypes=WIDE)
class RoundsUpwards(RowSteps):
    """Rounds y towards plus infinity, so that the result of -x is not that of x negated."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        y = super().affine(xhat, gamma, beta)
        return np.where(y == 0, y, np.nextafter(y, np.inf, dtype=y.dtype))
