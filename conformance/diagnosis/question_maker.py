"""Questions to a target in the search for its mistake: cases that show a violation, and others that do not."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import cycle, islice
from typing import Any

import attrs
import numpy as np

from ...spec.errors import CALL_FAILED
from ...spec.identifiers import kind_of
from ..cases.case import Case
from ..cases.description import NEGLIGIBLE_EPS, Description
from ..cases.sizes import extents, sized
from ..checks.later_calls import different_values
from ..checks.registry import COSTLY, Check
from ..engine.folding import priority
from ..engine.modes import checks_on, in_shapes_of, quick_cases
from ..judging.library import Library, fitted
from ..judging.subject import Subject
from ..judging.verdicts import Result
from .chosen_cases import FRESH_SEED, evenly_spread, of_every_kind
from .contrasts import with_another_form, with_cotangents_apart, with_new_statistics
from .extremes import is_extreme, tamed
from .question import Question, call_first, gradient_choices

#: Cases besides the violated ones on which a name must hold, and the same for a slow target. With the questions about
#: the candidates' own violations, a slow target is called some thirty times.
_FRESH_CASES, _FRESH_CASES_SLOW = 16, 4

#: For a slow target: the most violated requirements whose checks are asked, the most telling first; then the most cases
#: of violations whose values and gradients are asked.
_CHECKS_SLOW, _PLAIN_SLOW = 4, 3

#: Fresh cases for each violated check.
_FRESH_CHECKS = 2
#: Cases with an x of zeros: a composed operator has one whose parts read x, and one whose parts return something else.
_OF_ZEROS = 2

#: Cases of the deck that are searched for a violation that tells as much as the shown one, or more.
_OTHER_CASES = 24
#: Groups of each of its kinds in one further case.
_GROUPS_OF_A_KIND = 8

#: Kinds of groups in which most mistakes of a formula show by much.
_CLEAR_KINDS = ("normal", "one_hot", "edges")

#: Requirements violated by a function that remembers something of earlier calls.
_ABOUT_MEMORY = frozenset({"CM-P2", "CM-P3", "CM-P4", "CM-P5"})

#: Sizes around the limits of blocks, and between them.
_SIZES = (
    *range(15, 22), 31, 32, 33, 47, *range(63, 69), 97, 127, 128, 129, 130, 191, *range(255, 260), 300, 400,
    *range(511, 516), 700, 1000, *range(1023, 1028), 1500, 2047, 2048, 2049, 2500, 4095, 4096, 4097, 4101,
)  # fmt: skip

#: x is scaled by a new multiple of 1 / _FACTORS for each question: more than the last digit of any dtype.
_FACTORS = 64

#: What leaves the shape of a case to its groups.
ITS_OWN_SIDES: Mapping[str, Any] = {"repeat": None, "leading": None, "features": None, "samples": None, "width": None}

#: Size and number of the groups in the case that is called first; then the number of cases for repeated calls.
_PRECEDING_SIZE, _CASES_TO_REPEAT = 13, 3


@attrs.frozen(slots=False)
class QuestionMaker:
    """The questions about one subject, each made once."""

    subject: Subject
    library: Library
    #: The violations of MUST requirements.
    violations: Sequence[Result]
    #: By values of x, how many questions to a function that remembers have used them.
    _uses: Counter[tuple[tuple[int, ...], bytes]] = attrs.field(factory=Counter)

    @cached_property
    def checks(self) -> Mapping[str, Check]:
        """Every check of the operator by its requirement."""
        return {check.requirement: check for check in checks_on(self.subject)}

    @cached_property
    def preceded_by(self) -> Case | None:
        """
        The call before every question to a function whose results depend on earlier calls; None for others.

        All functions with the same mistake then remember the same.
        """
        return self.preceding_case if self._remembers() else None

    def _remembers(self) -> bool:
        if self.subject.always_slow or self.preceding_case is None:
            return False
        if any(one.requirement in _ABOUT_MEMORY for one in self.violations):
            return True
        for result in self.violations:
            fit = None if result.violated_on is None else fitted(result.violated_on, self.subject.binding)
            case = None if fit is None else self.library.case(fit)
            if case is not None and not case.bulky and len({*self._outputs_after_two_calls(case)}) > 1:
                return True
        return False

    def _outputs_after_two_calls(self, case: Case) -> Iterator[bytes]:
        """The outputs of a case after each of two calls with other values."""
        assert self.preceding_case is not None
        for before in (self.preceding_case, different_values(self.preceding_case)):
            self.subject.target.begin()
            call_first(self.subject, before)
            with contextlib.suppress(*CALL_FAILED):
                yield b"".join(value.tobytes() for value in self.subject.outputs(case).values())

    @cached_property
    def preceding_case(self) -> Case | None:
        """
        A case whose shape no question has, with every parameter; None if no such case exists.

        It has as many groups as values in each, because some parameters are as long as a group, and others have one
        value per group.
        """
        for description in self._deck():
            if description.n == _PRECEDING_SIZE:
                continue
            groups = tuple(islice(cycle(description.groups), _PRECEDING_SIZE))
            case = self.whole_case(
                attrs.evolve(description, n=_PRECEDING_SIZE, groups=groups, requirements=frozenset(), **ITS_OWN_SIDES)
            )
            if case is not None:
                return case
        return None

    def whole_case(self, description: Description) -> Case | None:
        """The case of a description; None if the target cannot take it, or if it lacks a parameter."""
        fit = fitted(description, self.subject.binding)
        case = None if fit is None else self.library.case(fit)
        return case if case is not None and case.whole else None

    def question(
        self, description: Description, check: Check | None = None, *, derivative: bool = False
    ) -> Question | None:
        """
        A question about the case of a description; None if the target cannot take the case or the check does not apply.
        """
        fit = fitted(description, self.subject.binding)
        if fit is None:
            return None
        case = self.library.case(fit) if self.preceded_by is None else self._with_new_values(fit)
        before = self.preceded_by
        if check is not None:
            derivative = is_about_derivatives(check)
            return Question(case, fit, check, derivative, preceded_by=before) if check.when(case) else None
        bessel = self.subject.conventions.get("running_variance") == "bessel"
        ignored = "new_running_var" if bessel else ""
        return None if case.bulky else Question(case, fit, None, derivative, ignored, before)

    def _with_new_values(self, fit: Description) -> Case:
        """
        The case with new values of x each time, so that a result kept for old values does not match.

        One factor scales all values. A zero becomes as small as the smallest value, so that a group that is constant
        apart from a few values stays so.
        """
        case = self.library.case(fit)
        values = case.x.shape, case.x.tobytes()  # two cases may have the same values
        self._uses[values] += 1
        part, wide = self._uses[values] / _FACTORS, case.x.astype(np.float64)
        smallest = np.abs(wide).min(where=wide != 0, initial=1.0)
        return case.replace(x=np.where(wide == 0, part * smallest, wide / (1 + part)).astype(case.x.dtype))

    def on_other_cases(self, question: Question) -> Iterator[Question]:
        """
        The same check on the same case with other groups, with more groups of its kinds, and on cases of the deck.

        A case that was simplified shows little. A mistake at one size alone, or in groups of one kind, shows in few
        cases of the deck.
        """
        shown = question.description
        regrouped = [
            attrs.evolve(shown, groups=tuple((name, at) for at, _ in enumerate(shown.groups))) for name in _CLEAR_KINDS
        ]
        if not shown.large:
            kinds = tuple((name, at) for name, _ in dict.fromkeys(shown.groups) for at in range(_GROUPS_OF_A_KIND))
            regrouped.append(attrs.evolve(shown, groups=kinds, repeat=None, leading=None, samples=None))
        deck = self._deck(mixed=shown.mixed)
        for some in (deck, in_shapes_of(self.subject, regrouped)):
            made = (self.question(one, question.check) for one in some if one != shown)
            yield from islice((one for one in made if one is not None), _OTHER_CASES)

    def violated_checks_to_ask(self) -> dict[str, Question]:
        """The violated checks that the target is asked again, each on the case that shows the violation."""
        if not self.subject.always_slow:
            return self.violated_checks
        cheap = sorted((name for name in self.violated_checks if name not in COSTLY), key=priority)
        few = [name for name in cheap if kind_of(name) != "L"] or cheap  # a law may take thirty calls
        return {name: question for name, question in self.violated_checks.items() if name in few[:_CHECKS_SLOW]}

    @cached_property
    def violated_checks(self) -> dict[str, Question]:
        """Each violated requirement's check, on the case that shows it."""
        found: dict[str, Question] = {}
        for result in self.violations:
            if result.violated_on is not None:
                question = self.question(result.violated_on, self.checks[result.requirement])
                if question is not None:
                    found[result.requirement] = question
        return found

    @cached_property
    def plain_questions(self) -> list[Question]:
        """
        The outputs and gradients of the cases that show violations.

        Extreme groups are included only if no other case shows a violation: what a wrong formula gives there says
        little about it.
        """
        slow, violations = self.subject.always_slow, self.violations
        if slow:
            violations = sorted(violations, key=lambda one: priority(one.requirement))
        shown = [one.violated_on for one in violations if one.violated_on is not None]
        some = dict.fromkeys([one for one in shown if not is_extreme(one)] or shown)
        return self._plain_questions_on([*some][: _PLAIN_SLOW if slow else None])

    @cached_property
    def fresh_questions(self) -> list[Question]:
        """The questions of `new_fresh_questions`, made once."""
        return self.new_fresh_questions()

    def new_fresh_questions(self) -> list[Question]:
        """
        The outputs and gradients of cases that were not chosen for a violation.

        Groups of one value are included because they tell divisors apart, and an x of zeros because it tells what is
        done there from what is done for small results of a part. Large cases (sizes) and extreme groups are not.
        """
        plain = [tamed(one) for one in self._deck() if one.n and one.count_of_groups and not one.large]
        slow = self.subject.always_slow
        some = evenly_spread(plain, _FRESH_CASES_SLOW) if slow else of_every_kind(plain, _FRESH_CASES)
        single = (one for one in plain if one.n == 1)
        zeros = (one for one in plain if not slow and set(one.groups) == {("constant", 0)})
        return self._plain_questions_on([*some, *islice(single, 1), *islice(zeros, _OF_ZEROS)])

    def fresh_checks_of(self, requirement: str) -> Iterator[Question]:
        """The check of a requirement, on cases that were not chosen for it."""
        made = (self.question(one, self.checks[requirement]) for one in quick_cases(self.subject, FRESH_SEED))
        yield from islice((one for one in made if one is not None), _FRESH_CHECKS)

    @cached_property
    def size_questions(self) -> list[Question]:
        """
        The outputs and gradients with one extent after the other at sizes around the limits of blocks.

        A mistake that shows only without a parameter, or only near eps, shows at no size of the sweep. So each size is
        asked with the parameters, eps and groups of the case that shows the violation, too.
        """
        sizes = [
            (extent, size) for extent in extents(self.subject.operator) for size in _SIZES if size <= extent.largest
        ]
        swept = [sized(self.subject.operator, extent, size) for extent, size in sizes]
        shown = self.violated_checks.get("CM-S1")
        if shown is None or _is_of_sweep(shown.description):
            return self._plain_questions_on(swept)
        return self._plain_questions_on([*swept, *(_with_contents_of(shown.description, one) for one in swept)])

    @cached_property
    def shape_questions(self) -> list[Question]:
        """The outputs and gradients of one case of the deck for each rank, place of the channels and number of axes."""
        shapes: dict[tuple[int, ...], Description] = {}
        for one in self._deck():
            if one.n and one.count_of_groups and not one.large:
                dimensions = len(one.features or (one.n,)), 1 if one.leading is None else len(one.leading)
                shapes.setdefault((*dimensions, one.rank, one.channel_axis), tamed(one))
        return self._plain_questions_on(shapes.values())

    @cached_property
    def contrasting_questions(self) -> list[Question]:
        """
        Questions on cases that differ from those that show violations in one condition that a mistake may have.

        A case that was simplified satisfies many conditions at once: no gamma and several axes, a running mean of 0
        beside a variance of 1, or a small cotangent in its one group.
        """
        found = [
            self.question(other, question.check)
            for name, question in self.violated_checks.items()
            for other in (
                () if name in COSTLY else in_shapes_of(self.subject, [*with_another_form(question.description)])
            )
        ]
        shown = dict.fromkeys(question.description for question in self.violated_checks.values())
        if self.subject.binding.record.has_modes:
            for description in shown:
                found += self._on_changed_case(description, with_new_statistics, gradient_choices(self.subject))
        if self.subject.binding.record.normalises and not self.subject.forward_only:
            for description in islice(shown, 1):
                two = attrs.evolve(description, groups=(("normal", 0), ("normal", 1)), **ITS_OWN_SIDES)
                for one in in_shapes_of(self.subject, [two]):
                    found += self._on_changed_case(one, with_cotangents_apart, (True,))
        return [one for one in found if one is not None]

    def _on_changed_case(
        self, description: Description, changed: Callable[[Case], Iterable[Case]], derivatives: Iterable[bool]
    ) -> Iterator[Question]:
        """The outputs or gradients of a case with other values."""
        for derivative in derivatives:
            asked = self.question(description, derivative=derivative)
            if asked is not None:
                yield from (attrs.evolve(asked, case=case) for case in changed(asked.case))

    def cases_to_repeat(self) -> list[Case]:
        """Small cases for repeated calls, with every parameter."""
        plain = (one for one in quick_cases(self.subject, FRESH_SEED) if not (one.only or one.mixed))
        whole = (self.whole_case(one) for one in plain)
        return [*islice((one for one in whole if one is not None and one.x.size > _PRECEDING_SIZE), _CASES_TO_REPEAT)]

    def _deck(self, *, mixed: bool = False) -> list[Description]:
        return [one for one in quick_cases(self.subject) if one.mixed == mixed]

    def _plain_questions_on(self, descriptions: Iterable[Description]) -> list[Question]:
        descriptions = tuple(dict.fromkeys(descriptions))
        made = (
            self.question(description, derivative=derivative)
            for derivative in gradient_choices(self.subject)
            for description in descriptions
        )
        return [one for one in made if one is not None]


def _is_of_sweep(description: Description) -> bool:
    """Whether a case has what every case of the sweep of sizes has: both parameters, and an eps that does not show."""
    return "none" not in (description.gamma, description.beta) and description.eps == NEGLIGIBLE_EPS


def _with_contents_of(shown: Description, swept: Description) -> Description:
    """A case of this size, with the parameters and eps of the one shown, and as many groups of its kinds as it has."""
    groups = tuple(islice(cycle(shown.groups), len(swept.groups)))
    return attrs.evolve(swept, gamma=shown.gamma, beta=shown.beta, eps=shown.eps, groups=groups)


def is_about_derivatives(check: Check) -> bool:
    """Whether a check is about derivatives. CM-P6 takes some, but is about what the call returns."""
    return (check.gradient and check.requirement != "CM-P6") or kind_of(check.requirement) == "G"
