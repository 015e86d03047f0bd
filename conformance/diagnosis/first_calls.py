"""
Targets that keep something from the first call of each shape.

Only shapes that no earlier call had can show what.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import cycle, islice

import attrs

from ...adapters.dtypes import DTYPES
from ...spec.errors import CALL_FAILED
from ..cases.case import Case
from ..cases.description import Description
from ..checks.derived import affine_names
from ..checks.later_calls import other_settings, with_last_value_changed
from ..checks.registry import Check
from ..engine.modes import quick_cases
from ..engine.tally import Tally, findings
from ..judging.library import fitted
from ..judging.subject import Subject
from ..judging.verdicts import Result
from .answers import CLEARLY_WRONG
from .candidates import Candidate
from .chosen_cases import FRESH_SEED
from .extremes import tamed
from .question import how_it_fails
from .question_maker import QuestionMaker
from .series import Results, same_results, values_of

#: The requirement violated by a function that keeps something of a call.
MEMORY = "CM-P2"

#: More groups than any small case of a deck has, so that no call had the shape before.
_LEAST_GROUPS = 41

#: Cases of the deck that are asked in new shapes, and those of a target that is slow in each: 13 shapes a case.
_CASES, _CASES_SLOW = 2, 1

#: More than there are series: a violated check is asked in shapes beyond theirs.
_PLACES_OF_SERIES = 64

#: Places in x that are changed alone, to tell how many of the first values a result is kept by.
_PLACES = (3, 4, 7, 8, 15, 16)

#: Calls that must be wrong, each in a shape of its own, before anything is said: one could be an accident.
_MIN_WRONG = 2

#: Shapes whose first call may be wrong, because another case had that shape after all. If it is wrong in more, the
#: function is wrong whatever was called before.
_MOST_USED = 4


@attrs.frozen(eq=False)
class _Calls:
    """Calls of one new shape, in order: one case, another twice, and the first again."""

    first: Case
    other: Case

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases to call. What belongs to the last call, and not to the first, shows in the repetition."""
        return (self.first, self.other, self.other, self.first)

    def results(self, subject: Subject) -> list[Results]:
        """The results of each call in turn."""
        subject.target.begin()
        return [self._results_of(subject, case) for case in self.cases]

    @staticmethod
    def _results_of(subject: Subject, case: Case) -> Results:
        try:
            found = subject.outputs(case)
            return found if subject.forward_only else {**found, **subject.pull(case)}
        except CALL_FAILED as failure:
            return how_it_fails(failure)


@attrs.frozen(slots=False)
class FirstCalls:
    """What one target keeps of the first call of each shape."""

    maker: QuestionMaker
    #: The target, declared to have no gradients if it has none.
    subject: Subject

    @cached_property
    def answers(self) -> list[tuple[_Calls, list[Results]]]:
        """The target's results in new shapes; empty if they do not show that it keeps something of the first call."""
        if self.subject.always_slow or not any(one.requirement == MEMORY for one in self.maker.violations):
            return []
        seen: list[tuple[_Calls, list[Results], bool]] = []
        for calls in self._series():
            found = calls.results(self.subject)
            if any(isinstance(one, str) for one in found):
                continue  # a call that the target declines tells nothing
            seen.append((calls, found, self._is_right(calls.first, found[0])))
            if len(seen) > _MOST_USED and not any(right for _, _, right in seen):
                return []

        def wrong_alone(case: Case) -> bool:
            """Whether settings are wrong in the first call of every shape: nothing is kept of another call then."""
            first = [right for calls, _, right in seen if calls.first.settings == case.settings]
            return bool(first) and not any(first)

        answers = [(calls, found) for calls, found, right in seen if right and not wrong_alone(calls.other)]
        used = sum(not right and not wrong_alone(calls.first) for calls, _, right in seen)
        wrong = sum(not self._is_right(calls.other, found[1]) for calls, found in answers)
        return answers if used <= _MOST_USED and wrong >= _MIN_WRONG else []

    def keeps_like(self, candidate: Candidate) -> bool:
        """Whether a candidate keeps what the target keeps: each of its results is the target's apart from rounding."""
        return all(
            same_results(self.subject, case, here, there)
            for calls, own in self.answers
            for case, here, there in zip(calls.cases, own, calls.results(candidate.subject), strict=True)
        )

    def explains(self, result: Result, candidate: Candidate) -> bool:
        """Whether a violated check holds in a shape that no call had before, or a candidate violates it there too."""
        shown, check = result.violated_on, self.maker.checks[result.requirement]
        if shown is None or shown.large:
            return False
        place = [one.requirement for one in self.maker.violations].index(result.requirement)
        case = self._in_new_shape(shown, _PLACES_OF_SERIES + place)
        if not check.when(case):
            return False
        here, there = (self._violates(subject, check, case) for subject in (self.subject, candidate.subject))
        return here is not None and (not here or bool(there))

    @staticmethod
    def _violates(subject: Subject, check: Check, case: Case) -> bool | None:
        """Whether a check is violated on a case; None if the call fails or the case does not show it."""
        tally = Tally(check)
        judged = [one for one in findings(check, subject, case, tally) if one.judged]
        return any(one.violated for one in judged) if judged and not tally.error else None

    def _is_right(self, case: Case, results: Results) -> bool:
        if isinstance(results, str):
            return False
        values = (values_of(self.subject, case, name, got) for name, got in results.items())
        return all(one.worst_error() < CLEARLY_WRONG for one in values)

    # -- cases -------------------------------------------------------------------------------------

    def _series(self) -> Iterator[_Calls]:
        """The calls of each new shape; two cases with different settings in both orders, each in a shape of its own."""
        place = 0
        for description in islice(self._descriptions(), _CASES_SLOW if self.subject.slow else _CASES):
            for variation, (first, other) in enumerate(self._pairs(self._in_new_shape(description, 0))):
                for order in (1, -1) if first.settings != other.settings else (1,):
                    pair = [*self._pairs(self._in_new_shape(description, place))][variation]
                    yield _Calls(*pair[::order])
                    place += 1

    def _descriptions(self) -> Iterator[Description]:
        """Small cases with every parameter, for which the target takes new shapes."""
        for one in quick_cases(self.maker.subject, FRESH_SEED):
            if one.only or one.mixed or one.large or one.n < 2:
                continue
            fit = fitted(tamed(one), self.subject.binding)
            if fit is None or not self.maker.library.case(fit).whole:
                continue
            if self._in_new_shape(fit, 0).x.shape != self._in_new_shape(fit, 1).x.shape:
                yield fit

    def _in_new_shape(self, description: Description, place: int) -> Case:
        """The case with a number of groups of its own for each place and dtype."""
        number = _LEAST_GROUPS + len(DTYPES) * place + [*DTYPES].index(self.subject.dtype)
        groups = tuple(islice(cycle(description.groups), number))
        sides = {"repeat": None, "leading": None, "features": None, "samples": None}
        made = attrs.evolve(description, groups=groups, **sides)  # type: ignore[arg-type]
        fit = fitted(made, self.subject.binding)
        return self.maker.library.case(made if fit is None else fit)

    def _pairs(self, case: Case) -> Iterator[tuple[Case, Case]]:
        """Pairs of the case and one that differs in settings, in a value near the start of x, or in a last value."""
        for other in other_settings(self.subject, case):
            yield case.replace(**{name: other.inputs[name] for name in affine_names(case)}), other
        for place in _PLACES:
            x = case.x.copy()
            x.reshape(-1)[place] = 3 if x.reshape(-1)[place] == 2 else 2
            yield case, case.replace(x=x)
        for name, value in case.inputs.items():
            if value is not None and value.size:
                yield case, case.replace(**{name: with_last_value_changed(value)})
