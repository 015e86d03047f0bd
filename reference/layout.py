"""How the values of x lie in groups: x as a matrix with one group a row, and gamma beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

from ..spec.operators import OPERATORS, Groups


class _Array(Protocol):
    """What a layout moves: NumPy's arrays, and Scaled."""

    def reshape(self, *shape: int) -> Any: ...

    def transpose(self, *axes: int) -> Any: ...


A = TypeVar("A", bound=_Array)


@dataclass(frozen=True)
class Layout:
    """
    The groups of one x: which axes one of them spans, and which axes gamma and beta have.

    In the matrix gamma is one row (every group has the same) or one column (a value a group).
    """

    #: x's shape.
    shape: tuple[int, ...]
    #: The axes of x that one group spans, ascending and counted from 0.
    group: tuple[int, ...]
    #: The axes of x that gamma and beta have.
    parameter: tuple[int, ...]

    @classmethod
    def trailing(cls, shape: tuple[int, ...], count: int) -> Layout:
        """Groups that span the last axes, so many, with a gamma of their shape."""
        axes = tuple(range(len(shape) - count, len(shape)))
        return cls(shape, axes, axes)

    @classmethod
    def channels(cls, shape: tuple[int, ...], channel_axis: int) -> Layout:
        """Groups that are the channels along an axis, with one gamma each."""
        channel = channel_axis % len(shape)
        return cls(shape, tuple(axis for axis in range(len(shape)) if axis != channel), (channel,))

    @classmethod
    def of(cls, operator: str, shape: tuple[int, ...], settings: Mapping[str, Any]) -> Layout:
        """The layout of an operator's call, by its record."""
        groups = OPERATORS[operator].groups
        if groups is Groups.CHANNEL:
            return cls.channels(shape, settings["channel_axis"])
        return cls.trailing(shape, len(settings["axes"]) if groups is Groups.TRAILING else 1)

    @cached_property
    def count(self) -> int:
        """The number of groups."""
        return math.prod(size for axis, size in enumerate(self.shape) if axis not in self.group)

    @cached_property
    def size(self) -> int:
        """The number of values in one group."""
        return math.prod(self.shape[axis] for axis in self.group)

    @cached_property
    def parameter_shape(self) -> tuple[int, ...]:
        """The shape of gamma and beta."""
        return tuple(self.shape[axis] for axis in self.parameter)

    @cached_property
    def shared(self) -> int:
        """The axis of the matrix along which gamma is shared, and so its gradient summed."""
        return 0 if self.parameter == self.group else 1

    def rows(self, values: A) -> A:
        """An array of x's shape as a matrix with one group a row."""
        if self._moves:
            values = values.transpose(*self._to_rows)
        return values.reshape(self.count, self.size)

    def back(self, rows: A) -> A:
        """Such a matrix in x's shape."""
        if not self._moves:
            return rows.reshape(*self.shape)
        return rows.reshape(*(self.shape[axis] for axis in self._to_rows)).transpose(*self._from_rows)

    def parameter_rows(self, values: A) -> A:
        """An array of gamma's shape as one row or one column, which broadcasts against the matrix."""
        return values.reshape(1, self.size) if self.shared == 0 else values.reshape(self.count, 1)

    def parameter_back(self, values: A) -> A:
        """What was summed along ``shared``, in gamma's shape."""
        return values.reshape(*self.parameter_shape)

    def spread(self, values: A) -> A:
        """An array of gamma's shape, which then broadcasts against x."""
        return values.reshape(*(size if axis in self.parameter else 1 for axis, size in enumerate(self.shape)))

    @cached_property
    def _to_rows(self) -> tuple[int, ...]:
        return (*(axis for axis in range(len(self.shape)) if axis not in self.group), *self.group)

    @cached_property
    def _from_rows(self) -> tuple[int, ...]:
        return tuple(self._to_rows.index(axis) for axis in range(len(self.shape)))

    @cached_property
    def _moves(self) -> bool:
        return self._to_rows != tuple(range(len(self.shape)))
