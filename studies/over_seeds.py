"""Normalisations of (seeds, samples, channels, positions): one call of the operator for all seeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from .envelopes import envelope
from .operators import Operators
from .result import Array, Result

#: Orders of these four axes in the call, for :attr:`Norm.order`.
_AS_THEY_ARE = (0, 1, 2, 3)
_SAMPLES_FIRST = (1, 0, 2, 3)
_CHANNELS_LAST = (0, 1, 3, 2)

#: The number of GroupNorm's groups: each has half of the channels.
GROUPS = 2


@attrs.frozen(eq=False)
class Norm:
    """A normalisation without gamma and beta. Where it works by channel, the seeds become further channels."""

    operator: str
    settings: Mapping[str, Any]
    #: The running statistics of inference, one value per channel.
    statistics: Mapping[str, Array] = attrs.field(factory=dict)
    #: The order of the axes in the call, and the first of the two axes that are joined there.
    order: tuple[int, int, int, int] = _AS_THEY_ARE
    joined: int = 0

    def __call__(self, operators: Operators, x: Array, eps: float) -> Result:
        """y, of x's shape and dtype, and its pullback."""
        given, settings = self._call(x, eps)
        result = getattr(operators, self.operator)(given, **settings)
        return Result(self._back(x, result.y), lambda g: {"x": self._back(x, result.pull(self._given(g))["x"])})

    def bounded(self, operators: Operators, x: Array, eps: float) -> tuple[Array, Array]:
        """y and its envelope, float64 of x's shape."""
        given, settings = self._call(x, eps)
        y = getattr(operators, self.operator)(given, **settings).y
        bound = envelope(operators, self.operator, given, **settings).y()
        return self._back(x, y).astype(np.float64), self._back(x, bound)

    def in_inference(self, **statistics: Array) -> Norm:
        """BatchNorm with these running statistics, or with those of a new layer."""
        return attrs.evolve(self, settings={**self.settings, "training": False}, statistics=statistics)

    def _call(self, x: Array, eps: float) -> tuple[Array, dict[str, Any]]:
        statistics = {name: np.tile(one, len(x)) for name, one in self.statistics.items()}
        return self._given(x), {**self.settings, **statistics, "eps": eps}

    def _given(self, x: Array) -> Array:
        moved, at = x.transpose(self.order), self.joined
        shape = (*moved.shape[:at], moved.shape[at] * moved.shape[at + 1], *moved.shape[at + 2 :])
        return np.ascontiguousarray(moved.reshape(shape))

    def _back(self, x: Array, y: Array) -> Array:
        return y.reshape(x.transpose(self.order).shape).transpose(np.argsort(self.order))


BATCH_NORM = Norm("batch_norm", {"training": True, "channel_axis": 1}, order=_SAMPLES_FIRST, joined=1)
GROUP_NORM = Norm("group_norm", {"groups": GROUPS, "channel_axis": 1})
INSTANCE_NORM = Norm("instance_norm", {"channel_axis": 1})
#: Over the channels of each position.
LAYER_NORM = Norm("layer_norm", {"axes": (-1,)}, order=_CHANNELS_LAST)
RMS_NORM = Norm("rms_norm", {"axes": (-1,)}, order=_CHANNELS_LAST)
