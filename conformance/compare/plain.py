"""A plain call of any operator: ordinary values, and parts with leaves if it takes parts."""

from __future__ import annotations

import numpy as np

from ..cases.case import Case, build
from ..cases.description import Description
from .bench import Bench
from .probe import NORMALISATIONS

#: Number of groups, and values in each: one shape wherever several groups are needed, because some frameworks compile
#: for each shape. Both are odd, so that vectors and blocks have tails, and seven values have tight envelopes.
SHAPE = (33, 7)


def composed_case(bench: Bench, shape: tuple[int, int], eps: float = 0.5) -> Case:
    """Ordinary rows for a composed operator with parts that have leaves; in pre_norm the part reads its input."""
    recipe = "identity" if bench.record.normalises_handed else "leaf"
    groups = tuple(("normal", index % 8) for index in range(shape[0]))
    return build(Description(bench.operator, shape[1], groups, eps=eps, recipe=recipe), bench.dtype)


def plain_case(bench: Bench, shape: tuple[int, int] = SHAPE) -> Case:
    """Ordinary groups, with gamma, beta and a cotangent that are not ones."""
    if bench.operator not in NORMALISATIONS:
        return composed_case(bench, shape)
    random = np.random.Generator(np.random.Philox(3))
    across = bench.parameters(*shape)
    return bench.case(
        random.standard_normal(shape),
        eps=0.5,
        gamma=random.standard_normal(across) + 1.5,
        beta=random.standard_normal(across) + 0.5,
        g=random.standard_normal(shape) + 0.5,
        running=(0.25, 2.0),
    )
