"""Faults of the epsilon: where it is added, and which one is."""

from __future__ import annotations

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.rows import Array, RowSteps, Statistics
from ...reference.formats import FORMATS
from .registry import SIXTEEN_BIT, WIDE, fault, issue


@fault(
    "eps-on-std",
    ln="LN-F3",
    bn="BN-F3",
    sources=issue("tracel-ai/burn#2185", "callummcdougall/ARENA_3.0#228", "taokong/group_normalization#1"),
)
class EpsOnStd(RowSteps):
    """Divides by sqrt(var) + eps."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return 1 / (np.sqrt(variance) + eps)


@fault("eps-under-second-root", ln="LN-F1", bn="BN-F1")
class EpsUnderSecondRoot(RowSteps):
    """Divides by sqrt(sigma + eps), sigma being the deviation where the variance is meant."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return 1 / np.sqrt(np.sqrt(variance) + eps)


@fault("eps-missing", ln="LN-F4", bn="BN-F4", sources=issue("pytorch/vision#2169"))
class EpsMissing(RowSteps):
    """Divides by sqrt(var)."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return 1 / np.sqrt(variance)


@fault("eps-max", ln="LN-F3", bn="BN-F3", sources=issue("jax-ml/jax#30426", "jax-ml/jax#33496"))
class EpsMax(RowSteps):
    """Divides by sqrt(max(var, eps))."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return 1 / np.sqrt(np.maximum(variance, eps))


@fault("eps-double", ln="LN-F4", bn="BN-F4")
class EpsDouble(RowSteps):
    """Adds eps twice, once with the statistics and once on normalising."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return super().rstd(variance + eps, eps)


@fault("eps-tenfold", ln="LN-F4", bn="BN-F4")
class EpsTenfold(RowSteps):
    """Uses ten times the eps given."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return super().rstd(variance, 10 * eps)


@fault(
    "eps-on-sum",
    ln="LN-F4",
    bn="BN-F4",
    sources=(
        "https://github.com/patrick-kidger/equinox/pull/545",
        "https://github.com/patrick-kidger/equinox/pull/629",
    ),
)
class EpsOnSum(RowSteps):
    """Adds eps to the sum of squares, so that it acts as eps / n."""

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        return super().statistics(x, eps / eps.dtype.type(max(x.shape[1], 1)))


@fault("eps-squared", ln="LN-F4", bn="BN-F4")
class EpsSquared(RowSteps):
    """Adds the square of eps to the variance."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return super().rstd(variance, eps * eps)


@fault(
    "eps-hardcoded",
    ln="LN-F4",
    bn="BN-F4",
    sources=issue("openvinotoolkit/openvino#1003", "NervanaSystems/ngraph-onnx#142"),
)
class EpsHardcoded(RowSteps):
    """Uses 1e-5 whatever eps is given."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return super().rstd(variance, variance.dtype.type(1e-5))


@fault("eps-floor", ln="LN-F4", bn="BN-F4", sources=issue("onnx/onnx#1820", "tianzhi0549/FCOS#219"))
class EpsFloor(RowSteps):
    """Raises an eps below 1e-5 to 1e-5."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return super().rstd(variance, np.maximum(eps, variance.dtype.type(1e-5)))


@fault("eps-ceiling", ln="LN-F4", bn="BN-F4")
class EpsCeiling(RowSteps):
    """Lowers an eps above 10 to 10."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return super().rstd(variance, np.minimum(eps, variance.dtype.type(10)))


@fault("variance-floor", ln="LN-F1", bn="BN-F1", dtypes=("bfloat16", *WIDE))
class VarianceFloor(RowSteps):
    """Raises a variance below 1e-24 to 1e-24, also where eps is 0."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return super().rstd(np.maximum(variance, variance.dtype.type(1e-24)), eps)


@fault("eps-zero-replaced", ln="LN-F1", bn="BN-F1", pr="PR-F1", po="PO-F1")
class EpsZeroReplaced(RowSteps):
    """Takes an eps of 0 for none given, and uses 1e-6."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return super().rstd(variance, eps if eps else variance.dtype.type(1e-6))


@fault(
    "eps-float16",
    ln="LN-F4",
    bn="BN-F4",
    kind="dtype",
    sources=issue("pytorch/pytorch#41527", "tensorflow/tensorflow#24979", "deepspeedai/DeepSpeed#581"),
)
class EpsFloat16(RowSteps):
    """Rounds eps to float16, where anything below 2^-25 becomes zero."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return super().rstd(variance, eps.dtype.type(np.float16(eps)))


@fault("eps-bfloat16", ln="LN-F4", bn="BN-F4", kind="dtype", dtypes=("float16", *WIDE))
class EpsBfloat16(RowSteps):
    """Rounds eps to bfloat16, which changes its third digit."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return super().rstd(variance, eps.dtype.type(FORMATS["bfloat16"].dtype.type(eps)))


@fault("eps-float32", ln="LN-F4", bn="BN-F4", kind="dtype", dtypes=("float64",))
class EpsFloat32(RowSteps):
    """Rounds eps to float32, which shows in float64."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return super().rstd(variance, eps.dtype.type(np.float32(eps)))


@fault(
    "variance-plus-eps-narrow",
    ln="LN-F1",
    bn="BN-F1",
    kind="dtype",
    dtypes=SIXTEEN_BIT,
    sources=issue("pytorch/pytorch#41527"),
)
class VariancePlusEpsNarrow(Groups):
    """Rounds variance + eps to the 16-bit dtype of x before the root."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        narrow = (variance + eps).astype(self.data).astype(variance.dtype)
        return 1 / np.sqrt(narrow)


@fault("eps-missing-of-four-axes", ln="LN-F1", apart=("gn", "in"))
class EpsMissingOfFourAxes(Groups):
    """Leaves eps out where x has four axes, as for the heads of attention."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return super().rstd(variance, eps * 0 if len(self.shape) == 4 else eps)


@fault("eps-tenfold-of-channels-last", bn="BN-F1", gn="GN-F1", in_="IN-F1")
class EpsTenfoldOfChannelsLast(Groups):
    """Adds ten times eps where the channels are the last of three axes or more."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        last = self.channel_axis % len(self.shape) == len(self.shape) - 1
        return super().rstd(variance, 10 * eps if last and len(self.shape) > 2 else eps)


@fault("eps-in-mean", ln="LN-F1", bn="BN-F1")
class EpsInMean(RowSteps):
    """Adds eps to the numerator as well."""

    def normalise(self, x: Array, s: Statistics) -> Array:
        return (x - s.mean + x.dtype.type(self.eps)) * s.rstd

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        self.eps = eps
        return super().rstd(variance, eps)


@fault("eps-after-prescale", ln="LN-L1", bn="BN-L1", sources=issue("apple/coremltools#2821"))
class EpsAfterPrescale(RowSteps):
    """Divides each group by its largest magnitude and then adds eps as it is, so that eps grows with the data."""

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        if not x.size:
            return super().statistics(x, eps)
        largest = np.max(np.abs(x), axis=1, keepdims=True)
        largest = np.where(largest > 0, largest, 1).astype(x.dtype)
        scaled = super().statistics(x / largest, eps)
        return Statistics(scaled.mean * largest, scaled.variance * largest * largest, scaled.rstd / largest)


@fault("eps-missing-in-inference", bn="BN-I1", sources=issue("pytorch/vision#2169", "pytorch/vision#2599"))
class EpsMissingInInference(BatchNorm):
    """Divides by sqrt(running variance) in inference."""

    def fixed_statistics(self, x: Array, mean: Array, variance: Array, eps: np.floating) -> Statistics:
        return Statistics(mean, variance, 1 / np.sqrt(variance), fixed=True)


@fault(
    "eps-subtracted-in-inference",
    bn="BN-I1",
    sources=issue("shicai/MobileNet-Caffe#87", "facebookresearch/detectron2#3160"),
)
class EpsSubtractedInInference(BatchNorm):
    """Takes eps off the running variance in inference before adding it, as if it had been stored with it."""

    def fixed_statistics(self, x: Array, mean: Array, variance: Array, eps: np.floating) -> Statistics:
        return super().fixed_statistics(x, mean, variance - eps, eps)
