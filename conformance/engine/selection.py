"""Selection of a few cases, of few shapes, that exercise every check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from functools import lru_cache

import attrs
import numpy as np

from ..cases.case import Case
from ..cases.description import Description
from ..checks.catalogue import checks_of
from ..checks.registry import Check, When
from ..judging.library import Library

#: Cases chosen for each trait. Two, because a fault may spare the values of one case.
_TRAIT = 2


def traits_of(description: Description, case: Case) -> frozenset[Hashable]:
    """Traits of a plain case, such as "gamma is not given". A fault may show only on cases with one trait."""
    if case.only:
        return large(case)
    settings = case.settings
    found: set[Hashable] = {("rank", case.x.ndim), ("axes", len(settings.get("axes", ())))}
    found |= {("one value",)} if case.layout.size == 1 else set()
    found |= {("roles", tuple(role for role in case.record.roles if case.parts.get(role) is not None))}
    regimes = {regime for regime, _ in description.groups}
    found |= {("regime", regime) for regime in regimes}
    if "momentum" in settings:  # a momentum that float32 cannot hold shows where the weights are rounded
        found |= {("momentum", float(np.float32(settings["momentum"])) == settings["momentum"])}
    if len(description.groups) > 1 and regimes != {"constant"}:  # so that a sum over groups has several terms
        given = tuple(case.inputs.get(name) is not None for name in ("gamma", "beta"))
        found |= {
            ("given", given),
            ("channels", settings.get("channel_axis"), settings.get("training")),
            ("eps", sum(settings.get("eps", 0.0) >= size for size in (0.5, 1.0))),
        }
    return frozenset(found)


def large(case: Case) -> frozenset[Hashable]:
    """Traits of a large case that runs in every framework; empty for other cases."""
    far = case.description is not None and case.description.far
    return frozenset({("far", case.x.shape, case.settings.get("training"))} if far else ())


@attrs.define
class _Use:
    """
    What a case is good for: the checks that run on it, and its traits.

    This does not depend on the dtype (a test says so), so it is found once. It is found in float16, because only a
    16-bit dtype has float32 parameters beside it.
    """

    traits: frozenset[Hashable]
    large: frozenset[Hashable]
    shape: tuple[int, ...]
    _description: Description
    _runs: dict[When, bool]

    def asking(self, checks: Sequence[Check]) -> frozenset[str]:
        """The requirements of those of the checks that run on the case."""
        unseen = {check.when for check in checks} - self._runs.keys()
        if unseen:  # of checks in another form, as at the seams of a layer
            case = _in_any_dtype(self._description)
            self._runs.update((when, when(case)) for when in unseen)
        return frozenset(check.requirement for check in checks if self._runs[check.when])


def _in_any_dtype(description: Description) -> Case:
    return Library("float16").fresh(description)


@lru_cache
def _conditions(operator: str) -> tuple[When, ...]:
    """What each check of an operator asks of a case."""
    return tuple(check.when for check in checks_of(operator))


# An operator has some 600 cases in the ranks that its bindings take, and its dtypes are judged one after the other.
@lru_cache(maxsize=1024)
def _use_of(description: Description) -> _Use:
    case = _in_any_dtype(description)
    runs = {when: when(case) for when in _conditions(description.operator)}
    return _Use(traits_of(description, case), large(case), case.x.shape, description, runs)


def select_cases(
    descriptions: Sequence[Description],
    checks: Sequence[Check],
    minimum: int,
    *,
    varied: bool = False,
    first: bool = False,
) -> list[Description]:
    """
    Choose descriptions on which every check runs at least ``minimum`` times, if there are as many; keep their order.

    The choice has few shapes, because a framework that compiles does so for every new shape. With ``varied`` it also
    covers every trait of the cases, and all cases of checks on 16-bit data alone, which no other dtype has. With
    ``first`` it also covers every large shape of the sweep of sizes.
    """
    uses = {description: _use_of(description) for description in descriptions}
    asking: dict[Description, frozenset[Hashable]] = {}
    for description, use in uses.items():
        found = use.traits if varied else use.large if first else frozenset()
        asking[description] = use.asking(checks) | found
    wanted: dict[Hashable, int] = {
        check.requirement: len(descriptions) if varied and check.is_of_16_bits else minimum for check in checks
    }
    for trait in {one: None for asked in asking.values() for one in sorted(asked - wanted.keys(), key=repr)}:
        wanted[trait] = _TRAIT
    met: Counter[Hashable] = Counter()
    shapes: set[tuple[int, ...]] = set()
    chosen: set[Description] = set()
    for requirement, count in wanted.items():
        while met[requirement] < count:
            left = [one for one in descriptions if requirement in asking[one] and one not in chosen]
            if not left:
                break

            def value(one: Description) -> tuple[bool, int]:
                return uses[one].shape in shapes, sum(met[other] < wanted[other] for other in asking[one])

            best = max(left, key=value)  # among equals the first: the fixed deck comes before generated cases
            chosen.add(best)
            shapes.add(uses[best].shape)
            met.update(asking[best])
    return [description for description in descriptions if description in chosen]
