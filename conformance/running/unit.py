"""Units: the parts of a request that can be judged by themselves, anywhere, and again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from ...adapters.dtypes import DTYPES
from ...spec.operators import OPERATORS


@attrs.frozen
class Unit:
    """One operator in one dtype, with the cases of one seed, of some targets, which then share its truths."""

    operator: str
    dtype: str
    seed: int
    #: The targets by name.
    targets: tuple[str, ...]


@attrs.frozen
class Offer:
    """What a target offers: between which of its units there is to choose."""

    name: str
    operators: frozenset[str]
    #: The dtypes in which it is checked.
    dtypes: tuple[str, ...]

    @property
    def foremost(self) -> str:
        """The dtype in which it is checked most thoroughly."""
        return "float32" if "float32" in self.dtypes else next(iter(self.dtypes), "")

    def has(self, operator: str, dtype: str) -> bool:
        """Whether it is judged on an operator in a dtype."""
        return operator in self.operators and dtype in self.dtypes


def units(offers: Sequence[Offer], seeds: Iterable[int], *, together: bool) -> Iterator[Unit]:
    """The units of these targets, seed after seed; ``together``: one for all targets, and otherwise one for each."""
    for seed in seeds:
        for operator in OPERATORS:
            for dtype in DTYPES:
                names = tuple(offer.name for offer in offers if offer.has(operator, dtype))
                groups = [names] if together and names else [(name,) for name in names]
                yield from (Unit(operator, dtype, seed, group) for group in groups)
