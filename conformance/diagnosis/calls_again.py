"""Calls that show violations, made again: alone, after others, or with other values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import attrs
import numpy as np

from ...spec.errors import CALL_FAILED
from ..cases.case import Case
from ..cases.description import Description
from ..checks.later_calls import different_values, with_last_value_changed
from ..engine.modes import quick_cases
from ..judging.call_log import LoggedCall
from ..judging.library import fitted
from ..judging.subject import Subject
from ..judging.truth import owner_of
from ..judging.verdicts import Counterexample, Result
from .chosen_cases import evenly_spread
from .question import Question

#: Stands for NaN and infinity: the smallest cases are of 0, 1 and -1, of which one value more may make a group that has
#: the mean 0 and the variance 1 already.
_PLAIN = 3

#: Times a slow call is repeated to see whether it gives the same.
_REPEATED_SLOW = 1

#: About how many other cases are looked at.
_OTHER_CASES = 8


@attrs.frozen
class CallsAgain:
    """The calls of one subject that show its violations, made again."""

    subject: Subject

    def case_of(self, shown: Counterexample, call: LoggedCall | None = None, g: np.ndarray | None = None) -> Case:
        """The case of the call that shows a violation, or of another call of its check, with a cotangent of its own."""
        inputs, settings = (shown.arguments, shown.settings) if call is None else (call.inputs, call.settings)
        g = shown.inputs["g"] if g is None else g
        assert g is not None
        return Case(self.subject.operator, inputs, settings, g, parts=shown.parts)

    def is_wrong_in_inference(self, shown: Counterexample) -> bool:
        """Whether y of a call in inference mode is wrong once its inputs have neither NaN nor infinity."""
        if shown.failure or not is_in_inference(shown):
            return False
        case = self.case_of(shown)
        given = {name: value for name, value in case.inputs.items() if value is not None}
        plain = case.replace(
            **{name: np.where(np.isfinite(value), value, _PLAIN).astype(value.dtype) for name, value in given.items()}
        )
        try:
            y = self.subject.outputs(plain, "inference")["y"]
        except CALL_FAILED:
            return False
        return self.subject.judge_output(plain, "y", y, note="in inference mode").violated

    def is_right_after_another(self, result: Result) -> bool:
        """Whether all calls that show a violation, and their gradients, are right after a call with other values."""
        shown = result.counterexample
        if shown is None:
            return False
        asked = {id(one.inputs): one for one in shown.calls if one.inputs}
        for ask in asked.values():
            case = self.case_of(shown, ask, ask.g)
            for derivative in (False, True) if any(one.does != "call" for one in shown.calls) else (False,):
                with contextlib.suppress(*CALL_FAILED):
                    before = different_values(case)
                    self.subject.results(before, gradients=derivative)
                answer = Question(case, result.violated_on, derivative=derivative).answered_by(self.subject)
                if answer.words or any(one.worst_error() > 1 for one in answer.values.values()):
                    return False
        return bool(asked)

    def is_wrong_alone(self, result: Result, *, gradients: bool) -> bool:
        """Whether one of the calls that show a violation is wrong by itself, by more than the law may be broken by."""
        shown = result.counterexample
        if shown is None or (shown.envelope == 0 and not self._exceeds_both_envelopes(shown)):
            return False
        for ask in shown.calls:
            if ask.does in (("vjp",) if gradients else ("call", "vjp")):
                asked = shown.calls[ask.of] if ask.of is not None else ask
                case = self.case_of(shown, asked, ask.g)
                answer = Question(case, result.violated_on, derivative=gradients).answered_by(self.subject)
                if any(value.worst_error() > 1 for value in answer.values.values()):
                    return True
        return False

    def _exceeds_both_envelopes(self, shown: Counterexample) -> bool:
        """Whether two sides that must have the same bits are farther apart than the envelopes of both."""
        if shown.expected is None or shown.got is None:
            return False
        case = self.case_of(shown)
        like = case.inputs.get(owner_of(shown.output))
        if like is None:
            return False
        bound = self.subject.bound(case, shown.output)(False)
        return not abs(shown.got - shown.expected) <= 2 * float(np.broadcast_to(bound, like.shape)[shown.index])

    def repeat_themselves(self, shown: Counterexample) -> bool:
        """
        Whether the wrong value belongs to its call, whatever was called before: its bits stay, even after a call with
        other values, and they were not kept from an earlier call with other arguments.
        """
        if shown.got is None:  # the call raised
            return False
        case, name = self.case_of(shown), shown.output
        of_outputs = name in case.record.outputs
        calls = self.subject.repeated_outputs if of_outputs else self.subject.repeated_gradients
        self.subject.target.begin()
        try:
            (first,), _ = calls(case, 1), calls(different_values(case), 1)
            others = calls(case, _REPEATED_SLOW if self.subject.always_slow else self.subject.repetitions(case))
            before = [(one, calls(one, 1)[0][name]) for one in self._last_other_call(shown)]
        except CALL_FAILED:
            return False
        if float(first[name][shown.index]) != shown.got:
            return False
        alike = all(np.array_equal(first[name], one[name], equal_nan=True) for one in others)
        as_before = [one for one, found in before if np.array_equal(first[name], found, equal_nan=True)]
        return alike and not any(self._is_kept_from(case, one, name) for one in as_before)

    def _is_kept_from(self, case: Case, before: Case, name: str) -> bool:
        """
        Whether a result that two calls share was kept from the first of them.

        A wrong formula may give the same for both, for example if it looks at few values only. So the inputs that
        differ between the two are changed in the same way in other cases. Such a formula tells some of those apart.
        """
        moved = [one for one, value in case.inputs.items() if not _same_array(value, before.inputs[one])]
        gradients = name not in case.record.outputs
        for fresh in self.other_cases():
            given = {one: value for one in moved if (value := fresh.inputs.get(one)) is not None and value.size}
            if len(given) < len(moved) or (gradients and owner_of(name) not in fresh.inputs):
                continue
            self.subject.target.begin()
            with contextlib.suppress(*CALL_FAILED):
                other = fresh.replace(**{one: with_last_value_changed(value) for one, value in given.items()})
                first, later = (self.subject.results(one, gradients=gradients)[name] for one in (fresh, other))
                if not np.array_equal(first, later, equal_nan=True):
                    return False
        return True

    def _last_other_call(self, shown: Counterexample) -> list[Case]:
        """The last call before the violation that had other arguments, as a case; an empty list if there is none."""
        asked, inputs = shown.calls[: shown.shown_by or 0], self.case_of(shown).inputs
        found = [one for one in asked if not _same_inputs(one.inputs, inputs)]
        return [self.case_of(shown, one) for one in found[-1:]]

    def is_same_with_variance(self, shown: Counterexample) -> bool:
        """
        Whether the value is just as wrong once each group has a variance. A missing variance is then not the reason.
        """
        case, name = self.case_of(shown), shown.output
        rows = case.layout.rows(case.x).copy()
        rows[np.ptp(rows.astype(np.float64), axis=1) == 0] = np.arange(rows.shape[1])
        varied = case.replace(x=case.layout.back(rows))
        self.subject.target.begin()
        try:
            found = self.subject.results(varied, gradients=name not in case.record.outputs)
        except CALL_FAILED:
            return False
        bound = np.broadcast_to(self.subject.bound(case, name)(False), case.x.shape)[shown.index]
        return shown.got is not None and abs(float(found[name][shown.index]) - shown.got) <= 2 * float(bound)

    def other_descriptions(self) -> Sequence[Description]:
        """The descriptions of a few cases other than those that show violations."""
        cases = [
            one for one in quick_cases(self.subject) if not one.mixed and one.n and "CM-S1" not in one.requirements
        ]
        return evenly_spread(cases, _OTHER_CASES)

    def other_cases(self) -> Iterator[Case]:
        """These cases, in the form that the target takes."""
        for description in self.other_descriptions():
            fit = fitted(description, self.subject.binding)
            if fit is not None:
                yield self.subject.new_library().fresh(fit)


def is_in_inference(shown: Counterexample | None) -> bool:
    """Whether the call that shows a violation was made in inference mode."""
    return shown is not None and shown.call is not None and shown.call.mode == "inference"


def _same_inputs(some: Mapping[str, np.ndarray | None], others: Mapping[str, np.ndarray | None]) -> bool:
    """Whether inputs are the same numbers."""
    return all(_same_array(some.get(name), value) for name, value in others.items())


def _same_array(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    return one is None or other is None or np.array_equal(one, other, equal_nan=True)
