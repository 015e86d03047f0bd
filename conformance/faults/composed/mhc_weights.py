"""Faults of mhc's weights: what becomes of the logits."""

from __future__ import annotations

import numpy as np

from ....adapters.numpy.operators.mhc import Mhc
from ..registry import WIDE, fault, issue

Array = np.ndarray


@fault("weights-uniform", mh="MH-F1")
class WeightsUniform(Mhc):
    """Weighs all branches alike, whatever the logits."""

    def softmax(self, logits: Array) -> Array:
        return np.full_like(logits, 1 / logits.size)


@fault("weights-cooled", mh="MH-F1")
class WeightsCooled(Mhc):
    """Divides the logits by the root of their number."""

    def softmax(self, logits: Array) -> Array:
        return super().softmax(logits / logits.dtype.type(np.sqrt(logits.size)))


@fault("largest-logit-only", mh="MH-F1")
class LargestLogitOnly(Mhc):
    """Takes only the branch of the largest logit."""

    def softmax(self, logits: Array) -> Array:
        return (np.arange(logits.size) == np.argmax(logits)).astype(logits.dtype)


@fault("weights-unnormalised", mh="MH-F2", sources=issue("Maratyszcza/NNPACK#174"))
class WeightsUnnormalised(Mhc):
    """Uses exp(logits - max) without dividing by the sum."""

    def softmax(self, logits: Array) -> Array:
        return np.exp(logits - np.max(logits))


@fault("sigmoid-weights", mh="MH-F2")
class SigmoidWeights(Mhc):
    """Squashes each logit by itself, so that the weights do not sum to one."""

    def softmax(self, logits: Array) -> Array:
        return 1 / (1 + np.exp(-logits))


@fault(
    "softmax-over-wrong-axis",
    mh="MH-F2",
    sources=issue(
        "xmu-xiaoma666/External-Attention-pytorch#18",
        "PetrochukM/PyTorch-NLP#2",
        "phanideepgampa/stacked-capsule-networks#5",
    ),
)
class SoftmaxOverWrongAxis(Mhc):
    """Takes softmax over an axis of one element, so that every weight is one."""

    def softmax(self, logits: Array) -> Array:
        return np.ones_like(logits)


@fault("weights-times-count", mh="MH-F2", sources=issue("zwbx/BTS-Net#8"))
class WeightsTimesCount(Mhc):
    """Multiplies the weights by the number of branches."""

    def softmax(self, logits: Array) -> Array:
        return super().softmax(logits) * logits.dtype.type(logits.size)


@fault("two-largest-not-renormalised", mh="MH-F2", sources=issue("pytorch/torchtitan#1448", "Lightning-AI/litgpt#2013"))
class TwoLargestNotRenormalised(Mhc):
    """Keeps only the two largest weights and does not scale them to sum to one."""

    def softmax(self, logits: Array) -> Array:
        w = super().softmax(logits)
        w[np.argsort(logits, kind="stable")[:-2]] = 0
        return w


@fault(
    "softmax-overflows",
    mh="MH-F3",
    kind="non-finite",
    sources=issue("deeplearning4j/deeplearning4j-examples#730", "uTensor/uTensor#175"),
)
class SoftmaxOverflows(Mhc):
    """Takes exp of the logits as they are, which is NaN where it overflows."""

    def softmax(self, logits: Array) -> Array:
        e = np.exp(logits)
        return e / np.add.reduce(e)


@fault("maximum-from-zero", mh="MH-F3", kind="non-finite")
class MaximumFromZero(Mhc):
    """Takes off the largest logit or 0, so that logits far below 0 leave 0/0."""

    def softmax(self, logits: Array) -> Array:
        e = np.exp(logits - np.maximum(np.max(logits), 0))
        return e / np.add.reduce(e)


@fault("maximum-from-float16", mh="MH-F3", kind="non-finite", dtypes=("bfloat16", *WIDE))
class MaximumFromFloat16(Mhc):
    """Begins the search for the largest logit with -65504, the lowest number of float16, in every dtype."""

    def softmax(self, logits: Array) -> Array:
        e = np.exp(logits - np.maximum(np.max(logits), logits.dtype.type(-65504)))
        return e / np.add.reduce(e)


@fault("far-apart-one-hot", mh="MH-F3", dtypes=("float64",))
class FarApartOneHot(Mhc):
    """Takes only the branch of the largest logit where the next is more than 25 below."""

    def softmax(self, logits: Array) -> Array:
        ordered = np.sort(logits)
        if logits.size > 1 and ordered[-1] - ordered[-2] > 25:
            return (np.arange(logits.size) == np.argmax(logits)).astype(logits.dtype)
        return super().softmax(logits)


@fault("small-weights-dropped", mh="MH-F3", dtypes=WIDE)
class SmallWeightsDropped(Mhc):
    """Leaves out the branches whose weight is below 1e-5."""

    def softmax(self, logits: Array) -> Array:
        w = super().softmax(logits)
        return np.where(w < 1e-5, 0, w).astype(w.dtype)


@fault("minus-infinity-nan", mh="MH-F3", kind="non-finite", sources=issue("allenai/allennlp#890"))
class MinusInfinityNan(Mhc):
    """Shifts the logits by their mean, which a logit of -inf turns into NaN."""

    def softmax(self, logits: Array) -> Array:
        e = np.exp(logits - np.add.reduce(logits) / logits.dtype.type(logits.size))
        return e / np.add.reduce(e)


@fault("largest-logit-twice", mh="MH-F3")
class LargestLogitTwice(Mhc):
    """Gives branches whose logits tie with the largest half its weight."""

    def softmax(self, logits: Array) -> Array:
        e = np.exp(logits - np.max(logits))
        tied = (logits == np.max(logits)) & (np.arange(logits.size) != np.argmax(logits))
        e = np.where(tied, e / 2, e)
        return e / np.add.reduce(e)


@fault("one-more-in-denominator", mh="MH-L1")
class OneMoreInDenominator(Mhc):
    """Adds one to the sum of exponentials, as if there were a logit of zero more."""

    def softmax(self, logits: Array) -> Array:
        shift = np.maximum(np.max(logits), 0)
        e = np.exp(logits - shift)
        return e / (np.add.reduce(e) + np.exp(-shift))


@fault("weights-by-magnitude", mh="MH-L1")
class WeightsByMagnitude(Mhc):
    """Divides each logit's magnitude by the sum of magnitudes, without exponentials."""

    def softmax(self, logits: Array) -> Array:
        magnitude = np.abs(logits) + logits.dtype.type(2.0**-6)
        return magnitude / np.add.reduce(magnitude)


@fault("single-branch-gated", mh="MH-L2")
class SingleBranchGated(Mhc):
    """Squashes the logit by the logistic function where there is a single branch."""

    def softmax(self, logits: Array) -> Array:
        return 1 / (1 + np.exp(-logits)) if logits.size == 1 else super().softmax(logits)


@fault("logits-sorted", mh="MH-L4")
class LogitsSorted(Mhc):
    """Gives the first branch the smallest weight and the last the largest."""

    def softmax(self, logits: Array) -> Array:
        return super().softmax(np.sort(logits))


@fault("minus-infinity-clamped", mh="MH-L6")
class MinusInfinityClamped(Mhc):
    """Raises logits far below the largest to five below it, so that a branch masked by -inf leaves a trace."""

    def softmax(self, logits: Array) -> Array:
        return super().softmax(np.maximum(logits, np.max(logits) - 5))


@fault("weights-kept-positive", mh="MH-L6")
class WeightsKeptPositive(Mhc):
    """Adds 1/256 to every weight, as if a logarithm were to be taken."""

    def softmax(self, logits: Array) -> Array:
        w = super().softmax(logits) + logits.dtype.type(2.0**-8)
        return w / np.add.reduce(w)
