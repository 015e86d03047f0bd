"""Groups as rows of a matrix: check the arguments of a call, lay arrays out as rows, and lay results out as x."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Dict

import numpy as np

from ....spec.layout import Layout
from ....spec.operators import Groups as Grouping
from .arguments import check_eps, check_float, check_momentum, check_place, check_samples, check_shapes
from .rows import Array, Pull, RowSteps, Statistics
from .staged import Staged

Arrays = Dict[str, "Array | None"]

#: The arrays that have x's shape for every operator.
_LIKE_X = frozenset({"g", "a", "tx", "sx"})


class Groups(Staged, RowSteps):
    """The groups that one call normalises, from the operator's record."""

    layout: Layout
    settings: Mapping[str, Any]

    @property
    def axes(self) -> tuple[int, ...]:
        """The trailing axes that this call normalises."""
        return tuple(self.settings["axes"])

    @property
    def channel_axis(self) -> int:
        """The axis of the channels, counted from the front."""
        return self.layout.parameter[0]

    @property
    def training(self) -> bool:
        """Whether this call is in training mode."""
        return bool(self.settings.get("training", True))

    # Arguments.

    def check(self, x: Array, parameters: Arrays, likewise: Arrays, settings: Mapping[str, Any]) -> None:
        """Refuse bad arguments: ``parameters`` have the shape of gamma, ``likewise`` that of x."""
        check_eps(settings["eps"])
        check_place(x.shape, settings)
        if self.record.groups is Grouping.SAMPLE_CHANNELS:
            check_samples(x.shape, settings["channel_axis"])
        if "momentum" in settings:
            self.check_weight(settings["momentum"])
        check_shapes(parameters, Layout.of(self.operator, x.shape, settings).parameter_shape)
        check_shapes(likewise, x.shape)

    def check_weight(self, momentum: float) -> None:
        """Refuse a bad weight of the new statistic."""
        check_momentum(momentum)

    def begin(self, x: Array, settings: Mapping[str, Any]) -> None:
        """Note the layout, the settings and the working dtype of this call."""
        self.begin_with(x)
        self.settings, self.layout = settings, Layout.of(self.operator, x.shape, settings)

    def begun(self, arrays: tuple[Any, ...], settings: Mapping[str, Any], *more: str) -> Arrays:
        """Check the arrays of a call, note its layout, and return them by name, the operator's arguments first."""
        names = (*self.record.arguments, *more)
        if len(arrays) != len(names):
            raise TypeError(f"pass {', '.join(names)}: {len(names)} arrays, not {len(arrays)}")
        given: Arrays = dict(zip(names, arrays))
        x = given["x"]
        assert x is not None
        for name in self.record.statistics:
            check_float(given[name], name)
        likewise = {name: value for name, value in given.items() if name in _LIKE_X}
        parameters = {name: value for name, value in given.items() if name != "x" and name not in likewise}
        self.check(x, parameters, likewise, settings)
        self.begin(x, settings)
        return given

    def directions(self, first: str) -> tuple[str, ...]:
        """Names for the tangents or cotangents of differentiable arguments: "tx", "tgamma", "tbeta"; "a", "b", "c"."""
        names = self.record.differentiable
        return tuple("abc"[: len(names)]) if first == "a" else tuple(first + name for name in names)

    # Steps of rows.

    def rows(self, array: Array, role: str) -> Array:
        """An array of x's shape as a matrix with one group per row."""
        return np.ascontiguousarray(self.layout.rows(self.read(array, role)))

    def write_rows(self, rows: Array, dtype: np.dtype, role: str) -> Array:
        """Rows as an array of x's shape and the given dtype."""
        return self.write(
            self.layout.back(np.broadcast_to(rows, (self.layout.count, self.layout.size))), self.shape, dtype, role
        )

    def parameter(self, array: Array | None, role: str) -> Array | None:
        """A parameter or a running statistic, shaped to broadcast against the rows."""
        return None if array is None else self.layout.parameter_rows(self.read(array, role))

    def filled(self, array: Array | None, role: str) -> Array:
        """A parameter's tangent or cotangent, shaped to broadcast against the rows; zero if it is None."""
        found = self.parameter(array, role)
        return np.zeros((1, 1), self.work) if found is None else found

    def of_parameter(self, value: Array, given: Array | None, role: str) -> Array | None:
        """A result with one value per parameter, in that parameter's shape and dtype; None if the parameter is None."""
        return None if given is None else self.write(value, given.shape, given.dtype, role)

    def statistics_of(self, x: Array, given: Arrays) -> Statistics:
        """The statistics that the call normalises by."""
        return self.statistics(x, self.number(self.settings["eps"]))

    def prepared(self, given: Arrays) -> Pull:
        """Compute from the inputs everything that the derivatives need."""
        x, g = given["x"], given.get("g")
        assert x is not None
        rows = self.rows(x, "x")
        cotangent = np.zeros_like(rows) if g is None else self.rows(g, "g")
        s = self.backward_statistics(self.statistics_of(rows, given), self.number(self.settings["eps"]))
        gamma, beta = self.parameter(given["gamma"], "gamma"), self.parameter(given.get("beta"), "beta")
        return self.pull(rows, gamma, beta, cotangent, s)

    def direction_rows(self, given: Arrays, names: tuple[str, ...]) -> tuple[Array, Array, Array]:
        """Tangents or cotangents of x, gamma and beta as rows; zero for beta if the operator has none."""
        first, *rest = names
        x = given[first]
        assert x is not None
        gamma, beta = (*(self.filled(given[name], name) for name in rest), self.filled(None, ""))[:2]
        return self.rows(x, first), gamma, beta
