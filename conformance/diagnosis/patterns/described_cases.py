"""The cases of a description: those that it is formed on, and fresh ones that it must survive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle, islice

import attrs
import numpy as np

from ....spec.operators import OPERATORS
from ...cases.case import Case
from ...cases.description import Description
from ...cases.generate import generate
from ...engine.modes import cases_in, in_shapes_of, quick_cases
from ...judging.verdicts import Result
from ...requests.profiles import profile_of
from ..chosen_cases import FRESH_SEED, of_every_kind
from ..contrasts import with_cotangents_apart, with_new_statistics
from ..extremes import tamed
from ..question_maker import ITS_OWN_SIDES
from .observing import Observer

#: About how many ordinary cases of a deck a description is formed on, besides those that show violations, and on how
#: many it must hold; it must hold on as many generated cases too.
_CASES = 20
#: Violated cases that are looked at, at most.
_MOST_VIOLATED = 16
#: Cases of each mode that are asked again with other running statistics.
_CONTRASTED = 4
#: The groups of a case that differs from one shown in its size, and how many values more they have: in cases that a
#: description is formed on, and in fresh ones.
_GROUPS_ALIKE, _LARGER = 3, ((1, 3), (2, 4, 5))
#: Numbers of axes.
_RANKS = (2, 3, 4, 5)
#: Sizes that no case of a deck has; a third of each is the number of groups. An array of their means then is too
#: small to take the memory of a parameter's gradient.
_NEW_SIZES = (131, 137, 139)


@attrs.define
class DescribedCases:
    """The cases for the description of one subject."""

    observer: Observer
    violations: Sequence[Result]
    #: By a case's id, that case with other running statistics. A check may set those of a new layer itself.
    _contrasts: dict[int, tuple[Case, ...]] = attrs.field(factory=dict)

    def formed(self, *, every: bool = False) -> list[Case]:
        """The cases that show violations, and ordinary ones of the deck: some, or every one."""
        return self._made(self.shown()) + self._made(self._of_deck(0, every=every))

    def fresh(self, *, every: bool = False) -> list[Case]:
        """Generated cases, and ordinary ones of another seed's deck: some, or every one."""
        subject = self.observer.subject
        generated = in_shapes_of(subject, cases_in(subject.mode, generate(subject.operator, FRESH_SEED, _CASES)))
        ordinary = [one for one in generated if _is_ordinary(one)]
        return self._made(tamed(one) for one in (*ordinary, *self._of_deck(FRESH_SEED, every=every)))

    def of_standard(self) -> list[Case]:
        """The ordinary cases of `standard`, which has more choices of axes and parameters than `quick`."""
        deck = profile_of("standard").cases(self.observer.operator, FRESH_SEED)
        return self._made(one for one in cases_in(self.observer.subject.mode, deck) if _is_ordinary(one))

    def shown(self) -> list[Description]:
        """The cases that show violations."""
        shown = [one.violated_on for one in self.violations if one.violated_on is not None]
        return [*dict.fromkeys(shown)][:_MOST_VIOLATED]

    def that_violate(self, requirement: str) -> list[Case]:
        """The very cases that violate a requirement. A check may have changed the one it was given."""
        found = []
        for one in (result.counterexample for result in self.violations if result.requirement == requirement):
            g = None if one is None else one.inputs.get("g")
            if one is not None and g is not None and g.size:
                found.append(Case(self.observer.operator, one.arguments, one.settings, g, parts=one.parts))
        return found

    def of_recipes(self, recipes: Sequence[str], seed: int) -> list[Case]:
        """Ordinary cases of a seed's deck, with these recipes by turns."""
        chosen = self._of_deck(seed)
        return self._made(tamed(attrs.evolve(one, recipe=recipes[i % len(recipes)])) for i, one in enumerate(chosen))

    # -- the same cases, changed in one point ------------------------------------------------------

    def with_contrasts(self, cases: list[Case]) -> list[Case]:
        """The cases, and some with what few cases have: a new layer's statistics, and cotangents of two sizes."""
        record = OPERATORS[self.observer.operator]
        shown = [one.counterexample for one in self.violations]
        if record.normalises and any(one is not None and one.output == "dx" for one in shown):
            several = (one for one in cases if min(one.layout.count, one.layout.size) > 1)
            cases = [*cases, *(changed for one in islice(several, 1) for changed in with_cotangents_apart(one))]
        contrasted: list[Case] = []
        for mode in (True, False) if record.has_modes else ():
            contrasted += [one for one in cases if one.settings["training"] is mode and one.x.size > 1][:_CONTRASTED]
        for one in contrasted:
            self._contrasts.setdefault(id(one), tuple(with_new_statistics(one)))
        return [*cases, *(changed for one in contrasted for changed in self._contrasts[id(one)])]

    def with_its_contrasts(self, description: Description) -> list[Case]:
        """The case of a description, and itself with other running statistics where it was looked at with them."""
        case = self.observer.case(description)
        return [] if case is None else [case, *self._contrasts.get(id(case), ())]

    def in_other_sizes(self) -> list[list[Case]]:
        """
        The cases that show violations, with other numbers of groups, values and axes: to form on, and fresh ones.

        What was simplified is small, as hardly any other case is: its size would seem to be the reason.
        """
        shown = [one for one in self.shown() if not one.large]
        sized = [self._made(_larger(one, number) for one in shown for number in some) for some in _LARGER]
        if "axes" not in OPERATORS[self.observer.operator].settings:
            return sized
        return [
            [*cases, *self._made(other for one in shown for other in _with_other_axes(one, times))]
            for cases, times in zip(sized, (1, _GROUPS_ALIKE), strict=True)
        ]

    def in_other_ranks(self) -> list[Case]:
        """The cases that show violations, with their channels among fewer and more axes."""
        if not OPERATORS[self.observer.operator].has_channels:
            return []
        shown = [one for one in self.shown() if not one.large]
        axes = {one: 1 if one.channel_axis % one.rank else 0 for one in shown}
        return self._made(
            attrs.evolve(one, rank=rank, channel_axis=axes[one], positions=None) for one in shown for rank in _RANKS
        )

    def in_new_shapes(self, cases: Sequence[Case]) -> list[Case]:
        """A few of these cases in shapes that no call had before."""
        whole = (one for one in cases if one.x.size > 1 and one.whole)
        shown = [one.description for one in islice(whole, len(_NEW_SIZES)) if one.description is not None]
        return self._made(
            attrs.evolve(one, n=size, groups=tuple(islice(cycle(one.groups), size // 3)), **ITS_OWN_SIDES)
            for one, size in zip(shown, _NEW_SIZES, strict=False)
        )

    def of_ordinary_groups(self, swept: Sequence[Case]) -> list[Case]:
        """
        Some cases of the sweep of sizes, with ordinary values.

        The sweep's groups are a few large values each, so that there the mean is nearly the last value's share. A
        relation that holds of these alone is none.
        """
        shown = [case.description for case in swept if case.description is not None]
        kinds = [tuple(("normal", at) for at in range(len(one.groups))) for one in shown]
        return self._made(attrs.evolve(one, groups=groups) for one, groups in zip(shown, kinds, strict=True))

    # -- the deck ----------------------------------------------------------------------------------

    def _of_deck(self, seed: int, *, every: bool = False) -> list[Description]:
        """The deck's ordinary cases: some, of every kind; or every one, those for one requirement too."""
        deck = [one for one in quick_cases(self.observer.subject, seed) if _is_ordinary(one)]
        some = of_every_kind([one for one in deck if not one.only], _CASES)
        # Few cases of a deck have float32 parameters beside 16-bit data. Others may, to see whether that is the reason.
        mixed = [attrs.evolve(one, mixed=True) for one in some] if self._are_mixed_ones_alone_wrong() else []
        return [*(deck if every else some), *mixed]

    def _are_mixed_ones_alone_wrong(self) -> bool:
        """Whether only those that have float32 parameters beside 16-bit data are wrong of the cases shown."""
        shown = self.shown()
        return any(one.mixed for one in shown) and not any(
            self.observer.is_wrong(case) for case in self._made(one for one in shown if not one.mixed)
        )

    def _made(self, descriptions: Iterable[Description]) -> list[Case]:
        """The cases of these descriptions that the target takes, and that may tell something."""
        found = dict.fromkeys(self.observer.case(one) for one in descriptions)
        return [one for one in found if one is not None and not one.bulky and one.x.size and _gamma_is_nonzero(one)]


def _is_ordinary(description: Description) -> bool:
    return not description.mixed and bool(description.n) and bool(description.count_of_groups)


def _gamma_is_nonzero(case: Case) -> bool:
    """Whether gamma is not zero everywhere. If it is, nothing is known about how far roundings carry."""
    gamma = case.inputs.get("gamma")
    return gamma is None or bool(np.any(gamma != 0))


def _larger(shown: Description, number: int) -> Description:
    """A case with more groups of the same kinds, and with so many more values in each."""
    groups = (shown.groups * _GROUPS_ALIKE)[:_GROUPS_ALIKE]
    return attrs.evolve(shown, n=shown.n + number, groups=groups, **ITS_OWN_SIDES)


def _with_other_axes(shown: Description, times: int) -> Iterator[Description]:
    """
    A case with as many normalised axes and one before them, and one with as many axes of which one is normalised.

    ``times``: how many groups of each kind they have.
    """
    groups, features = shown.groups * times, shown.features or (shown.n,)
    leading = (shown.count_of_groups,) if shown.leading is None else shown.leading
    plain = attrs.evolve(shown, groups=groups, **ITS_OWN_SIDES)
    yield attrs.evolve(plain, features=features, leading=(len(groups),))
    before = len(leading) + len(features) - 2
    yield attrs.evolve(plain, features=(shown.n,), leading=(*(1,) * before, len(groups)))
