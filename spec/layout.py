"""How the values of x form groups: x as a matrix with one group per row, and gamma beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

from .operators import OPERATORS, Groups


class _Array(Protocol):
    """Anything a layout can rearrange: NumPy's arrays, and the reference's own numbers."""

    def reshape(self, *shape: int) -> Any: ...

    def transpose(self, *axes: int) -> Any: ...

    def repeat(self, times: Any, /, axis: Any) -> Any: ...

    def sum(self, axis: Any, /) -> Any: ...


A = TypeVar("A", bound=_Array)


@dataclass(frozen=True)
class Layout:
    """
    The groups of one x, as the rows of a matrix, and the position of gamma in it.

    Flattened, x is (repeats, parameters, positions): gamma has one value for each parameter, and all repeats and
    positions of a parameter share it. A group is a stretch of the same flattened values.
    """

    #: x's shape.
    shape: tuple[int, ...]
    #: The axes of x: those along which gamma repeats, those of gamma and beta, and those after them.
    before: tuple[int, ...]
    parameter: tuple[int, ...]
    after: tuple[int, ...]
    #: The number of groups, and of values in each.
    count: int
    size: int

    @classmethod
    def trailing(cls, shape: tuple[int, ...], count: int) -> Layout:
        """`count` groups that span the last axes; gamma has the shape of these axes."""
        split = len(shape) - count
        axes = tuple(range(len(shape)))
        return cls(shape, axes[:split], axes[split:], (), math.prod(shape[:split]), math.prod(shape[split:]))

    @classmethod
    def channels(cls, shape: tuple[int, ...], channel_axis: int) -> Layout:
        """Each channel along an axis is a group, with one value of gamma."""
        channel = channel_axis % len(shape)
        rest = tuple(axis for axis in range(len(shape)) if axis != channel)
        return cls(shape, (), (channel,), rest, shape[channel], math.prod(shape[axis] for axis in rest))

    @classmethod
    def of_samples(cls, shape: tuple[int, ...], channel_axis: int, groups: int) -> Layout:
        """`groups` groups of consecutive channels per sample, samples along axis 0; gamma has one value per channel."""
        channel = channel_axis % len(shape)
        rest = tuple(axis for axis in range(1, len(shape)) if axis != channel)
        size = shape[channel] // groups * math.prod(shape[axis] for axis in rest)
        return cls(shape, (0,), (channel,), rest, shape[0] * groups, size)

    @classmethod
    def of(cls, operator: str, shape: tuple[int, ...], settings: Mapping[str, Any]) -> Layout:
        """The layout of an operator's call, from the operator's record."""
        groups = OPERATORS[operator].groups
        if groups is Groups.CHANNEL:
            return cls.channels(shape, settings["channel_axis"])
        if groups is Groups.SAMPLE_CHANNELS:
            channel_axis = settings["channel_axis"]
            return cls.of_samples(shape, channel_axis, settings.get("groups", shape[channel_axis]))
        return cls.trailing(shape, len(settings["axes"]) if groups is Groups.TRAILING else 1)

    @cached_property
    def parameter_shape(self) -> tuple[int, ...]:
        """The shape of gamma and beta."""
        return self._sizes(self.parameter)

    @cached_property
    def repeats(self) -> int:
        """How often the whole of gamma repeats."""
        return math.prod(self._sizes(self.before))

    @cached_property
    def parameters(self) -> int:
        """The number of values in gamma."""
        return math.prod(self.parameter_shape)

    @cached_property
    def blocks(self) -> int:
        """Among how many groups gamma is divided: 1 where each group has all of it; otherwise each has a part."""
        return self.count // max(self.repeats, 1)

    @cached_property
    def width(self) -> int:
        """How many values of gamma each group has."""
        return self.parameters // max(self.blocks, 1)

    @cached_property
    def positions(self) -> int:
        """How many consecutive values of a group share one value of gamma."""
        return math.prod(self._sizes(self.after))

    @property
    def sharing(self) -> int:
        """How many values of x share one value of gamma: the number of terms in its gradient."""
        return self.repeats * self.positions

    @property
    def along_rows(self) -> bool:
        """Whether every group has all of gamma, and one value of x for each value of gamma."""
        return self.size == self.parameters and not self.after

    @property
    def along_columns(self) -> bool:
        """Whether every group has one value of gamma that no other group has."""
        return self.count == self.parameters and not self.before

    def rows(self, values: A) -> A:
        """An array of x's shape as a matrix with one group per row."""
        if self.needs_transpose:
            values = values.transpose(*self._order)
        return values.reshape(self.count, self.size)

    def back(self, rows: A) -> A:
        """A matrix of `rows` in x's shape."""
        if not self.needs_transpose:
            return rows.reshape(*self.shape)
        order = self._order
        return rows.reshape(*self._sizes(order)).transpose(*(order.index(axis) for axis in range(len(order))))

    def parameter_rows(self, values: A) -> A:
        """An array of gamma's shape, to go beside the matrix of x: one row, one column, or a matrix of that size."""
        if self.along_rows:
            return values.reshape(1, self.size)
        if self.along_columns:
            return values.reshape(self.count, 1)
        each = values.reshape(1, self.parameters, 1).repeat(self.positions, 2).repeat(self.repeats, 0)
        return each.reshape(self.count, self.size)

    def stretches(self, rows: A) -> A:
        """The matrix as (repeats, parameters, positions)."""
        return rows.reshape(self.repeats, self.parameters, self.positions)

    def total(self, rows: A) -> A:
        """The sum over all values that share a parameter, one value per parameter; gamma's gradient is such a sum."""
        terms = self.stretches(rows)
        if self.positions != 1:
            terms = terms.sum(2)
        return terms.reshape(self.repeats, self.parameters).sum(0).reshape(self.parameters)

    def to_parameter_shape(self, values: A) -> A:
        """One value per parameter, in gamma's shape."""
        return values.reshape(*self.parameter_shape)

    def spread(self, values: A) -> A:
        """An array of gamma's shape, reshaped to broadcast against x."""
        return values.reshape(*(size if axis in self.parameter else 1 for axis, size in enumerate(self.shape)))

    @cached_property
    def _order(self) -> tuple[int, ...]:
        return (*self.before, *self.parameter, *self.after)

    @cached_property
    def needs_transpose(self) -> bool:
        """Whether the axes of a group are not the last ones of x, or not in order."""
        return self._order != tuple(range(len(self.shape)))

    def _sizes(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.shape[axis] for axis in axes)
