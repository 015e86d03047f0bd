"""The cost of a mistake: how far its results lie from the right ones, computed on standard data on request."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import attrs
import numpy as np

from ...adapters.binding import Binding
from ...adapters.numpy.operators import IMPLEMENTATIONS
from ...spec.errors import CALL_FAILED, Unsupported
from ..cases.case import Case
from ..compare.bench import Bench
from ..compare.plain import composed_case
from ..faults.registry import Fault
from ..requests.implementation_targets import implementation_target

#: Number of groups and values of the standard data, and its eps.
GROUPS, VALUES, EPS = 32, 64, 1e-5

#: The standard data, as (values in a group, factor, offset) of standard normal numbers.
DATA: Mapping[str, tuple[int, float, float]] = {
    "randn": (VALUES, 1.0, 0.0),
    "groups scaled by 1e-3": (VALUES, 1e-3, 0.0),
    "groups around 100": (VALUES, 1.0, 100.0),
    "groups of 4": (4, 1.0, 0.0),
}

#: A smaller difference, in units of the largest value, is a rounding in float32.
_ROUNDING = 1e-6


@attrs.frozen
class Cost:
    """How far the results of one mistake are from the right ones, on one kind of data."""

    data: str
    #: The largest difference of y; NaN if y is NaN and should not be, infinite if no y of its shape and dtype returns.
    y: float
    #: The largest difference of a gradient, divided by its largest value; None if there is none, or it cannot be taken.
    gradients: float | None

    @property
    def words(self) -> str:
        """The figures, and the data."""
        if math.isinf(self.y):
            return f"no y on {self.data}"
        told = [f"y {self.y:.2g}"] if not self.y <= _ROUNDING else []
        if self.gradients is not None and not self.gradients <= _ROUNDING:
            told.append(f"gradients {100 * self.gradients:.3g} %")
        return f"{', '.join(told)} on {self.data}" if told else ""


def measured_dtype(fault: Fault) -> str:
    """The dtype in which costs are computed: float32, or else the first that shows the fault."""
    return "float32" if "float32" in fault.dtypes else fault.dtypes[0]


def costs(fault: Fault) -> tuple[Cost, ...]:
    """The costs of a fault on the standard data, without mere roundings."""
    dtype = measured_dtype(fault)
    wrong = Bench(implementation_target(fault.name, fault.operator, fault.build()), _binding(fault, wrong=True), dtype)
    right = Bench(wrong.target, _binding(fault, wrong=False), dtype)
    found = []
    with np.errstate(all="ignore"):
        for data, case in _cases(wrong):
            y, gradients = _differences(wrong, right, case)
            found.append(Cost(data, y, gradients))
    return tuple(one for one in found if one.words)


def _binding(fault: Fault, *, wrong: bool) -> Binding:
    made = fault.build() if wrong else IMPLEMENTATIONS[fault.operator]().implementation()
    return implementation_target(fault.name, fault.operator, made).bindings[0]


def _cases(bench: Bench) -> Iterator[tuple[str, Case]]:
    if bench.record.composed:
        yield "randn", composed_case(bench, (GROUPS, VALUES), EPS)
        return
    for place, (data, (n, scale, middle)) in enumerate(DATA.items()):
        random = np.random.Generator(np.random.Philox(place))
        rows = random.standard_normal((GROUPS, n)) * scale + middle
        across = bench.parameters(GROUPS, n)
        gamma, beta = random.uniform(0.5, 1.5, across), random.standard_normal(across)
        statistics = (middle + 0.5 * scale, 1.5 * scale**2)
        case = bench.case(
            rows, eps=EPS, gamma=gamma, beta=beta, g=random.standard_normal((GROUPS, n)), running=statistics
        )
        yield data, case
        if bench.record.has_modes and data == "randn":
            yield f"{data} in inference", case.replace(training=False)


def _differences(wrong: Bench, right: Bench, case: Case) -> tuple[float, float | None]:
    """The largest difference of y, and that of a gradient relative to its largest value."""
    want, pulled = right.outputs(case), right.pull(case)
    try:
        got = wrong.outputs(case)
    except CALL_FAILED:
        return float("inf"), None
    y = max(_apart(got[name], value) for name, value in want.items())
    try:
        gradients = wrong.pull(case)
    except Unsupported:
        return y, None
    except CALL_FAILED:
        return y, float("inf")
    shares = []
    for name, value in pulled.items():
        largest = float(np.max(np.abs(value.astype(np.float64)), initial=0.0))
        shares.append(_apart(gradients[name], value) / largest if largest else 0.0)
    return y, max(shares, default=None)


def _apart(got: np.ndarray, want: np.ndarray) -> float:
    a, b = got.astype(np.float64), want.astype(np.float64)
    return float(np.max(np.where(a == b, 0.0, np.abs(a - b)), initial=0.0))
