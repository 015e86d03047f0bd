"""How each result of a target is wrong: its relation to the right one, and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import attrs
import numpy as np

from ....spec.operators import OPERATORS
from ...cases.case import Case
from ..chosen_cases import FRESH_SEED
from ..question import results_if_any
from .axes import axes_relations
from .backward import backward_relations
from .described_cases import DescribedCases
from .inner import InnerValue, inner_values
from .inputs import limited_x, other_eps, rounded_inputs
from .kept_values import kept_values
from .lost_groups import lost_groups_in_words
from .misplaced import misplaced_in_words
from .numbers import is_plain
from .observing import ObservedResult, Observer
from .parameters import parameter_relations
from .pattern import WrongResult
from .place import EVERYWHERE, Place, where
from .places import is_nearly_all_wrong, place_of_some, place_of_wrong_cases, places_of, places_of_cases
from .recovered import recovered_relations
from .relation import LinearRelation, plain_relations
from .running import running_relations
from .sentences import how_often, in_how_many
from .spreads import spread_relations
from .terms import clipped_relations, term_relations

#: An inner value has to be seen in at least this many formed and this many fresh cases.
_MIN_OBSERVED = 5
#: Wrong results whose calls are made again, at most, to see whether they come out otherwise.
_ASKED_AGAIN = 5
#: Cases outside a place that a relation must contradict, so that the place says where it holds.
_CONTRADICTED = 3
#: Places that are tried although most of them is right, and cases in which a spread is searched.
_MOST_PLACES, _SPREADS = 6, 40


@attrs.frozen
class ResultDescriber:
    """
    Describes how the results of one subject are wrong.

    What is formed on the results that were seen has to hold on fresh ones.
    """

    cases: DescribedCases
    #: Whether it looks for relations to the right results.
    relates: bool = True

    def all_wrong(self, seen: Sequence[ObservedResult], fresh: Sequence[ObservedResult]) -> list[WrongResult]:
        """How each result is wrong that is."""
        names = dict.fromkeys(one.name for one in (*seen, *fresh))
        found = [one for name in names if (one := self._wrong(name, seen, fresh)) is not None]
        return [self._plainer(one, seen, fresh) if one.relation is None else one for one in found]

    def at_all_sizes(
        self, wrong: WrongResult, seen: Sequence[ObservedResult], fresh: Sequence[ObservedResult]
    ) -> WrongResult:
        """How a result is wrong; formed anew if the place is a number and a size that was tried refutes it."""
        if wrong.place is None or not wrong.place.counts or wrong.shown_by:
            return wrong
        return self._unless_refuted(wrong, seen, fresh, self._observer.probed(wrong.name))

    def in_every_case(
        self, wrong: WrongResult, seen: Sequence[ObservedResult], fresh: Sequence[ObservedResult]
    ) -> WrongResult:
        """How a result is wrong; formed anew if its place is of two conditions and another case refutes it."""
        if wrong.place is None or not wrong.place.both or wrong.shown_by or self._observer.subject.slow:
            return wrong
        every = self._observer.observed([*self.cases.of_standard(), *self.cases.in_other_ranks()])
        return self._unless_refuted(wrong, seen, fresh, [one for one in every if one.name == wrong.name])

    def _unless_refuted(
        self,
        wrong: WrongResult,
        seen: Sequence[ObservedResult],
        fresh: Sequence[ObservedResult],
        probed: Sequence[ObservedResult],
    ) -> WrongResult:
        known = {id(one.case) for one in (*seen, *fresh)}
        others = [one for one in probed if id(one.case) not in known]
        if not any(_refutes(one, wrong) for one in others):
            return wrong
        again = self._wrong(wrong.name, [*seen, *others[::2]], [*fresh, *others[1::2]])
        return wrong if again is None else again

    @property
    def _observer(self) -> Observer:
        return self.cases.observer

    # -- values inside a layer -----------------------------------------------------------------------

    def _plainer(
        self, wrong: WrongResult, seen: Sequence[ObservedResult], fresh: Sequence[ObservedResult]
    ) -> WrongResult:
        """
        For a result without a relation: try cases without parts that count their calls, then values inside the layer.
        """
        if not OPERATORS[self._observer.operator].composed or self._observer.limited:
            return wrong
        seen, fresh = ([one for one in some if not _counts(one.case)] for some in (seen, fresh))
        again = self._wrong(wrong.name, seen, fresh)
        if again is not None and again.relation is not None:
            return again
        operator = self._observer.operator
        inside = (self._inside(inner) for inner in inner_values(operator) if wrong.name == "y")
        # Where y is wrong says more than what an inner value is that is wrong somewhere.
        has_place = place_of_some(operator, [*seen, *fresh]) is not None
        return next((one for one in inside if one is not None and (one.place is not None or not has_place)), wrong)

    def _inside(self, inner: InnerValue) -> WrongResult | None:
        """The mistake in an inner value, if it explains y."""
        seen, fresh = (
            [shown for one in self._y_of_recipes(inner.recipes, seed) if (shown := inner.observed(one)) is not None]
            for seed in (0, FRESH_SEED)
        )
        if min(len(seen), len(fresh)) < _MIN_OBSERVED:
            return None
        found = self._wrong(seen[0].name, seen, fresh, relations=[*inner.relations(seen)])
        if found is None or found.relation is None:
            return None
        others = [*self._y_of_recipes(inner.other_recipes, FRESH_SEED)] if inner.other_recipes else []
        return attrs.evolve(found, name=inner.name, shown_by="y") if inner.explains(found, others) else None

    def _y_of_recipes(self, recipes: Sequence[str], seed: int) -> Iterator[ObservedResult]:
        yield from (one for one in self._observer.observed(self.cases.of_recipes(recipes, seed)) if one.name == "y")

    # -- one result ----------------------------------------------------------------------------------

    def _wrong(
        self,
        name: str,
        seen: Sequence[ObservedResult],
        fresh: Sequence[ObservedResult],
        relations: Sequence[LinearRelation] | None = None,
    ) -> WrongResult | None:
        """How a result is wrong; ``relations``: to be tried in place of those of its name."""
        seen, fresh = ([*_without_repeats(one for one in some if one.name == name)] for some in (seen, fresh))
        if not any(one.wrong.any() for one in seen):
            return None
        places = places_of(self._observer.operator, seen, fresh)
        for place in (EVERYWHERE, *places):
            found = self._related(name, seen, fresh, place, relations)
            if found is not None:
                return WrongResult(name, *found, place)
        lost = lost_groups_in_words([*seen, *fresh])
        if lost:
            varies = self._differs_again(fresh)
            others = ", other ones in other calls with the same arguments" if varies else ""
            return WrongResult(name, size=f"{in_how_many(seen, fresh)}: {lost}{others}", varies=varies)
        misplaced = misplaced_in_words([*seen, *fresh])
        if misplaced:
            return WrongResult(name, size=f"{in_how_many(seen, fresh)}: {misplaced}")
        for place in places:
            if is_nearly_all_wrong(place, seen, fresh):
                return WrongResult(name, place=place)
        for place in islice(places_of_cases(self._observer.operator, seen, fresh), _MOST_PLACES):
            found = self._related(name, seen, fresh, place, relations)
            if found is not None and _does_not_hold_outside(place, *found, [*seen, *fresh]):
                return WrongResult(name, *found, place)
        relation, number = self._related(name, seen, fresh, None, relations) or (None, 0.0)
        if relation is None:
            place = place_of_wrong_cases(self._observer.operator, seen, fresh)
            if place is not None:
                return WrongResult(name, place=place)
        some = place_of_some(self._observer.operator, [*seen, *fresh])
        if some is None:
            some = place_of_wrong_cases(self._observer.operator, seen, fresh, mostly=True)
        often = how_often(seen, fresh, some)
        return WrongResult(name, relation, number, size=often)

    def _differs_again(self, seen: Sequence[ObservedResult]) -> bool:
        """Whether another call with the same arguments returns another wrong gradient."""
        some = [] if self._observer.limited else [one for one in seen if one.wrong.any()][:_ASKED_AGAIN]
        again = [(one, results_if_any(self._observer.subject, one.case, gradients=True)) for one in some]
        return any(found and not np.array_equal(found[one.name], one.got) for one, found in again)

    def _related(
        self,
        name: str,
        seen: Sequence[ObservedResult],
        fresh: Sequence[ObservedResult],
        place: Place | None,
        relations: Sequence[LinearRelation] | None,
    ) -> tuple[LinearRelation, float] | None:
        """
        The relation of the result to the right one, in a place or wherever it is wrong, if fresh cases confirm it.
        """
        if not self.relates:
            return None
        there, there_fresh = ([where(one, place) for one in some] for some in (seen, fresh))
        for relation in self._relations(name, seen, place) if relations is None else relations:
            number = relation.fitted(seen, there)
            if number is None or _shows_in_extremes_alone(relation, number, seen):
                continue
            if place is not None and place.is_of_eps and relation.is_limit(number):
                continue
            if not relation.holds(number, fresh, there_fresh) or not relation.is_evident(fresh, there_fresh):
                continue
            if place is None and relation.is_of_formula(number):  # right values of a wrong case count too
                wrong = [one for one in (*seen, *fresh) if one.wrong.any()]
                if not relation.holds(number, wrong, [where(one, EVERYWHERE) for one in wrong]):
                    continue
            return relation, number
        return None

    def _relations(self, name: str, seen: Sequence[ObservedResult], place: Place | None) -> Iterable[LinearRelation]:
        """The relations that are tried, the plainest first."""
        operator = self._observer.operator
        yield from plain_relations(name)
        yield from running_relations(name)
        for relations in (term_relations, backward_relations, other_eps, rounded_inputs, limited_x, kept_values):
            yield from relations(operator, name)
        yield from recovered_relations(self._observer, operator, name)
        record = OPERATORS[operator]
        if name == "y" and record.normalises and not record.normalises_handed:
            yield from parameter_relations()
            yield from axes_relations(operator)
            yield from clipped_relations()
            inside = [] if place is None else [(one, where(one, place)) for one in seen]
            if inside and all(there.all() or not there.any() for _, there in inside):
                whole = [one for one, there in inside if there.all()]
                # A wrong case says most. The relations found are then held against every case.
                yield from spread_relations(sorted(whole, key=lambda one: not one.wrong.any())[:_SPREADS])


def _without_repeats(seen: Iterable[ObservedResult]) -> Iterator[ObservedResult]:
    """These, with a right output once only where cases differ in nothing but their cotangents."""
    known: set[tuple[object, ...]] = set()
    for one in seen:
        key = (*map(id, one.case.inputs.values()), repr(one.case.settings))
        if one.name not in one.case.record.outputs or one.wrong.any() or key not in known:
            yield one
        known.add(key)


def _does_not_hold_outside(
    place: Place, relation: LinearRelation, number: float, seen: Sequence[ObservedResult]
) -> bool:
    """
    Whether some cases outside a place contradict the relation that holds inside.

    Most cases inside may be right because the relation gives the right values there: without eps, where eps is small.
    """
    outside = [(one, one.judged & ~where(one, place)) for one in seen]
    return sum(not relation.holds(number, [one], [there]) for one, there in outside) >= _CONTRADICTED


def _shows_in_extremes_alone(relation: LinearRelation, number: float, seen: Sequence[ObservedResult]) -> bool:
    """
    Whether what a relation adds is less than a rounding of ordinary values, and no number that somebody would write.

    It then fits what is wrong in extreme cases, and nothing speaks against it elsewhere.
    """
    if relation.slope is None or relation.right != 0:
        return False
    return 0 < abs(number) < max(one.values.unit for one in seen) and not is_plain(number)


def _refutes(one: ObservedResult, wrong: WrongResult) -> bool:
    """Whether a result is wrong outside the place, or not in the same way inside."""
    inside = where(one, wrong.place)
    if (one.wrong & ~inside).any():
        return True
    return wrong.relation is not None and not wrong.relation.holds(wrong.number, [one], [inside])


def _counts(case: Case) -> bool:
    """Whether a part counts its calls, so that one more call gives another value."""
    return case.description is not None and case.description.recipe == "counted"
