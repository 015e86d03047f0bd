"""Units: the parts of a request that can be judged independently, in any process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from ...adapters.dtypes import DTYPES
from ...spec.operators import OPERATORS


@attrs.frozen
class Unit:
    """One operator in one dtype with the cases of one seed, for some targets, which share the truths."""

    operator: str
    dtype: str
    seed: int
    #: The names of the targets.
    targets: tuple[str, ...]


@attrs.frozen
class Offer:
    """The operators and dtypes of a target, from which its units are made."""

    name: str
    operators: frozenset[str]
    #: The dtypes in which it is checked.
    dtypes: tuple[str, ...]

    def has(self, operator: str, dtype: str) -> bool:
        """Whether it has this operator and this dtype."""
        return operator in self.operators and dtype in self.dtypes


def units(offers: Sequence[Offer], seeds: Iterable[int], *, together: bool) -> Iterator[Unit]:
    """The units of these targets, seed after seed. With ``together`` a unit holds all targets, otherwise one."""
    for seed in seeds:
        for operator in OPERATORS:
            for dtype in DTYPES:
                names = tuple(offer.name for offer in offers if offer.has(operator, dtype))
                groups = [names] if together and names else [(name,) for name in names]
                yield from (Unit(operator, dtype, seed, group) for group in groups)
