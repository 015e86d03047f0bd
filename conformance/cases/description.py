"""The description of a case: small integers and names that define the case in every dtype."""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from ...reference.formats import Format
from .regimes import draw_group

#: The regime and the index of each group (regimes.py).
Kinds = tuple[tuple[str, int], ...]

#: eps so far below the variance that neither its value nor its place can show: other mistakes then stand alone.
NEGLIGIBLE_EPS = 2.0**-100


@attrs.frozen(cache_hash=True)  # it is looked up a thousand times for each time that it is made
class Description:
    """Everything that determines a case, apart from the dtype: small integers and names.

    The same description gives the corresponding case in every dtype.
    """

    operator: str
    #: Length of each group.
    n: int
    groups: Kinds
    eps: float = 1e-5
    #: How gamma and beta are drawn ("none", "ones", "mixed", ...; see parameters.py).
    gamma: str = "mixed"
    beta: str = "mixed"
    #: How the cotangent is drawn.
    cotangent: str = "mixed"
    #: The requirements that the case is for, besides those that judge any ordinary case. One id stands for all that are
    #: registered with it at their check: LN-F3 also stands for BN-F3 (checks/registry.py).
    requirements: frozenset[str] = frozenset()
    #: Whether it is judged only on these requirements.
    only: bool = False
    #: Whether 16-bit data have float32 parameters.
    mixed: bool = False
    #: Whether every framework runs it, even one in which each new shape takes long.
    far: bool = False
    #: Whether a framework in which each new shape takes long goes without it.
    fast_only: bool = False
    seed: int = 0
    #: Number of groups, if the groups above are repeated in turn to make this many.
    repeat: int | None = None
    #: Trailing axes: the normalised dimensions and the leading ones, if they are not (n,) and (rows,).
    features: tuple[int, ...] | None = None
    leading: tuple[int, ...] | None = None
    #: BatchNorm: the mode, and the weight of the new statistic.
    training: bool = True
    momentum: float = 0.25
    #: Channels: the number of dimensions, the place of the channels, and the number of samples, unless the numbers of
    #: groups and values decide it.
    rank: int = 2
    channel_axis: int = 1
    samples: int | None = None
    #: GroupNorm: the number of channels in a group, unless the number of values decides it.
    width: int | None = None
    #: Channels: the extents of the axes besides samples and channels, as far as the number of values agrees with them.
    positions: tuple[int, ...] | None = None
    #: Composed operators: the recipe of their parts (recipes.py), how gate or fusion logits are drawn, and the number
    #: of branches.
    recipe: str = ""
    logits: str = "mixed"
    count: int = 3

    @property
    def count_of_groups(self) -> int:
        """The number of groups."""
        return self.repeat or len(self.groups)

    @property
    def large(self) -> bool:
        """Whether x has so many values that the case is about its size."""
        return self.n * self.count_of_groups > 1 << 11

    def group_values(self, format: Format) -> NDArray[np.float64]:
        """Return the groups as rows, shape (groups, n), exact in ``format``."""
        rows = [
            draw_group(name, index, n=self.n, eps=self.eps, format=format, seed=self.seed, row=row)
            for row, (name, index) in enumerate(self.groups)
        ]
        values = np.array(rows, dtype=np.float64).reshape(len(rows), self.n)
        if self.repeat is not None:
            values = values[np.arange(self.repeat) % len(rows)]
        return values
