"""
The describer: says in words what is wrong with a target.

Every word is confirmed on cases that it was not derived from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

import attrs

from ....spec.identifiers import is_common
from ....spec.operators import OPERATORS
from ...cases.case import Case
from ...engine.folding import priority
from ...judging.verdicts import Result
from ..search import Search
from .described_cases import DescribedCases
from .leftovers import leftovers_in_words
from .memory import differs_from_first_call, memory_in_words
from .observing import ObservedResult, Observer
from .overwritten import overwritten_in_words
from .pattern import Pattern, WrongResult, with_verb
from .place import EVERYWHERE, share, where
from .refusals import refusal
from .result_describer import ResultDescriber
from .sentences import (
    RIGHT_GRADIENTS,
    WITHOUT_PATTERN,
    capitalised,
    clauses_of,
    sentence_of,
    uncentred,
    wrong_on_their_own,
)
from .special import misread_layouts, misread_special_values
from .thresholds import thresholds
from .unused import lacking_in_words, lacking_inputs
from .wrong_dtypes import wrong_dtypes

#: If fewer of either are wrong, all ordinary cases of the deck are looked at: what few cases show needs all of them.
_MIN_WRONG = 5
#: If at most this share of ordinary cases is wrong, it may be a question of size.
_SMALL_SHARE = 0.1
#: On a slow target, the most calls for values or gradients that the search and the description make together. With the
#: checks of the search, and the search for what follows from what, that makes thirty calls.
_MOST_SLOW = 18
#: Requirements on dtypes, or on what is tried besides a plain call: either may be wrong where the values are wrong too.
_NOT_OF_VALUES = ("CM-P1", "CM-T2", "CM-V", "CM-N1", "CM-N3", "CM-N4", "CM-N5", "CM-N6", "CM-N7", "CM-S2")
#: The requirements on parameters that are None. What is wrong where they are breaks these before others.
_ABSENT_PARAMETERS = ("LN-F6", "BN-F6", "RM-F6", "GN-F6", "IN-F6", "PR-F4", "PO-F4")


@attrs.frozen
class Describer:
    """The description of one subject."""

    observer: Observer
    violations: Sequence[Result]
    cases: DescribedCases
    results: ResultDescriber
    #: Whether it looks for no relation, and for places in few cases only.
    briefly: bool = False

    @classmethod
    def after(cls, search: Search, *, briefly: bool = False) -> Describer:
        """
        The describer of a subject for which no mistake was found; it knows all answers of that search.

        ``briefly``: a dtype in which the same is violated, and which shows it better, has neither relation nor place.
        """
        observer = Observer(search.subject, search.asked.library, _MOST_SLOW if search.subject.always_slow else None)
        for question, answer in search.asked.answered:
            observer.add(question, answer)
        cases = DescribedCases(observer, search.violations)
        return cls(observer, search.violations, cases, ResultDescriber(cases, relates=not briefly), briefly)

    def described(self) -> Pattern | None:
        """The description; None if nothing was found that holds."""
        formed, fresh = self.cases.formed(), self.cases.fresh()
        if self.observer.limited:  # the calls that are left go to fresh cases
            list(self.observer.observed(fresh))
        elif min(sum(map(self.observer.is_wrong, some)) for some in (formed, fresh)) < _MIN_WRONG:
            every = self.cases.formed(every=True), self.cases.fresh(every=True)
            formed, fresh = map(self.cases.with_contrasts, every)
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
        return self._with_tracking(self._with_lacking(found, formed, fresh), fresh)

    def again(self, pattern: Pattern) -> Pattern | None:
        """The same description for the same target in another dtype; None if it does not hold there."""
        seen = [*self.observer.observed([*self.cases.formed(), *self.cases.fresh()])]
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
            inside = [where(one, wrong.place) for one in there]
            if wrong.relation is not None and not wrong.relation.holds(wrong.number, there, inside):
                return None
        explains = self._explained(pattern.wrong, seen)
        return attrs.evolve(pattern, explains=explains) if explains else None

    def beside(self, found: Pattern) -> list[Pattern]:
        """
        Further descriptions, of what the first does not explain and no wrong value is the reason of.

        These are the caller's arrays that a call changes, and results of a wrong dtype.
        """
        if self.observer.limited:
            return []
        told = []
        for violated, in_words in ((self._violated("CM-P1"), self._overwritten), (self._of_types(), self._mistyped)):
            explains = tuple(name for name in violated if name not in found.explains)
            if explains and (pattern := _in_a_sentence(in_words(), explains)) is not None:
                told.append(pattern)
        return told

    def _overwritten(self) -> str:
        return overwritten_in_words(self.observer.subject, self.cases.fresh(), self.cases.that_violate("CM-P1"))

    def _mistyped(self) -> str:
        return wrong_dtypes(self.observer.subject, self.cases.formed(), self.cases.fresh())

    # -- what is found is told more exactly ------------------------------------------------------------

    def _with_place(self, found: Pattern, formed: Sequence[Case], fresh: Sequence[Case]) -> Pattern:
        """The description; if it lacks a place and few cases are right, that of all ordinary cases if it has one."""
        if self.observer.limited or self.briefly or all(one.place is not None for one in found.wrong):
            return found
        right = [sum(not self.observer.is_wrong(one) for one in some) for some in (formed, fresh)]
        if min(right) >= _MIN_WRONG or not any(right):
            return found
        again = self._describe_values(self.cases.formed(every=True), self.cases.fresh(every=True))
        return found if again is None or any(one.place is None for one in again.wrong) else again

    def _in_other_sizes(self, found: Pattern, formed: Sequence[Case], fresh: Sequence[Case]) -> Pattern:
        """The description; if its place is a number of something, that of the shown cases in other sizes too."""
        if self.observer.subject.slow or not any(_is_of_a_number(one) for one in found.wrong):
            return found
        more, more_fresh = self.cases.in_other_sizes()
        again = self._describe_values([*formed, *more], [*fresh, *more_fresh])
        return found if again is None else again

    def _with_tracking(self, found: Pattern, fresh: Sequence[Case]) -> Pattern:
        """The description of a y that is wrong only in calls without gradients says so, if these are wrong again."""
        if not self._violated("CM-P6") or all(one.result != "y" for one in found.wrong):
            return found
        wrong = [one for one in self.observer.observed(fresh) if one.name == "y" and one.wrong.any()][:_MIN_WRONG]
        right = [(again := self.observer.tracked(one)) is not None and not again.wrong.any() for one in wrong]
        if not right or not all(right) or not all(map(self.observer.gives_again, wrong)):
            return found
        sentence = found.sentence.replace(WITHOUT_PATTERN, "").rstrip(".")  # this is one
        return attrs.evolve(found, sentence=f"{sentence}; where gradients are tracked, y is right.")

    def _with_lacking(self, found: Pattern, formed: Sequence[Case], fresh: Sequence[Case]) -> Pattern:
        """The description of a y that does not depend on some inputs says that no gradient reaches these."""
        names = lacking_inputs(self.observer, [*formed, *fresh]) if found.tells_values else ()
        if not names:
            return found
        # What the others are was seen only where all are there.
        told = found.sentence.rstrip(".").removesuffix(f"; {RIGHT_GRADIENTS}")
        return attrs.evolve(found, sentence=f"{told}; {lacking_in_words(names)}.")

    # -- kinds of patterns -----------------------------------------------------------------------------

    def _describe_memory(self, formed: Sequence[Case], fresh: Sequence[Case]) -> Pattern | None:
        violated = self._violated("CM-P2", "CM-P5")
        words, subject = "", self.observer.subject
        if violated and not self.observer.limited:
            words = leftovers_in_words(subject, self.cases.in_new_shapes(fresh))
            words = words or memory_in_words(subject, fresh, self.cases.that_violate("CM-P2"))
        words = words or (differs_from_first_call(subject, self.violations) if violated else "")
        # Memory comes first: it is the only reason why a formula is violated.
        return _in_a_sentence(words, tuple(dict.fromkeys((*violated, *self._violated("")))))

    def _describe_refusals(self, formed: Sequence[Case], fresh: Sequence[Case]) -> Pattern | None:
        follow = bool(lacking_inputs(self.observer, [*formed, *fresh]))
        words = refusal(self.observer, self.observer.operator, formed, fresh, gradients=not follow)
        if not words:
            return None
        failing = self._violated_on({id(one) for one in formed if self.observer.fails(one)})
        # Where a result was shown that another call changed, a call that fails on the same case is not why.
        changed = {one.requirement for one in self.violations if _shows_memory(one)}
        return _in_a_sentence(words, tuple(one for one in failing if one not in changed) or self._violated("CM-T"))

    def _describe_values(self, formed: Sequence[Case], fresh: Sequence[Case]) -> Pattern | None:
        seen, seen_fresh = [*self.observer.observed(formed)], [*self.observer.observed(fresh)]
        wrong = self.results.all_wrong(seen, seen_fresh)
        few = sum(one.wrong.any() for one in seen_fresh) <= _SMALL_SHARE * len(seen_fresh)
        if few or any(one.place is None or _is_of_a_number(one) for one in wrong):
            found = self._describe_sizes(formed, fresh, followed=True)
            if found is not None:
                return found
            wrong = [self.results.at_all_sizes(one, seen, seen_fresh) for one in wrong]
        wrong = [self.results.in_every_case(one, seen, seen_fresh) for one in wrong]
        explains = self._explained(wrong, seen)
        if not explains:
            return None
        # "y", or "change of y": what is shown to be wrong is not said to be right.
        outputs = [one.counterexample.output for one in self.violations if one.counterexample is not None]
        shown = {words.split(" ")[-1] for words in outputs}
        names = dict.fromkeys(one.name for one in (*seen, *seen_fresh) if one.name not in shown)
        sentence = self._of_moments(sentence_of(wrong, [*names], OPERATORS[self.observer.operator].outputs))
        return Pattern(capitalised(sentence), explains, wrong=tuple(wrong), tells_values=True)

    def _of_moments(self, sentence: str) -> str:
        """The sentence in the words of the operator: of a mean square, if it subtracts no mean."""
        record = OPERATORS[self.observer.operator]
        return uncentred(sentence) if record.normalises and not record.centred else sentence

    def _describe_sizes(
        self, formed: Sequence[Case], fresh: Sequence[Case], *, followed: bool = False
    ) -> Pattern | None:
        """The description by sizes; ``followed``: accept only a rule that fits every size that was tried."""
        violated = [one.violated_on for one in self.violations if one.violated_on is not None]
        # Cases of the sweep are plain: what is said about them must also hold in all ordinary cases that are wrong.
        ordinary = [[one for one in cases if self.observer.is_wrong(one)] for cases in (formed, fresh)]
        for found in thresholds(self.observer, violated, [*ordinary[0], *ordinary[1]]):
            if followed and not found.rule.followed:
                continue
            swept = (found.cases[::2], found.cases[1::2])
            seen = [
                [*self.observer.observed((*some, *self.cases.of_ordinary_groups(some), *more))]
                for some, more in zip(swept, ordinary, strict=True)
            ]
            wrong, explains = self.results.all_wrong(*seen), self._explained_by_size(found.right_up_to)
            if wrong and explains:
                own = wrong_on_their_own(wrong, OPERATORS[self.observer.operator].outputs)
                own = [one for one in own if not found.is_told_by(one)]
                clauses = clauses_of([one for one in own if one.place is not EVERYWHERE and one.place is not None])
                clauses += clauses_of([one for one in own if one.place is EVERYWHERE])
                beyond = f": there {'; '.join(clauses)}" if clauses else ""
                sentence = f"{with_verb([one.name for one in wrong])} {found.words}{beyond}."
                return Pattern(self._of_moments(sentence), explains, found.begins, tells_values=True)
        return None

    def _describe_the_rest(self, formed: Sequence[Case], fresh: Sequence[Case]) -> Pattern | None:
        """A description of mistakes that no plain call shows."""
        if self.observer.limited:
            return None
        subject = self.observer.subject
        kinds: tuple[tuple[tuple[str, ...], Callable[[], str]], ...] = (
            (self._violated("CM-P1"), self._overwritten),
            (self._of_types(), self._mistyped),
            (self._violated("CM-V"), lambda: misread_layouts(subject, fresh)),
            (self._violated("CM-N"), lambda: misread_special_values(subject, fresh)),
        )
        clauses: list[str] = []
        explains: list[str] = []
        for violated, find in kinds:
            words = find() if violated else ""
            if words:
                clauses.append(words)
                explains += violated
        if clauses:
            what = "value" if any(one.startswith("CM-T") for one in explains) else "plain call"
            some = any(map(self.observer.is_wrong, (*formed, *fresh)))
            clauses.append(f"some {what}s are wrong too" if some else f"every {what} that was tried is right")
        return _in_a_sentence("; ".join(clauses), tuple(explains))

    # -- the violations that a description explains ----------------------------------------------------

    def _violated(self, *prefixes: str) -> tuple[str, ...]:
        """The violated requirements whose ids begin with one of these, such as "CM-V", the most telling first."""
        ids = dict.fromkeys(one.requirement for one in self.violations)
        return tuple(sorted((one for one in ids if one.startswith(prefixes)), key=priority))

    def _of_types(self) -> tuple[str, ...]:
        """The violated requirements on types; those on types beside float32 parameters too, if plain calls violate."""
        plain = self._violated("CM-T")
        return (*plain, *self._violated("CM-D2", "CM-D3")) if plain else ()

    def _explained(self, wrong: Sequence[WrongResult], seen: Sequence[ObservedResult]) -> tuple[str, ...]:
        """The violations on whose cases one of the described results is wrong, or may be in another call."""
        varies = {one.result: one.varies for one in wrong}
        cases = {id(one.case) for one in seen if one.name in varies and (varies[one.name] or one.wrong.any())}
        found = self._violated_on(cases, values=True)
        absent = any(one.place is not None and one.place.is_of_absent_parameters for one in wrong)
        return tuple(sorted(found, key=lambda name: name not in _ABSENT_PARAMETERS)) if absent else found

    def _explained_by_size(self, right_up_to: int) -> tuple[str, ...]:
        """The violations that larger cases show, CM-S1 after those of the operator's own page."""
        shown = [self.observer.case(one.violated_on) for one in self.violations if one.violated_on is not None]
        large = {id(one) for one in shown if one is not None and one.x.size > right_up_to}
        violated = self._violated_on(large, values=True)
        own = [one for one in violated if not is_common(one)]
        # A size is not a mistake of a layout or of a later call, although the calls that show those are large.
        return tuple(dict.fromkeys((*own, *self._violated("CM-S1"), *violated)))

    def _violated_on(self, cases: Set[int], *, values: bool = False) -> tuple[str, ...]:
        """The violations that show on some cases, the most telling first; ``values``: those that values may show."""
        found = [
            one.requirement
            for one in self.violations
            if one.violated_on is not None
            and any(id(case) in cases for case in self.cases.with_its_contrasts(one.violated_on))
            and (not values or _may_be_of_values(one))
        ]
        return tuple(sorted(dict.fromkeys(found), key=priority))


def _in_a_sentence(words: str, explains: tuple[str, ...]) -> Pattern | None:
    """The words as a description; None if there are none, or if they explain nothing."""
    return Pattern(capitalised(f"{words}."), explains) if words and explains else None


def _may_be_of_values(violation: Result) -> bool:
    """Whether a wrong value of a plain call may be why: not if the call raised, or if something else was tried."""
    shown = violation.counterexample
    raised = shown is not None and shown.raised is not None
    return not raised and not violation.requirement.startswith(_NOT_OF_VALUES)


def _shows_memory(violation: Result) -> bool:
    """Whether a requirement on memory is violated by a value, and not by a call that raised."""
    shown = violation.counterexample
    return violation.requirement.startswith("CM-P") and shown is not None and shown.raised is None


def _is_of_a_number(wrong: WrongResult) -> bool:
    """Whether a result is wrong where the number of something is what it is."""
    return wrong.place is not None and wrong.place.counts
