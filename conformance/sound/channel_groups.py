"""Sound ways to normalise groups of channels: by sums of each channel, as fused kernels have them."""

from __future__ import annotations

import numpy as np

from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.rows import Array, Pull
from .registry import sound


@sound("sums-of-channels", operators=("group_norm", "instance_norm"))
class SumsOfChannels(Groups):
    """Every gradient from the sums of g x and of g over each channel of each sample."""

    def of_channels(self, column: Array) -> Array:
        """What is the same throughout a channel of a sample, as (samples, channels)."""
        layout = self.layout
        return layout.stretches(np.broadcast_to(column, (layout.count, layout.size)))[:, :, 0]

    def sums(self, terms: Array) -> Array:
        """The sum over each channel of each sample."""
        layout = self.layout
        whole = terms.reshape(layout.repeats * layout.parameters, layout.positions)
        return self.row_sum(whole).reshape(layout.repeats, layout.parameters)

    def input_gradient(self, p: Pull) -> Array:
        s, count = p.statistics, p.x.dtype.type(p.x.shape[1])
        gamma = self.of_channels(p.gamma)
        width = self.layout.size // self.layout.positions
        ds, db = (self.row_sum((gamma * self.sums(terms)).reshape(-1, width)) for terms in (p.g * p.x, p.g))
        c2 = (ds - s.mean * db) * s.rstd / count * s.rstd
        return s.rstd * (p.h - c2 * p.x + (c2 * s.mean - db / count))

    def gamma_gradient(self, p: Pull) -> Array:
        mean, rstd = (self.of_channels(one) for one in (p.statistics.mean, p.statistics.rstd))
        each = (self.sums(p.g * p.x) - mean * self.sums(p.g)) * rstd
        return np.add.reduce(each, axis=0)[:, None]
