"""One call of a normalisation on the user's data: its groups as rows of a matrix, in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any

import attrs
import numpy as np

from ..reference.accuracy import AccuracyClass, Arithmetic
from ..reference.envelope import OperatorEnvelope
from ..reference.envelope_derivatives import DerivativeEnvelope
from ..reference.envelope_results import RowEnvelope
from ..reference.envelope_rows import RowBounds
from ..spec.layout import Layout
from ..spec.operators import OPERATORS, Groups, Operator

#: The settings that determine which values form a group.
_GROUPING_SETTINGS = ("axes", "channel_axis", "groups")

#: Values in a block: its float64 intermediates take a few MiB; smaller blocks are slower.
_BLOCK_VALUES = 1 << 17

# Until an array of more than 128 KiB has been freed, glibc's malloc returns each such array to the system and requests
# the next one page by page. Afterwards it keeps freed memory, up to twice that size: enough for a block's arrays.
np.empty(1 << 21)


def copied(value: np.ndarray | None) -> np.ndarray | None:
    """A copy of the array, if there is one."""
    return None if value is None else value.copy()


@attrs.frozen(eq=False, slots=False)
class Call:
    """One call of an operator without parts, in an accuracy class; its arguments are already checked."""

    operator: str
    #: Arrays as given, by name; gamma and beta may be None.
    inputs: Mapping[str, np.ndarray | None]
    settings: Mapping[str, Any]
    #: The dtype of y, and of its cotangent.
    result_dtype: np.dtype[Any]
    #: The algorithms that the envelope allows for.
    accuracy: AccuracyClass

    @property
    def record(self) -> Operator:
        """The operator's record."""
        return OPERATORS[self.operator]

    @property
    def x(self) -> np.ndarray:
        """The data."""
        x = self.inputs["x"]
        assert x is not None
        return x

    def copied(self) -> Call:
        """The call on copies of its arrays, for the caller may write to them."""
        return attrs.evolve(self, inputs={name: copied(value) for name, value in self.inputs.items()})

    @cached_property
    def layout(self) -> Layout:
        """How the groups lie in x."""
        said = tuple((name, self.settings[name]) for name in _GROUPING_SETTINGS if name in self.settings)
        return _layout(self.operator, self.x.shape, said)

    @cached_property
    def arithmetic(self) -> Arithmetic:
        """The numbers that the envelope depends on."""
        data = self.x.dtype
        others = (value.dtype for name, value in self.inputs.items() if name != "x" and value is not None)
        return _arithmetic(
            data, next((dtype for dtype in others if dtype != data), data), self.accuracy, self.result_dtype
        )

    @property
    def statistics_given(self) -> bool:
        """Whether mean and variance are given as constants."""
        return self.record.has_modes and not self.settings["training"]

    @property
    def has_float64(self) -> bool:
        """Whether any of the data is float64, so that plain float64 values are not exact enough for its envelope."""
        return any(value is not None and value.dtype == np.float64 for value in self.inputs.values())

    def blocks(self, groups: np.ndarray | None = None) -> Iterator[np.ndarray]:
        """
        The numbers of all groups, or of the given ones, in blocks.

        For all groups, each block has every parameter equally often, so that it can be summed over groups.
        """
        layout = self.layout
        together = 1 if groups is not None or layout.along_columns else layout.blocks
        step = max(1, _BLOCK_VALUES // max(layout.size * together, 1)) * together
        chosen = np.arange(layout.count) if groups is None else groups
        for start in range(0, len(chosen), step):
            yield chosen[start : start + step]

    def rows(self, values: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """The values of some groups in an array of x's shape: a matrix with one group per row; a view if possible."""
        layout, first, count = self.layout, int(groups[0]), len(groups)
        if int(groups[-1]) - first == count - 1 and not layout.needs_transpose and values.flags.c_contiguous:
            return values.reshape(layout.count, layout.size)[first : first + count]
        view, places = self._view(values, groups)
        return view[places].reshape(count, layout.size)

    def put(self, values: np.ndarray, groups: np.ndarray, rows: np.ndarray) -> None:
        """Write a matrix made by `rows` into an array of x's shape."""
        view, places = self._view(values, groups)
        view[places] = rows.reshape(view[places].shape)

    def _view(self, values: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, tuple[Any, ...]]:
        """An array of x's shape with the axes that number the groups in front, and the indices of some groups there."""
        layout = self.layout
        moved = values.transpose(self._order)
        if self.record.groups is Groups.TRAILING:
            lead = moved.shape[: len(layout.before)]
        elif layout.along_columns:
            lead = moved.shape[:1]
        else:  # groups of a sample's channels: split the channel axis, without a copy
            lead = (moved.shape[0], layout.blocks)
            moved = moved.reshape(*lead, layout.width, *moved.shape[2:])
        return moved, tuple(np.unravel_index(groups, lead)) if lead else (None,)

    @property
    def _order(self) -> tuple[int, ...]:
        """The axes of x in the layout's order."""
        return (*self.layout.before, *self.layout.parameter, *self.layout.after)

    def parameter_rows(self, name: str, groups: np.ndarray, default: float) -> np.ndarray:
        """gamma or beta, to go beside a matrix of `rows`: one row, one column, or a matrix of that size."""
        layout, value = self.layout, self.inputs.get(name)
        if value is None:
            return np.full((1, 1), default)
        each = value.astype(np.float64).reshape(layout.blocks, layout.width)
        if layout.blocks == 1:
            return each if layout.positions == 1 else each.repeat(layout.positions, 1)
        found = each[groups % layout.blocks]
        return found if layout.width == 1 else found.repeat(layout.positions, 1)

    def statistic(self, name: str, groups: np.ndarray) -> np.ndarray:
        """A running statistic, to go beside a matrix of `rows`, as a column."""
        value = self.inputs[name]
        assert value is not None
        return value.astype(np.float64)[groups][:, None]

    def envelope(self, groups: np.ndarray) -> OperatorEnvelope:
        """The envelope of some groups; its results are matrices with one group per row."""
        rows = RowBounds(
            self.rows(self.x, groups).astype(np.float64),
            self.settings["eps"],
            self.arithmetic,
            given_mean=self.statistic("running_mean", groups) if self.statistics_given else None,
            given_variance=self.statistic("running_var", groups) if self.statistics_given else None,
            centred=self.record.centred,
        )
        gamma, beta = self.parameter_rows("gamma", groups, 1.0), self.parameter_rows("beta", groups, 0.0)
        beside, matrix = _of_block(self.layout, self.record.groups, len(groups))
        forward = RowEnvelope(rows, gamma, beta, beside)
        return OperatorEnvelope(forward, DerivativeEnvelope(forward), matrix)

    def index_of(self, group: int, position: int) -> tuple[int, ...]:
        """The index in x, and in y, of a value of a group."""
        layout = self.layout
        order = self._order
        at, found = group * layout.size + position, {}
        for axis in reversed(order):
            at, found[axis] = divmod(at, layout.shape[axis])
        return tuple(found[axis] for axis in range(len(order)))


# Cached: all calls of a test on the same shapes and dtypes share them.


@lru_cache(maxsize=256)
def _layout(operator: str, shape: tuple[int, ...], settings: tuple[tuple[str, Any], ...]) -> Layout:
    return Layout.of(operator, shape, dict(settings))


@lru_cache(maxsize=256)
def _of_block(whole: Layout, groups: Groups, count: int) -> tuple[Layout, Layout]:
    """The layout of gamma beside `count` groups, for sums over them, and the layout of their matrix."""
    after = tuple(whole.shape[axis] for axis in whole.after)
    if groups is Groups.TRAILING:
        beside = Layout.trailing((count, *whole.parameter_shape), len(whole.parameter))
    elif whole.along_columns:
        beside = Layout.channels((count, *after), 0)
    else:
        beside = Layout.of_samples((max(count // whole.blocks, 1), whole.parameters, *after), 1, whole.blocks)
    return beside, Layout.trailing((count, whole.size), 1)


@lru_cache(maxsize=256)
def _arithmetic(
    data: np.dtype[Any], parameter: np.dtype[Any], accuracy: AccuracyClass, result: np.dtype[Any]
) -> Arithmetic:
    if data.itemsize > 2:  # storage classes apply to 16-bit data only
        accuracy = attrs.evolve(accuracy, storage="H0", cast="last")
    return Arithmetic.of(data, parameter, accuracy, result)


def sampled(call: Call, sample: int | None, seed: int) -> np.ndarray | None:
    """The sorted numbers of a sample of the groups; None for all of them."""
    count = call.layout.count
    if sample is None or sample >= count:
        return None
    return np.sort(np.random.default_rng(seed).choice(count, sample, replace=False))
