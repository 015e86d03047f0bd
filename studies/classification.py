"""A generated task: classes that are mixtures of clouds of points, and a net's loss on them."""

from __future__ import annotations

import attrs
import numpy as np

from .result import Array
from .study import Scale

#: Numbers per point, classes, clouds per class, and the deviation of a cloud; the centres have deviation 1.
INPUTS, CLASSES, CLOUDS, SPREAD = 12, 4, 3, 0.6


@attrs.frozen(eq=False)
class Points:
    """The points of each seed, with their classes."""

    #: (seeds, points, INPUTS)
    x: Array
    #: (seeds, points), from 0 to CLASSES - 1.
    label: Array

    def some(self, which: Array) -> Points:
        """The points at these indices of each seed; which is (seeds, points)."""
        return Points(
            np.take_along_axis(self.x, which[..., None], axis=1), np.take_along_axis(self.label, which, axis=1)
        )


def points(scale: Scale, count: int) -> Points:
    """`count` points from each seed's own mixture."""
    centres = scale.normal("centres", CLOUDS * CLASSES, INPUTS)
    cloud = scale.integers("clouds", CLOUDS * CLASSES, count)
    x = np.take_along_axis(centres, cloud[..., None], axis=1) + SPREAD * scale.normal("points", count, INPUTS)
    return Points(x, cloud % CLASSES)


def probabilities(logits: Array) -> Array:
    """softmax over the last axis."""
    found = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return found / found.sum(axis=-1, keepdims=True)


def cross_entropy(logits: Array, label: Array) -> tuple[Array, Array]:
    """The mean cross-entropy by seed, and the gradient of its sum over seeds with respect to the logits."""
    p, hot = probabilities(logits), np.eye(CLASSES)[label]
    # A probability below the smallest normal number is replaced by it, so that the loss stays finite.
    chosen = np.maximum((p * hot).sum(axis=-1), np.finfo(np.float64).tiny)
    return -np.log(chosen).mean(axis=-1), (p - hot) / label.shape[1]
