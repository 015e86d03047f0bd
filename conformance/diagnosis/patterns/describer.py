"""
The describer: says in words what is wrong with a target.

Every word is confirmed on cases that it was not derived from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial
from itertools import cycle, islice

import attrs
import numpy as np

from ....spec.operators import OPERATORS
from ...cases.case import Case
from ...cases.description import Description
from ...cases.generate import generate
from ...engine.folding import priority
from ...engine.modes import cases_in, quick_cases
from ...judging.subject import Subject
from ...judging.verdicts import Result
from ..chosen_cases import FRESH_SEED, of_every_kind
from ..contrasts import with_cotangents_apart, with_new_statistics
from ..extremes import tamed
from ..question import results_if_any
from ..question_maker import ITS_OWN_SIDES
from ..search import Search
from .axes import axes_relations
from .backward import backward_relations
from .formula_steps import Array
from .inner import InnerValue, inner_values
from .inputs import other_eps, rounded_inputs
from .kept_values import kept_values
from .leftovers import leftovers_in_words
from .lost_groups import lost_groups_in_words
from .memory import differs_from_first_call, memory_in_words
from .numbers import is_plain
from .observing import ObservedResult, Observer
from .overwritten import overwritten_in_words
from .parameters import parameter_relations
from .pattern import Pattern, WrongResult, with_verb
from .place import EVERYWHERE, Place, share
from .places import is_nearly_all_wrong, place_of_some, places_of
from .refusals import refusal
from .relation import LinearRelation, plain_relations
from .running import running_relations
from .sentences import capitalised, clauses_of, how_often, in_how_many, sentence_of, uncentred
from .special import misread_layouts, misread_special_values
from .spreads import spread_relations
from .terms import clipped_relations, term_relations
from .thresholds import thresholds

#: Cases that a description is formed on besides the violated ones, and fresh cases that it must survive. On a slow
#: target, only the questions of the search before are available.
_FORMING_CASES, _FRESH_CASES = 20, 20
#: Cases of each mode that are asked again with other running statistics.
_CONTRASTED = 4
#: If fewer of either are wrong, all ordinary cases of the deck are looked at: what few cases show needs all of them.
_MIN_WRONG = 5
#: If at most this share of ordinary cases is wrong, it may be a question of size.
_SMALL_SHARE = 0.1
#: On a slow target, the most calls for values or gradients that the search and the description make together. With the
#: checks of the search, and the search for what follows from what, that makes thirty calls.
_MOST_SLOW = 18
#: An inner value has to be seen in at least this many formed and this many fresh cases.
_MIN_OBSERVED = 5
#: Requirements on what is tried besides a plain call: it may be wrong on a case whose plain call is wrong too.
_NOT_OF_VALUES = ("CM-P1", "CM-V", "CM-N1", "CM-N3", "CM-N4", "CM-N5", "CM-N6", "CM-N7", "CM-S2")
#: The requirements on parameters that are None. What is wrong where they are breaks these before others.
_ABSENT_PARAMETERS = ("LN-F6", "BN-F6", "RM-F6", "GN-F6", "IN-F6", "PR-F4", "PO-F4")
#: The groups of a case that differs from one shown in its size, and how many values more they have: in cases that a
#: description is formed on, and in fresh ones.
_GROUPS_ALIKE, _LARGER = 3, ((1, 3), (2, 4, 5))
#: Sizes that no case of a deck has; a third of each is the number of groups. An array of their means then is too
#: small to take the memory of a parameter's gradient.
_NEW_SIZES = (131, 137, 139)
#: Violated cases that are looked at, at most.
_MOST_VIOLATED = 16


@attrs.define
class Describer:
    """The description of one subject."""

    observer: Observer
    violations: Sequence[Result]
    #: By a case's id, that case with other running statistics. A check may set those of a new layer itself.
    _contrasts: dict[int, tuple[Case, ...]] = attrs.field(factory=dict)

    @property
    def operator(self) -> str:
        """The operator of the subject."""
        return self.observer.subject.operator

    @classmethod
    def after(cls, search: Search) -> Describer:
        """The describer of a subject for which no mistake was found; it knows all answers of that search."""
        most = _MOST_SLOW if search.subject.slow else None
        observer = Observer(search.subject, search.library, most)
        for question, answer in search.answered:
            observer.add(question, answer)
        return cls(observer, search.violations)

    def described(self) -> Pattern | None:
        """The description; None if nothing was found that holds."""
        formed, fresh = self._formed(), self._fresh()
        if self.observer.most is not None:  # the calls that are left go to fresh cases
            list(self.observer.observed(fresh))
        elif min(sum(map(self._is_wrong, some)) for some in (formed, fresh)) < _MIN_WRONG:
            formed, fresh = (self._with_contrasts(some) for some in (self._formed(every=True), self._fresh(every=True)))
        finds = (
            self._describe_memory,
            self._describe_refusals,
            self._describe_values,
            self._describe_sizes,
            self._describe_the_rest,
        )
        found = next((found for find in finds if (found := find(formed, fresh)) is not None), None)
        if found is None:
            return None
        found = self._in_other_sizes(self._with_place(found, formed, fresh), formed, fresh)
        return self._with_tracking(found, fresh)

    def _with_place(self, found: Pattern, formed: Sequence[Case], fresh: Sequence[Case]) -> Pattern:
        """The description; if it lacks a place and few cases are right, that of all ordinary cases if it has one."""
        if self.observer.most is not None or all(one.place is not None for one in found.wrong):
            return found
        right = [sum(not self._is_wrong(one) for one in some) for some in (formed, fresh)]
        if min(right) >= _MIN_WRONG or not any(right):
            return found
        again = self._describe_values(self._formed(every=True), self._fresh(every=True))
        return found if again is None or any(one.place is None for one in again.wrong) else again

    def _in_other_sizes(self, found: Pattern, formed: Sequence[Case], fresh: Sequence[Case]) -> Pattern:
        """
        The description; if it names a number of something as the place, that of the shown cases in other sizes too.

        What was simplified is small, as hardly any other case is: its size would seem to be the reason.
        """
        if self.observer.most is not None or not any(one.place is not None and one.place.counts for one in found.wrong):
            return found
        shown = [one for one in self._shown() if not one.large]
        more = [self._cases(_larger(one, number) for one in shown for number in some) for some in _LARGER]
        if "axes" in OPERATORS[self.operator].settings:
            more = [
                [*cases, *self._cases(other for one in shown for other in _with_other_axes(one, times))]
                for cases, times in zip(more, (1, _GROUPS_ALIKE), strict=True)
            ]
        again = self._describe_values([*formed, *more[0]], [*fresh, *more[1]])
        return found if again is None else again

    def _with_tracking(self, found: Pattern, fresh: Sequence[Case]) -> Pattern:
        """The description of a y that is wrong only in calls without gradients says so, if these are wrong again."""
        if not self._violated("CM-P6") or all(one.result != "y" for one in found.wrong):
            return found
        wrong = [one for one in self.observer.observed(fresh) if one.name == "y" and one.wrong.any()][:_MIN_WRONG]
        right = [(again := self.observer.tracked(one)) is not None and not again.wrong.any() for one in wrong]
        if not right or not all(right) or not all(map(self.observer.gives_again, wrong)):
            return found
        return attrs.evolve(found, sentence=f"{found.sentence.rstrip('.')}; where gradients are tracked, y is right.")

    # -- kinds of patterns -----------------------------------------------------------------------

    def _violated(self, *requirements: str) -> tuple[str, ...]:
        """The violated requirements that begin with one of these words: an id, or a prefix such as "CM-V"."""
        ids = dict.fromkeys(one.requirement for one in self.violations)
        return tuple(sorted((one for one in ids if any(one.startswith(name) for name in requirements)), key=priority))

    def _describe_memory(self, formed: Sequence[Case], fresh: Sequence[Case]) -> Pattern | None:
        violated = self._violated("CM-P2", "CM-P5")
        words = ""
        if violated and self.observer.most is None:
            words = leftovers_in_words(self.observer.subject, self._in_new_shapes(fresh))
            words = words or memory_in_words(self.observer.subject, fresh, self._cases_shown("CM-P2"))
        words = words or (differs_from_first_call(self.observer.subject, self.violations) if violated else "")
        # Memory comes first: it is the only reason why a formula is violated.
        return _in_a_sentence(words, tuple(dict.fromkeys((*violated, *self._violated("")))))

    def _in_new_shapes(self, cases: Sequence[Case]) -> list[Case]:
        """A few of these cases in shapes that no call had before."""
        whole = (one for one in cases if one.x.size > 1 and one.whole)
        shown = [one.description for one in islice(whole, len(_NEW_SIZES)) if one.description is not None]
        return self._cases(
            attrs.evolve(one, n=size, groups=tuple(islice(cycle(one.groups), size // 3)), **ITS_OWN_SIDES)
            for one, size in zip(shown, _NEW_SIZES, strict=False)
        )

    def _describe_refusals(self, formed: Sequence[Case], fresh: Sequence[Case]) -> Pattern | None:
        words = refusal(self.observer, self.operator, formed, fresh)
        if not words:
            return None
        failing = self._violated_on({id(one) for one in formed if self._fails(one)})
        return _in_a_sentence(words, failing or self._violated("CM-T"))

    def _fails(self, case: Case) -> bool:
        answers = (self.observer.answer(case, derivative=derivative) for derivative in (False, True))
        return any(answer is not None and answer.words for answer in answers)

    def _describe_values(self, formed: Sequence[Case], fresh: Sequence[Case]) -> Pattern | None:
        before, after = [*self.observer.observed(formed)], [*self.observer.observed(fresh)]
        wrong = self._all_wrong(before, after)
        few = sum(one.wrong.any() for one in after) <= _SMALL_SHARE * len(after)
        unclear = any(one.place is None for one in wrong)
        if few or unclear or any(one.place is not None and one.place.counts for one in wrong):
            found = self._describe_sizes(formed, fresh, followed=True)
            if found is not None:
                return found
            wrong = [self._at_all_sizes(one, before, after) for one in wrong]
        explains = self._explained(wrong, before)
        names = dict.fromkeys(one.name for one in (*before, *after))
        if not explains:
            return None
        record = OPERATORS[self.operator]
        sentence = sentence_of(wrong, [*names], record.outputs)
        if record.normalises and not record.centred:
            sentence = uncentred(sentence)
        return Pattern(capitalised(sentence), explains, wrong=tuple(wrong))

    def _all_wrong(self, before: Sequence[ObservedResult], after: Sequence[ObservedResult]) -> list[WrongResult]:
        names = dict.fromkeys(one.name for one in (*before, *after))
        found = [one for name in names if (one := self._wrong(name, before, after)) is not None]
        return [self._plainer(one, before, after) if one.relation is None else one for one in found]

    def _at_all_sizes(
        self, wrong: WrongResult, before: Sequence[ObservedResult], after: Sequence[ObservedResult]
    ) -> WrongResult:
        """How a result is wrong; formed anew if the place is a number and a size that was tried refutes it."""
        if wrong.place is None or not wrong.place.counts or wrong.shown_by:
            return wrong
        known = {id(one.case) for one in (*before, *after)}
        probed = [one for one in self.observer.probed(wrong.name) if id(one.case) not in known]
        if not any(_refutes(one, wrong) for one in probed):
            return wrong
        again = self._wrong(wrong.name, [*before, *probed[::2]], [*after, *probed[1::2]])
        return wrong if again is None else again

    def _plainer(
        self, wrong: WrongResult, before: Sequence[ObservedResult], after: Sequence[ObservedResult]
    ) -> WrongResult:
        """
        For a result without a relation: try cases without parts that count their calls, then values inside the layer.
        """
        if not OPERATORS[self.operator].composed or self.observer.most is not None:
            return wrong
        seen, fresh = ([one for one in some if not _counts(one.case)] for some in (before, after))
        again = self._wrong(wrong.name, seen, fresh)
        if again is not None and again.relation is not None:
            return again
        inside = (self._inside(inner) for inner in inner_values(self.operator) if wrong.name == "y")
        return next((one for one in inside if one is not None), wrong)

    def _inside(self, inner: InnerValue) -> WrongResult | None:
        """The mistake in an inner value, if it explains y."""
        seen, fresh = ([*self._of_recipes(inner.recipes, seed)] for seed in (0, FRESH_SEED))
        values = [[shown for one in some if (shown := inner.observed(one)) is not None] for some in (seen, fresh)]
        if min(map(len, values)) < _MIN_OBSERVED:
            return None
        found = self._wrong(values[0][0].name, *values, relations=[*inner.relations(values[0])])
        if found is None or found.relation is None:
            return None
        others = [*self._of_recipes(inner.other_recipes, FRESH_SEED)] if inner.other_recipes else []
        if not inner.explains(found, others):
            return None
        return attrs.evolve(found, name=inner.name, shown_by="y")

    def _of_recipes(self, recipes: Sequence[str], seed: int) -> Iterator[ObservedResult]:
        """y of cases with these recipes."""
        chosen = self._of_deck(seed, _FORMING_CASES)
        described = (tamed(attrs.evolve(one, recipe=recipes[i % len(recipes)])) for i, one in enumerate(chosen))
        yield from (one for one in self.observer.observed(self._cases(described)) if one.name == "y")

    def _describe_sizes(
        self, formed: Sequence[Case], fresh: Sequence[Case], *, followed: bool = False
    ) -> Pattern | None:
        """The description by sizes; ``followed``: accept only a rule that fits every size that was tried."""
        violated = [one.violated_on for one in self.violations if one.violated_on is not None]
        # Cases of the sweep are plain: what is said about them must also hold in all ordinary cases that are wrong.
        ordinary = [[one for one in cases if self._is_wrong(one)] for cases in (formed, fresh)]
        for found in thresholds(self.observer, violated, [*ordinary[0], *ordinary[1]]):
            if followed and not found.rule.followed:
                continue
            swept = (found.cases[::2], found.cases[1::2])
            seen = [
                [*self.observer.observed((*some, *self._of_ordinary_groups(some), *more))]
                for some, more in zip(swept, ordinary, strict=True)
            ]
            wrong, explains = self._all_wrong(*seen), self._explained_by_size(found.right_up_to)
            if wrong and explains:
                clauses = clauses_of([one for one in wrong if one.place is not EVERYWHERE and one.place is not None])
                clauses += clauses_of([one for one in wrong if one.place is EVERYWHERE])
                beyond = f": there {'; '.join(clauses)}" if clauses else ""
                sentence = f"{with_verb([one.name for one in wrong])} {found.words}{beyond}."
                return Pattern(sentence, explains, found.begins)
        return None

    def _explained_by_size(self, right_up_to: int) -> tuple[str, ...]:
        """The violations that larger cases show, CM-S1 after those of the operator's own page."""
        shown = [self.observer.case(one.violated_on) for one in self.violations if one.violated_on is not None]
        large = {id(one) for one in shown if one is not None and one.x.size > right_up_to}
        violated = self._violated_on(large, values=True)
        own = [one for one in violated if not one.startswith("CM-")]
        # A size is not a mistake of a layout or of a later call, although the calls that show those are large.
        return tuple(dict.fromkeys((*own, *self._violated("CM-S1"), *violated)))

    def _of_ordinary_groups(self, swept: Sequence[Case]) -> list[Case]:
        """
        Some cases of the sweep, with ordinary values.

        The sweep's groups are a few large values each, so that there the mean is nearly the last value's share. A
        relation that holds of these alone is none.
        """
        shown = [case.description for case in swept if case.description is not None]
        kinds = [tuple(("normal", at) for at in range(len(one.groups))) for one in shown]
        return self._cases(attrs.evolve(one, groups=groups) for one, groups in zip(shown, kinds, strict=True))

    def _is_wrong(self, case: Case) -> bool:
        """Whether a call of a case fails or returns a wrong result."""
        return any(one.wrong.any() for one in self.observer.observed([case])) or self._fails(case)

    def _describe_the_rest(self, formed: Sequence[Case], fresh: Sequence[Case]) -> Pattern | None:
        """A description of mistakes that no plain call shows."""
        kinds: tuple[tuple[tuple[str, ...], Callable[[Subject, Sequence[Case]], str]], ...] = (
            (("CM-P1",), partial(overwritten_in_words, shown=self._cases_shown("CM-P1"))),
            (("CM-V",), misread_layouts),
            (("CM-N",), misread_special_values),
        )
        clauses: list[str] = []
        explains: list[str] = []
        for requirements, find in kinds:
            violated = self._violated(*requirements)
            words = find(self.observer.subject, fresh) if violated and self.observer.most is None else ""
            if words:
                clauses.append(words)
                explains += violated
        if clauses:
            some = any(map(self._is_wrong, (*formed, *fresh)))
            clauses.append("some plain calls are wrong too" if some else "every plain call that was tried is right")
        return _in_a_sentence("; ".join(clauses), tuple(explains))

    def overwritten_beside(self, found: Pattern) -> Pattern | None:
        """What is said of the caller's arrays that a call changes, beside a description that does not explain it."""
        violated = tuple(name for name in self._violated("CM-P1") if name not in found.explains)
        if not violated or self.observer.most is not None:
            return None
        words = overwritten_in_words(self.observer.subject, self._fresh(), self._cases_shown("CM-P1"))
        return _in_a_sentence(words, violated)

    def again(self, pattern: Pattern) -> Pattern | None:
        """The same description for the same target in another dtype; None if it does not hold there."""
        seen = [*self.observer.observed([*self._formed(), *self._fresh()])]
        if not pattern.wrong or {one.name for one in seen if one.wrong.any()} != {one.name for one in pattern.wrong}:
            return None  # inner values are searched anew
        for wrong in pattern.wrong:
            there = [one for one in seen if one.name == wrong.name]
            if wrong.place is not None and wrong.place is not EVERYWHERE:
                part = share(wrong.place, there)
                if part is None or not part.explains:
                    return None
            elif wrong.relation is None:
                return None
            where = [_where(one, wrong.place) for one in there]
            if wrong.relation is not None and not wrong.relation.holds(wrong.number, there, where):
                return None
        explains = self._explained(pattern.wrong, seen)
        return attrs.evolve(pattern, explains=explains) if explains else None

    # -- cases -----------------------------------------------------------------------------------

    def _formed(self, *, every: bool = False) -> list[Case]:
        """The cases that show violations, and others of the deck: some, or every one."""
        return self._cases(self._shown()) + self._cases(self._of_deck(0, None if every else _FORMING_CASES))

    def _cases_shown(self, *requirements: str) -> list[Case]:
        """The very cases that show violations of some requirements. A check may have changed the one it was given."""
        found = []
        for one in (result.counterexample for result in self.violations if result.requirement in requirements):
            g = None if one is None else one.inputs.get("g")
            if one is not None and g is not None and g.size:
                given = {name: value for name, value in one.inputs.items() if name != "g"}
                found.append(Case(self.operator, given, one.settings, g, parts=one.parts))
        return found

    def _shown(self) -> list[Description]:
        """The cases that show violations."""
        shown = [one.violated_on for one in self.violations if one.violated_on is not None]
        return [*dict.fromkeys(shown)][:_MOST_VIOLATED]

    def _fresh(self, *, every: bool = False) -> list[Case]:
        """Generated cases, and others of another seed's deck: some, or every one."""
        generated = cases_in(self.observer.subject.mode, generate(self.operator, FRESH_SEED, _FRESH_CASES))
        free = [one for one in generated if _ordinary(one)]
        return self._cases(tamed(one) for one in (*free, *self._of_deck(FRESH_SEED, None if every else _FRESH_CASES)))

    def _with_contrasts(self, cases: list[Case]) -> list[Case]:
        """The cases, and some with what few cases have: a new layer's statistics, and cotangents of two sizes."""
        record = OPERATORS[self.operator]
        shown = [one.counterexample for one in self.violations]
        if record.normalises and any(one is not None and one.output == "dx" for one in shown):
            several = (one for one in cases if min(one.layout.count, one.layout.size) > 1)
            cases = [*cases, *(changed for one in islice(several, 1) for changed in with_cotangents_apart(one))]
        some = [
            one
            for mode in ((True, False) if record.has_modes else ())
            for one in islice(
                (one for one in cases if one.settings["training"] is mode and one.x.size > 1), _CONTRASTED
            )
        ]
        for one in some:
            self._contrasts.setdefault(id(one), tuple(with_new_statistics(one)))
        return [*cases, *(changed for one in some for changed in self._contrasts[id(one)])]

    def _of_deck(self, seed: int, number: int | None) -> list[Description]:
        """About this number of the deck's ordinary cases, of every kind; for None all, and those of one purpose too."""
        deck = [one for one in quick_cases(self.observer.subject, seed) if _ordinary(one)]
        plain = [one for one in deck if not one.only]
        some = of_every_kind(plain, _FORMING_CASES if number is None else number)
        # Few cases of a deck have float32 parameters beside 16-bit data. Others may, to see whether that is the reason.
        mixed = [attrs.evolve(one, mixed=True) for one in some] if self._is_of_mixed_dtypes() else []
        return [*(deck if number is None else some), *mixed]

    def _is_of_mixed_dtypes(self) -> bool:
        """Whether of the cases that show violations those are wrong that have float32 parameters beside 16-bit data."""
        shown = self._shown()
        return any(one.mixed for one in shown) and not any(
            self._is_wrong(case) for case in self._cases(one for one in shown if not one.mixed)
        )

    def _cases(self, descriptions: Iterable[Description]) -> list[Case]:
        found = [self.observer.case(one) for one in descriptions]
        return [
            one
            for one in dict.fromkeys(found)
            if one is not None and not one.bulky and one.x.size and _gamma_is_nonzero(one)
        ]

    # -- results ---------------------------------------------------------------------------------

    def _wrong(
        self,
        name: str,
        before: Sequence[ObservedResult],
        after: Sequence[ObservedResult],
        relations: Sequence[LinearRelation] | None = None,
    ) -> WrongResult | None:
        """How a result is wrong; ``relations``: to be tried in place of those of its name."""
        seen, fresh = ([one for one in some if one.name == name] for some in (before, after))
        if not any(one.wrong.any() for one in seen):
            return None
        places = places_of(self.operator, seen, fresh)
        for place in (EVERYWHERE, *places):
            found = self._related(name, seen, fresh, place, relations)
            if found is not None:
                return WrongResult(name, *found, place)
        lost = lost_groups_in_words([*seen, *fresh])
        if lost:
            others = ", other ones in other calls with the same arguments" if self._differs_again(fresh) else ""
            return WrongResult(name, size=f"{in_how_many(seen, fresh)}: {lost}{others}")
        for place in places:
            if is_nearly_all_wrong(place, seen, fresh):
                return WrongResult(name, place=place)
        relation, number = self._related(name, seen, fresh, None, relations) or (None, 0.0)
        return WrongResult(
            name, relation, number, size=how_often(seen, fresh, place_of_some(self.operator, [*seen, *fresh]))
        )

    def _differs_again(self, seen: Sequence[ObservedResult]) -> bool:
        """Whether another call with the same arguments returns another wrong gradient."""
        some = [one for one in seen if one.wrong.any()] if self.observer.most is None else []
        again = [(one, results_if_any(self.observer.subject, one.case, gradients=True)) for one in some[:_MIN_WRONG]]
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
        where = [_where(one, place) for one in seen]
        again = [_where(one, place) for one in fresh]
        for relation in self._relations(name, seen, place) if relations is None else relations:
            number = relation.fitted(seen, where)
            if number is None or _shows_in_extremes_alone(relation, number, seen):
                continue
            if not relation.holds(number, fresh, again) or not relation.is_evident(fresh, again):
                continue
            if place is None and relation.is_of_formula(number):  # right values of a wrong case count too
                wrong = [one for one in (*seen, *fresh) if one.wrong.any()]
                if not relation.holds(number, wrong, [np.ones(one.got.shape, bool) for one in wrong]):
                    continue
            return relation, number
        return None

    def _relations(self, name: str, seen: Sequence[ObservedResult], place: Place | None) -> Iterable[LinearRelation]:
        yield from plain_relations(name)
        yield from running_relations(name)
        yield from term_relations(self.operator, name)
        yield from backward_relations(self.operator, name)
        yield from other_eps(self.operator, name)
        yield from rounded_inputs(self.operator, name)
        yield from kept_values(self.operator, name)
        record = OPERATORS[self.operator]
        if name == "y" and record.normalises and not record.normalises_handed:
            yield from parameter_relations()
            yield from axes_relations(self.operator)
            yield from clipped_relations()
            inside = [] if place is None else [(one, _where(one, place)) for one in seen]
            if inside and all(where.all() or not where.any() for _, where in inside):
                yield from spread_relations([one for one, where in inside if where.all()])

    def _explained(self, wrong: Sequence[WrongResult], seen: Sequence[ObservedResult]) -> tuple[str, ...]:
        """The violations on whose cases one of the described results is wrong."""
        names = {one.result for one in wrong}
        cases = {id(one.case) for one in seen if one.name in names and one.wrong.any()}
        found = self._violated_on(cases, values=True)
        absent = any(one.place is not None and one.place.is_of_absent_parameters for one in wrong)
        return tuple(sorted(found, key=lambda name: name not in _ABSENT_PARAMETERS)) if absent else found

    def _violated_on(self, cases: Set[int], *, values: bool = False) -> tuple[str, ...]:
        """The violations that show on some cases, the most telling first; ``values``: those that values may show."""
        found = []
        for one in self.violations:
            case = None if one.violated_on is None else self.observer.case(one.violated_on)
            shown = case is not None and any(id(some) in cases for some in (case, *self._contrasts.get(id(case), ())))
            if shown and (not values or _may_be_of_values(one)):
                found.append(one.requirement)
        return tuple(sorted(dict.fromkeys(found), key=priority))


def _in_a_sentence(words: str, explains: tuple[str, ...]) -> Pattern | None:
    """The words as a description; None if there are none, or if they explain nothing."""
    return Pattern(capitalised(f"{words}."), explains) if words and explains else None


def _may_be_of_values(violation: Result) -> bool:
    """Whether a wrong value of a plain call may be why: not if the call raised, or if something else was tried."""
    shown = violation.counterexample
    raised = shown is not None and shown.raised is not None
    return not raised and not violation.requirement.startswith(_NOT_OF_VALUES)


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
    assert wrong.place is not None
    inside = _where(one, wrong.place)
    if (one.wrong & ~inside).any():
        return True
    return wrong.relation is not None and not wrong.relation.holds(wrong.number, [one], [inside])


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


def _ordinary(description: Description) -> bool:
    return not description.mixed and bool(description.n) and bool(description.count_of_groups)


def _counts(case: Case) -> bool:
    """Whether a part counts its calls, so that one more call gives another value."""
    described = case.description
    return described is not None and described.recipe == "counted"


def _gamma_is_nonzero(case: Case) -> bool:
    """Whether gamma is not zero everywhere. If it is, nothing is known about how far roundings carry."""
    gamma = case.inputs.get("gamma")
    return gamma is None or bool(np.any(gamma != 0))


def _where(one: ObservedResult, place: Place | None) -> Array:
    if place is None:
        return one.wrong
    mask = place.mask(one)
    return np.zeros(one.got.shape, bool) if mask is None else mask
