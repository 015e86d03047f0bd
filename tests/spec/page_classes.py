"""The classes of algorithms as the code has them and as the accuracy page marks them, and when both agree."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from mpmath import mpf

from normspec.reference.accuracy import AccuracyClass, Arithmetic
from normspec.reference.formats import FORMATS

from .page_values import array

#: The formulas of one normalisation, in the order of the page.
STATISTICS = ("A2", "A4", "A5", "A6", "A7", "A8")
#: The same without a mean.
MEAN_SQUARE = ("A35", "A7", "A8")
#: An evaluation in float64 compared with one in 120 digits: a thousandth of what A9 allows for.
WITHIN = mpf(2) ** -30


@attrs.frozen
class Class:
    """A dtype, the parameters' dtype, and the algorithms that are allowed for."""

    data: str
    parameter: str | None = None
    variance: str = "centred"
    affine: str = "folded"
    storage: str = "H0"
    cast: str = "last"
    subnormals: str = "kept"

    def arithmetic(self) -> Arithmetic:
        """The code's arithmetic."""
        flushed = frozenset(FORMATS) if self.subnormals == "flushed" else frozenset()
        accuracy = AccuracyClass(self.variance, self.affine, self.storage, self.cast, flushed)
        return Arithmetic.of(self.data, self.parameter, accuracy)

    def with_large_eta(self) -> Arithmetic:
        """An arithmetic in which each term shows: next to a real u, a real eta affects no digit of a sum."""
        made = self.arithmetic()
        etas = {"eta": made.u / 3, "eta_data": made.u_data / 5, "eta_parameter": made.u_parameter / 7}
        flushes = {"flush": etas["eta"], "flush_data": etas["eta_data"]} if self.subnormals == "flushed" else {}
        return attrs.evolve(made, **etas, **flushes)

    def marks(self) -> frozenset[str]:
        """As the page marks its terms."""
        found = {self.variance, self.subnormals, {"folded": "F"}.get(self.affine, "")}
        if self.data in ("float16", "bfloat16"):
            found |= {"H1": {"H1"}, "H2": {"H1", "H2"}, "native": {"native"}}.get(self.storage, set())
        return frozenset(found)


def agree(found: Any, page: Any, slack: Any = 0) -> None:
    """Equal except for one side's evaluation in float64, and what that loses by cancellation."""
    page = np.asarray(page, dtype=object)
    found = array(np.asarray(found))
    shape = np.broadcast_shapes(found.shape, page.shape) if found.size != page.size else None
    pairs = zip(
        (np.broadcast_to(found, shape) if shape else found).reshape(-1),
        (np.broadcast_to(page, shape) if shape else page).reshape(-1),
        strict=True,
    )
    for one, other in pairs:
        assert one == other or abs(one - other) <= WITHIN * abs(other) + slack, (float(one), float(other))
