"""The search for the mistake behind the violations of one binding in one dtype."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from ...spec.errors import Unsupported
from ..cases.description import Description
from ..checks.catalogue import checks_of
from ..checks.registry import Check
from ..engine import Run
from ..library import Library, fitted
from ..plan import Plan
from ..profiles import profile_of
from ..subject import Subject
from ..verdicts import Result, Verdict
from .answers import Answer, Question
from .candidates import Candidate, named_so, paired, singles
from .following import follow

#: Cases beside the violated ones that a name must survive, and the same where calls are slow; with what the candidates
#: are asked about each other, a slow target is called some thirty times.
_FRESH, _FRESH_SLOW = 16, 4

#: Violated requirements whose checks are put to the candidates where calls are slow.
_CHECKS_SLOW = 8

#: Candidates of which one may be named that are told apart by what they violate themselves, each by a run of its own.
_FINALISTS = 12

#: Requirements that no candidate is told apart by: their checks repeat calls or make large ones, which costs the most
#: and says nothing more of a formula.
_COSTLY = frozenset({"CM-P2", "CM-P3", "CM-S1"})

#: Faults of which two are tried together: those that answer the most questions as the target does.
_PAIRED = 60

#: Pairs that are tried, the likeliest first: some two seconds. Counted, so that no report depends on time.
_PAIRS = 200


@attrs.frozen(eq=False)
class Found:
    """What explains violations: candidates that no question tells apart, each with the requirements it explains."""

    candidates: tuple[Candidate, ...]
    #: Each with the places of those faults of a candidate that violate it by themselves; of all, where none does.
    explains: Mapping[str, tuple[int, ...]]


@attrs.define
class Search:
    """The search on one subject."""

    subject: Subject
    #: The violations of MUST requirements, and the requirements that it was judged by and does not violate.
    violations: Sequence[Result]
    satisfied: frozenset[str]
    #: The faults that explain the violations in another dtype: if they do here, none other is looked for.
    known: tuple[tuple[str, ...], ...] = ()
    library: Library = attrs.field(init=False)
    _answers: dict[Question, Answer] = attrs.field(factory=dict)
    _checks: dict[str, Check] = attrs.field(init=False)
    _broken: dict[str, Question] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.library = self.subject.library
        self._checks = {check.requirement: check for check in checks_of(self.subject.operator)}
        self._broken = self._violated()

    def found(self) -> Found | None:
        """The one mistake, or the two together, that the target has; None where the library has none such."""
        # Plain calls first: they are the cheapest, and most candidates end there.
        plain, fresh, telling = [*self._plain()], [*self._fresh()], self._telling()
        for names in self.known:
            # What is known from another dtype need not be telling here, where few digits may hide it.
            questions = [*plain, *(telling or self._own_checks()), *fresh]
            again = [one for one in named_so(self.subject, names) if self._agrees(one, questions)]
            if again:
                return self._explained(again)
        if not telling:
            return None
        questions = [*plain, *telling, *fresh]
        candidates = tuple(singles(self.subject))
        named = self._survivors([one for one in candidates if self._agrees(one, questions)])
        if not named:
            named = self._survivors(self._pairs(candidates, telling, questions))
        return self._explained(named) if named else None

    # -- questions -------------------------------------------------------------------------------

    def _question(
        self, description: Description, check: Check | None = None, *, derivative: bool = False
    ) -> Question | None:
        fit = fitted(description, self.subject.binding)
        if fit is None:
            return None
        case = self.library.case(fit)
        if check is None:
            bessel = self.subject.conventions.get("running_variance") == "bessel"
            without = "new_running_var" if bessel else ""
            return None if case.bulky else Question(case, fit, derivative=derivative, without=without)
        return Question(case, fit, check, derivative=_of_derivatives(check)) if check.when(case) else None

    @property
    def answered(self) -> Iterable[tuple[Question, Answer]]:
        """What the target has answered so far."""
        return self._answers.items()

    def answer(self, question: Question) -> Answer:
        """What the target answers, asked once."""
        if question not in self._answers:
            self._answers[question] = question.put_to(self.subject)
        return self._answers[question]

    def _violated(self) -> dict[str, Question]:
        """Each violated requirement's check, on the case that shows it."""
        found: dict[str, Question] = {}
        for result in self.violations[: _CHECKS_SLOW if self.subject.slow else None]:
            if result.violated_on is not None:
                question = self._question(result.violated_on, self._checks[result.requirement])
                if question is not None:
                    found[result.requirement] = question
        return found

    def _telling(self) -> list[Question]:
        """
        Those of the violated checks to which the target answers with values that are far off.

        What holds for every operator, repeated calls among it, says less of a formula and takes more calls: it is asked
        where nothing else is violated.
        """
        for some in (self._own_checks(), self._broken.values()):
            telling = [question for question in some if self.answer(question).telling]
            if telling:
                return telling
        return []

    def _own_checks(self) -> list[Question]:
        """The violated checks of the operator's own page."""
        return [question for name, question in self._broken.items() if not name.startswith("CM-")]

    def _plain(self) -> Iterator[Question]:
        """The outputs and gradients of the cases that show violations."""
        met = dict.fromkeys(one.violated_on for one in self.violations if one.violated_on is not None)
        yield from self._values_on(met)

    def _fresh(self) -> Iterator[Question]:
        """The outputs and gradients of cases that were chosen for no violation."""
        cases = profile_of("quick").cases(self.subject.operator, 0)
        plain = [one for one in cases if not one.mixed and one.n and one.count_of_groups]
        yield from self._values_on(plain[:: max(1, len(plain) // (_FRESH_SLOW if self.subject.slow else _FRESH))])

    def _values_on(self, descriptions: Iterable[Description]) -> Iterator[Question]:
        descriptions = tuple(descriptions)
        for derivative in (False, True) if not self.subject.forward_only else (False,):
            for description in descriptions:
                question = self._question(description, derivative=derivative)
                if question is not None and not self._lacks(question):
                    yield question

    def _lacks(self, question: Question) -> bool:
        """Whether the target declines the call, or has no gradients: nothing is known of a mistake there."""
        return self.answer(question).words == Unsupported.__name__

    # -- candidates ------------------------------------------------------------------------------

    def _same(self, candidate: Candidate, question: Question) -> bool:
        answer, other = self.answer(question), candidate.answer(question)
        if answer.agrees(other):
            return True
        returned = question.plain and not answer.words and not other.words
        return returned and answer.agrees(candidate.unstable_answer(question))

    def _agrees(self, candidate: Candidate, questions: Sequence[Question]) -> bool:
        """
        Whether a candidate computes what the target does, and has its derivatives.

        Where the formula is wrong, its derivatives are those that the author wrote out, as the candidate's are, or the
        true ones of what is computed, as a framework's are.
        """
        forward = [question for question in questions if not question.derivative]
        backward = [question for question in questions if question.derivative]
        if not all(self._same(candidate, question) for question in forward):
            return False
        if all(self._same(candidate, question) for question in backward):
            return True
        wrong = any(candidate.answer(question).telling for question in forward)
        plain = [question for question in backward if question.plain]
        return wrong and all(
            self._same(candidate, question) or follow(candidate, question, self.answer(question)) for question in plain
        )

    def _pairs(
        self, candidates: Sequence[Candidate], telling: Sequence[Question], questions: Sequence[Question]
    ) -> list[Candidate]:
        """Two mistakes together: those first that answer, one or the other alone, the most questions as it does."""
        alike = {
            one: frozenset(q for q in telling if self._same(one, q) or self.answer(q).errs_alike(one.answer(q)))
            for one in candidates
        }
        few = sorted((one for one in candidates if alike[one]), key=lambda one: -len(alike[one]))[:_PAIRED]
        together = sorted(itertools.combinations(few, 2), key=lambda two: -len(alike[two[0]] | alike[two[1]]))
        both = (paired(*two) for two in together[:_PAIRS])
        return [one for one in both if one is not None and self._agrees(one, questions)]

    def _survivors(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Those of which the target shows everything that a run of theirs shows."""
        if len(candidates) > _FINALISTS:
            return []
        return [one for one in candidates if all(self._same(one, question) for question in self._own(one))]

    def _own(self, candidate: Candidate) -> Iterator[Question]:
        """
        What the candidate violates, of what the target is found to satisfy.

        Where its formula is wrong, its derivatives are left out: a target may have others (following.py).
        """
        if self.subject.slow:
            return
        wrong = self._is_wrong(candidate)
        subject = candidate.subject
        plan = Plan(
            targets=(subject.target,),
            dtypes=(subject.dtype,),
            device="cpu",
            conventions=dict(subject.conventions),
            profile=attrs.evolve(profile_of("quick"), repeats=32, large_repeats=32),
            seed=0,
            forward_only=subject.forward_only,
            explain=False,
            requirements=self.satisfied - _COSTLY,
        )
        for result in Run(plan).report([(subject.operator, subject.dtype)]).results:
            if is_violation(result):
                question = self._question(result.violated_on, self._checks[result.requirement])
                if question is None or (wrong and question.derivative):
                    continue
                if candidate.answer(question).telling:
                    yield question

    def _explained(self, named: Sequence[Candidate]) -> Found:
        """
        The violations that the first of the candidates shows too, each with the faults that do so by themselves.

        Gradients that are wrong were found to be those of its formula; of what is derived once more that is not known.
        """
        candidate = named[0]
        alone = [Candidate((fault,), self.subject) for fault in candidate.faults]
        explained = {}
        for name, question in self._broken.items():
            gradient = question.derivative and self._checks[name].raising != "unsupported"
            if candidate.answer(question).words or (gradient and self._is_wrong(candidate)):
                places = tuple(place for place, one in enumerate(alone) if one.answer(question).words)
                explained[name] = places or tuple(range(len(alone)))
        return Found(tuple(named), explained)

    def _is_wrong(self, candidate: Candidate) -> bool:
        """Whether it is its values that are wrong, and not derivatives alone."""
        return any(candidate.answer(one).telling for one in self._broken.values() if not one.derivative)


def is_violation(result: Result) -> bool:
    """Whether a result is one that a diagnosis is asked for."""
    return result.verdict is Verdict.FAIL and result.violated_on is not None


def _of_derivatives(check: Check) -> bool:
    return check.gradient or "-G" in check.requirement
