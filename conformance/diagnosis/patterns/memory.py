"""Memory: results that depend on earlier calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from ....reference.formats import FORMATS
from ...cases.case import Case
from ...checks.later_calls import different_values, with_last_value_changed
from ...judging.subject import Subject
from ...judging.verdicts import Result
from ..question import gradient_choices, results_if_any
from ..series import values_of
from .formula_steps import Array
from .lost_groups import lost_groups_in_words
from .observing import ObservedResult

#: Calls in a row. A slow target gets no such series.
_CALLS_IN_A_ROW = 48
#: Calls after which leftovers of other arguments are gone; what is kept for good is still there.
_CALLS_TO_SETTLE = 3
#: More times that a call is made after another one, and is wrong: of a race, one call is right by chance and one wrong.
_AGAIN = 3
#: Cases that are tried, and how many must say the same if the others say nothing.
_MOST_CASES, _MIN_AGREEING = 4, 2


def memory_in_words(subject: Subject, cases: Sequence[Case], shown: Sequence[Case] = ()) -> str:
    """
    How results depend on earlier calls; empty if they do not, or if nothing is known about it.

    ``shown``: the cases that show the violation. Only large calls may show it.
    """
    chosen = [case for case in cases if case.x.size > 1 and _differs(case)][:_MOST_CASES]
    chosen += [one for case in shown if case.x.size > 1 for one in (case, different_values(case))]
    if len(chosen) < _MIN_AGREEING:
        return ""
    for describe in (
        _wrong_from_some_call_on,
        _varies_from_call_to_call,
        _differs_between_calls,
        _depends_on_last_call,
        _taken_from_a_cache,
        _changed_for_good,
    ):
        found = [words for case in chosen if (words := describe(subject, case))]
        if len(found) >= _MIN_AGREEING and len(set(found)) == 1:
            given = _must_be_given(subject, chosen, shown) if describe in _OF_VARYING else ""
            return f"{found[0]}, where {given} is given" if given else found[0]
    return ""


def _must_be_given(subject: Subject, varying: Sequence[Case], shown: Sequence[Case]) -> str:
    """The parameter without which results of these cases no longer vary; empty if there is none, or if some do."""
    for name in ("gamma", "beta"):
        if any(one.inputs.get(name) is None for one in shown):
            continue
        without = [one.replace(**{name: None}) for one in varying if one.inputs.get(name) is not None]
        if len(without) >= _MIN_AGREEING and all(_is_steady(subject, one) for one in without):
            return name
    return ""


def _is_steady(subject: Subject, case: Case) -> bool:
    """Whether results of a case do not vary. A call that fails has none."""
    return bool(results_if_any(subject, case, gradients=False)) and _varying(subject, case) is None


def _differs(case: Case) -> bool:
    """Whether every input is given and differs in a later call: an input that is zero everywhere shows nothing."""
    pairs = [(value, different_values(case).inputs[name]) for name, value in case.inputs.items()]
    return all(value is not None and later is not None and not np.array_equal(value, later) for value, later in pairs)


def is_right(subject: Subject, case: Case, name: str, got: Array) -> bool:
    """Whether a result is right for its case."""
    exact, bound = subject.exact(case, name), subject.bound(case, name)(False)
    if exact is None or got.shape != exact.hi.shape:
        return False
    return bool((~np.isfinite(bound) | (np.abs(got.astype(np.float64) - exact.hi) <= 2 * bound)).all())


def _varies_from_call_to_call(subject: Subject, case: Case) -> str:
    """Which of many calls with the same arguments return something else, whatever was called before them."""
    found = _varying(subject, case)
    return "" if found is None else _series(found) + _lost_in(subject, case, found)


def _differs_between_calls(subject: Subject, case: Case) -> str:
    """The same, without which calls these are: that may be another series in each case."""
    found = _varying(subject, case)
    if found is None or not found.bad:
        return ""
    words = f"{found.name} differs between calls with the same arguments, and is wrong in some of them"
    return words + _lost_in(subject, case, found)


@attrs.frozen(eq=False)
class _Varying:
    """A result that varies between calls with the same arguments."""

    name: str
    values: Sequence[Array]
    #: The places of the calls that return it wrong.
    bad: Sequence[int]


def _varying(subject: Subject, case: Case) -> _Varying | None:
    """The first result that varies in many calls with the same arguments."""
    for gradients in gradient_choices(subject):
        for _ in range(_CALLS_TO_SETTLE):
            results_if_any(subject, case, gradients=gradients)
        series = [results_if_any(subject, case, gradients=gradients) for _ in range(_CALLS_IN_A_ROW)]
        for name in series[0]:
            values = [one[name] for one in series if name in one]
            if len(values) < len(series) or all(np.array_equal(values[0], one, equal_nan=True) for one in values):
                continue
            bad = [place for place, one in enumerate(values) if not is_right(subject, case, name, one)]
            return _Varying(name, values, bad)
    return None


def _lost_in(subject: Subject, case: Case, found: _Varying) -> str:
    """What the wrong ones are, if they are sums over some of the groups."""
    largest = FORMATS[subject.format].largest
    results = (
        ObservedResult(case, found.name, values_of(subject, case, found.name, found.values[place]), largest)
        for place in found.bad
    )
    words = lost_groups_in_words(results)
    return f"; {words}" if words else ""


def _wrong_from_some_call_on(subject: Subject, case: Case) -> str:
    """The call from which on a result is wrong, in a series with arguments that were not used before."""
    for gradients in gradient_choices(subject):
        series = [results_if_any(subject, case, gradients=gradients) for _ in range(_CALLS_IN_A_ROW)]
        for name in series[0]:
            right = [name in one and is_right(subject, case, name, one[name]) for one in series]
            first = right.index(False) if False in right else 0
            if first and not any(right[first:]):
                times = "once" if first == 1 else f"{first} times"
                what = "call" if not gradients else "backward pass"
                return (
                    f"{name} is right {times} where a {what} is repeated with the same arguments, "
                    f"and wrong from the {_ordinal(first + 1)} on"
                )
    return ""


#: The descriptions of results that vary.
_OF_VARYING = (_varies_from_call_to_call, _differs_between_calls)


def _series(found: _Varying) -> str:
    name, values, bad = found.name, found.values, found.bad
    if not bad:
        return f"the last bits of {name} change when the call is repeated; the error stays within what is allowed"
    zero = all(not np.any(values[place]) for place in bad)
    what = "zero" if zero else "wrong"
    gaps = np.diff(bad)
    if len(bad) > 2 and (gaps == gaps[0]).all() and gaps[0] > 1:
        which = _ordinal(int(gaps[0]))
        return f"of calls that are repeated with the same arguments, every {which} returns a {name} that is {what}"
    if len(bad) == len(values):
        return f"{name} is {what} in every call, and differs between calls with the same arguments"
    if bad == list(range(bad[0], len(values))):
        return f"{name} of a call that is repeated with the same arguments is right at first, and {what} later on"
    return f"{name} is {what} in some calls and right in others, with the same arguments"


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number // 10 != 1 else 0, "th")
    return {2: "second", 3: "third"}.get(number, f"{number}{ending}")


def _nonempty(case: Case) -> list[str]:
    """The inputs that have a value."""
    return [name for name, value in case.inputs.items() if value is not None and value.size]


def _depends_on_last_call(subject: Subject, case: Case) -> str:
    """Which input of the call before changes a result: that call differs in one input only."""
    later = different_values(case)
    for name in _nonempty(case):
        before = case.replace(**{name: later.inputs[name]})
        for gradients in gradient_choices(subject):
            for result, got in _wrong_after(subject, case, before, gradients=gradients).items():
                again = (_wrong_after(subject, case, before, gradients=gradients) for _ in range(_AGAIN))
                if not all(result in found for found in again):
                    continue
                if is_right(subject, before, result, got):
                    return f"{result} belongs to the {name} of the previous call, if the shapes are the same"
                return f"{result} is wrong after a call with the same shapes and another {name}, and right otherwise"
    return ""


def _wrong_after(subject: Subject, case: Case, before: Case, *, gradients: bool) -> dict[str, Array]:
    """The results of a case that are right in the second of two calls, and wrong right after another case."""
    results_if_any(subject, case, gradients=gradients)
    settled = results_if_any(subject, case, gradients=gradients)
    between = results_if_any(subject, before, gradients=gradients)
    after = results_if_any(subject, case, gradients=gradients)
    return {
        name: got
        for name, got in (after.items() if settled and between else ())
        if is_right(subject, case, name, settled[name]) and not is_right(subject, case, name, got)
    }


def _taken_from_a_cache(subject: Subject, case: Case) -> str:
    """Whether a right result is returned again for other arguments that differ only in the last value of an array."""
    for gradients in gradient_choices(subject):
        for name in _nonempty(case):
            later = case.replace(**{name: with_last_value_changed(case.given(name))})
            first, again = (results_if_any(subject, one, gradients=gradients) for one in (case, later))
            for result in first.keys() & again.keys():
                got = first[result]
                same = np.array_equal(got, again[result]) and is_right(subject, case, result, got)
                if same and not is_right(subject, later, result, got):
                    return (
                        "a call returns the result of an earlier call whose arguments differ only in the last value of"
                        " one array"
                    )
    return ""


def _changed_for_good(subject: Subject, case: Case) -> str:
    """Which call with other arguments changes a result for good: calls repeat themselves before it, and after it."""
    for name in _nonempty(case):
        for words, before in _calls_before(case, name):
            for gradients in gradient_choices(subject):
                *_, last, settled = (
                    results_if_any(subject, case, gradients=gradients) for _ in range(_CALLS_TO_SETTLE)
                )
                results_if_any(subject, before, gradients=gradients)
                after = [results_if_any(subject, case, gradients=gradients) for _ in range(_CALLS_TO_SETTLE)]
                for result, got in settled.items() if last and all(after) else ():
                    stays = np.array_equal(got, last[result], equal_nan=True)
                    if not stays or any(np.array_equal(got, one[result], equal_nan=True) for one in after):
                        continue
                    again = [results_if_any(subject, case, gradients=gradients).get(result) for _ in range(_AGAIN)]
                    now = after[-1][result]
                    if all(one is not None and np.array_equal(now, one, equal_nan=True) for one in again):
                        return f"{result} changes for good after a call with {words}: something of that call is kept"
    return ""


def differs_from_first_call(subject: Subject, violations: Sequence[Result]) -> str:
    """Whether calls that showed a violation give something else by now. Each is the only call of its check."""
    changed = []
    for shown in (one.counterexample for one in violations):
        call = None if shown is None else shown.call
        if shown is None or call is None or shown.got is None or len(shown.calls) != 1 or call.layouts:
            continue
        if call.does != "call" or shown.case is None or shown.output not in shown.case.record.outputs:
            continue
        case = attrs.evolve(shown.case, inputs=shown.arguments, settings=shown.settings)
        again = results_if_any(subject, case, gradients=False)
        if again and shown.envelope is not None:
            now = float(again[shown.output][shown.index])
            stays = (np.isnan(now) and np.isnan(shown.got)) or now == shown.got
            changed.append(not (stays or abs(now - shown.got) <= 2 * shown.envelope))
    if sum(changed) < _MIN_AGREEING or 2 * sum(changed) < len(changed):
        return ""
    return "a call gives something else than it gave with the same arguments before other calls were made"


def _calls_before(case: Case, name: str) -> Iterator[tuple[str, Case]]:
    """Calls to make first: with other values of an input, and with values as large and as small as squares allow."""
    value = case.given(name)
    yield f"another {name}", case.replace(**{name: different_values(case).inputs[name]})
    largest, limits = float(np.abs(value).max()), FORMATS[value.dtype.name]
    if not largest or not np.isfinite(largest):
        return
    most = limits.largest if value.dtype.itemsize == 2 else limits.largest**0.5
    for words, size in (("larger", most / 8 / value.size**0.5), ("smaller", 8 / most)):
        scaled = np.ldexp(value.astype(np.float64), int(np.floor(np.log2(size / largest))))
        yield f"a much {words} {name}", case.replace(**{name: scaled.astype(value.dtype)})
