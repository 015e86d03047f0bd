"""Later calls: cases that differ from the case of the call before, and whether their results show that call."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, product

import numpy as np

from ...adapters.same_bits import same_bits
from ...spec.errors import CALL_FAILED, BadOutput, TargetRaised, Unsupported
from ..cases.case import Case
from ..judging.findings import Finding, compare
from ..judging.subject import Subject
from ..judging.translated import one_plus
from .derived import affine_names, parameter_names
from .relations import sum_of


def different_values(case: Case) -> Case:
    """A case of the same shapes with other values, as a later call may have."""
    inputs = {name: value for name, value in case.inputs.items() if value is not None}
    moved = {
        name: np.roll(value, 1) if name == "running_var" else (np.roll(value, 1) * -2).astype(value.dtype)
        for name, value in inputs.items()
    }
    if "gamma" in moved:  # gamma - 1 stays exact, for targets that take it
        moved["gamma"] = one_plus(moved["gamma"])
    return case.replace(g=np.roll(case.g, 1), **moved)


def with_last_value_changed(given: np.ndarray) -> np.ndarray:
    """An input with another number in its last place."""
    value = given.copy()
    value.reshape(-1)[-1] = 3 if value.reshape(-1)[-1] == 2 else 2  # exact in every dtype; positive, as a variance is
    return value


def _is_large(case: Case) -> bool:
    """Whether only what may depend on the size is tried on a case: its exact results take long."""
    return "CM-S1" in case.requirements


#: An eps that shows with variances of about 1, in every dtype; and one in its place where it is given already.
_EPS, _OTHER_EPS = 2.0**-2, 2.0**-10


def other_settings(subject: Subject, case: Case) -> Iterator[Case]:
    """
    The case with other settings.

    First those whose effects can be told apart in one call, then one at a time those that select other code.
    """
    given, shape = case.settings, case.x.shape
    later: dict[str, float] = {}
    if "eps" in given:
        later["eps"] = _OTHER_EPS if given["eps"] == _EPS else _EPS
    if "momentum" in given:
        later["momentum"] = 0.25 if given["momentum"] == 0.5 else 0.5
    if later:
        yield case.replace(**later)
    if _is_large(case):
        return
    if (flipped := subject.in_other_mode(case)) is not None:
        yield flipped
    if "groups" in given:
        channels = shape[given["channel_axis"]]
        others = (k for k in range(channels, 0, -1) if channels % k == 0 and k != given["groups"])
        yield from (case.replace(groups=k) for k in islice(others, 1))
    # Without parameters, whose shapes would tell the two calls apart; then nothing is mixed.
    if "axes" in given and len(shape) > 1 and not case.mixed:
        axes = (-1,) if len(given["axes"]) > 1 else (-2, -1)
        yield case.replace(axes=axes, **dict.fromkeys(affine_names(case)))


def settings_changed(subject: Subject, case: Case) -> Iterator[Finding]:
    """Judge calls with the same tensors and other settings than the call before, and the first call after them."""
    for later in other_settings(subject, case):
        changed_ones = [name for name, value in later.settings.items() if value != case.settings[name]]
        first = case.replace(**{name: later.inputs[name] for name in affine_names(case)})
        calls = [partial(subject.outputs, one) for one in (first, later, first)]
        pulls = _pulls(subject, first, later)
        note = f"{', '.join(changed_ones)} changed since the last call"
        try:
            subject.prefetch(case, [*calls, *pulls])
            found = [call() for call in calls]
        except (Unsupported, TargetRaised, BadOutput):  # CM-T1 says so where it must not
            continue
        for one, outputs in ((later, found[1]), (first, found[2])):
            yield from _last_outputs(subject, first, one, outputs, note)
        yield from _last_gradients(subject, first, later, pulls, note)


def one_value_changed(subject: Subject, case: Case) -> Iterator[Finding]:
    """
    Judge calls that differ from the previous call only in the last value of one input.

    A target that compares only a few values misses this. In the other mode of batch_norm, only the running statistics
    change: the rest is used in both.
    """
    yield from _last_value_changed(subject, case, ["x"] if _is_large(case) else [*case.inputs])
    yield from _order_changed(subject, case)
    if not _is_large(case) and (flipped := subject.in_other_mode(case)) is not None:
        with contextlib.suppress(TargetRaised, BadOutput):  # CM-T1 says so where it must not
            yield from _last_value_changed(subject, flipped, ["running_mean", "running_var"])


def _last_value_changed(subject: Subject, case: Case, names: Sequence[str]) -> Iterator[Finding]:
    for name in names:
        given = case.inputs[name]
        if given is None or not given.size:
            continue
        later = case.replace(**{name: with_last_value_changed(given)})
        note = f"the last value of {name} changed since the last call"
        calls = [partial(subject.outputs, one) for one in (case, later)]
        pulls = _pulls(subject, case, later)
        subject.prefetch(case, [*calls, *pulls])
        _, outputs = (call() for call in calls)
        yield from _last_outputs(subject, case, later, outputs, note)
        yield from _last_gradients(subject, case, later, pulls, note)


def _with_two_exchanged(case: Case) -> np.ndarray:
    """x with two values of neighbouring groups exchanged, near the middle; one group in reversed order."""
    rows = case.layout.rows(case.x).copy()
    here = len(rows) // 2
    differ = np.flatnonzero(rows[here - 1] != rows[here])
    if differ.size:
        at = differ[np.argmin(np.abs(differ - rows.shape[1] // 2))]
        rows[[here - 1, here], at] = rows[[here, here - 1], at]
    else:  # one group, or two equal ones
        rows[here] = rows[here, ::-1].copy()
    return case.layout.back(rows)


def _order_changed(subject: Subject, case: Case) -> Iterator[Finding]:
    """
    Judge a call with two values of x exchanged.

    x then has the same sum, sum of squares, and first and last values, by which code may take it for the last call's.
    """
    later = case.replace(x=_with_two_exchanged(case))
    calls = [partial(subject.outputs, one) for one in (case, later)]
    subject.prefetch(case, calls)
    _, outputs = (call() for call in calls)
    yield from _last_outputs(subject, case, later, outputs, "the order of x's values changed since the last call")


def _last_outputs(
    subject: Subject, first: Case, later: Case, outputs: Mapping[str, np.ndarray], note: str
) -> Iterator[Finding]:
    """Judge the outputs of a call after a call of a first case."""

    return _after_first_call(
        subject, subject.judge_output, lambda case: subject.observe(case).outputs, first, later, outputs, note
    )


def _after_first_call(
    subject: Subject,
    judge: Callable[..., Finding],
    alone: Callable[[Case], Mapping[str, np.ndarray]],
    first: Case,
    later: Case,
    results: Mapping[str, np.ndarray],
    note: str,
) -> Iterator[Finding]:
    """
    Judge results of a later case after a call of a first one; ``alone`` gives the results of a case by itself.

    The formula judges what has nothing to do with the first call: the first was wrong already, or a case of other
    values is, and the later case gives the same by itself, which is not what another case with another right result
    gave.
    """
    for name, got in results.items():
        found = judge(later, name, got, note=note)
        if found.violated and name in alone(first):
            before = alone(first)[name]
            alike = same_bits(got, alone(later)[name]) and not _may_be_kept(subject, first, later, name, got, before)
            if alike and (judge(first, name, before).violated or _is_wrong_anyway(judge, alone, later, name)):
                continue
        yield found


def _is_wrong_anyway(
    judge: Callable[..., Finding], alone: Callable[[Case], Mapping[str, np.ndarray]], later: Case, name: str
) -> bool:
    """Whether a case with the settings of a later one is wrong too, though it has no value in common with the first."""
    other = different_values(later)
    with contextlib.suppress(*CALL_FAILED):
        return judge(other, name, alone(other)[name]).violated
    return False


def _may_be_kept(subject: Subject, first: Case, later: Case, name: str, got: np.ndarray, before: np.ndarray) -> bool:
    """Whether a wrong result of a later case is what a first case gave, where the right results are not the same."""
    if later is first or not same_bits(got, before):
        return False
    right, right_later = (subject.exact(one, name) for one in (first, later))
    if right is None or right_later is None:
        return True
    bound = sum_of(subject.bound(first, name), subject.bound(later, name))(False)
    return compare(right.hi, right_later, bound).ratio > 1


def _pulls(subject: Subject, first: Case, later: Case) -> list[Callable[[], dict[str, np.ndarray]]]:
    """The calls for the gradients of two cases, one after the other; none if the target has no gradients."""
    return [] if subject.forward_only else [partial(subject.pull, one) for one in (first, later)]


def _last_gradients(
    subject: Subject, first: Case, later: Case, pulls: Sequence[Callable[[], dict[str, np.ndarray]]], note: str
) -> Iterator[Finding]:
    """Judge the gradients of the last of these calls, which follows a call of a first case."""
    try:
        gradients = [pull() for pull in pulls]
    except Unsupported:
        return
    except (TargetRaised, BadOutput):
        try:
            for one in (different_values(later), later):
                subject.pull(one)
        except CALL_FAILED:  # it fails after a call of other values too, which is no memory
            return
        raise
    if gradients:
        yield from _after_first_call(
            subject,
            subject.judge_gradient,
            lambda case: subject.observe(case).gradients,
            first,
            later,
            gradients[-1],
            note,
        )


#: Whether the second call's tensors are new objects -> the note of its findings.
_REUSED_MEMORY = {
    False: "every tensor was overwritten in place since the last call",
    True: "new tensors lie where those of the last call lay",
}


#: The mode of a call without gradients -> the end of the note.
_WHERE = {"training": "", "inference": ", in inference mode"}


def memory_used_again(subject: Subject, case: Case) -> Iterator[Finding]:
    """Judge calls with other values in the last call's tensors, or in its memory: the old values must not show."""
    yield from _values_replaced(subject, case)
    if _is_large(case):
        return
    yield from _parameters_replaced(subject, case)
    if (flipped := subject.in_other_mode(case)) is not None:
        with contextlib.suppress(TargetRaised, BadOutput):  # CM-T1 says so where it must not
            yield from _values_replaced(subject, flipped)
            yield from _parameters_replaced(subject, flipped)


def _values_replaced(subject: Subject, case: Case) -> Iterator[Finding]:
    later = different_values(case)
    # A cache that is meant for inference is kept only where nothing is tracked.
    in_both_ways = (False,) if subject.forward_only else (True, False)
    for tracked, (fresh, note) in product(in_both_ways, _REUSED_MEMORY.items()):
        try:
            outputs, gradients = subject.recall(case, later, fresh=fresh, tracked=tracked)
        except Unsupported:  # the target's tensors cannot be written in place
            return
        where_called = "" if tracked else _WHERE[subject.modes(case)[-1]]
        yield from _found_on_used_memory(subject, case, later, outputs, note + where_called, tracked=tracked)
        yield from _gradients_on_used_memory(subject, case, later, gradients, note)


def _parameters_replaced(subject: Subject, case: Case) -> Iterator[Finding]:
    """Judge calls with one parameter overwritten: what is computed from it may be kept under another tensor."""
    later = different_values(case)
    for name in parameter_names(case):
        alone = case.replace(**{name: later.inputs[name]})
        note = f"{name} alone was overwritten in place since the last call{_WHERE[subject.modes(case)[-1]]}"
        if alone.inputs[name] is not None:
            try:
                outputs, _ = subject.recall(case, alone, fresh=False, tracked=False)
            except Unsupported:
                return
            yield from _found_on_used_memory(subject, case, alone, outputs, note, tracked=False)


def _found_on_used_memory(
    subject: Subject, first: Case, later: Case, outputs: Mapping[str, np.ndarray], note: str, *, tracked: bool
) -> Iterator[Finding]:
    """
    Judge outputs of a later case in the memory of a first one.

    Where the same call on memory of its own is as wrong, CM-P6 or the formula judges that. But code that kept something
    of the first case may be wrong there too: then it returns what the first case gave.
    """
    for name, got in outputs.items():
        found = subject.judge_output(later, name, got, note=note)
        if found.violated:
            alone, before = (
                (observed.started if tracked else observed.untracked)[name]
                for observed in map(subject.observe, (later, first))
            )
            if same_bits(got, alone) and not _may_be_kept(subject, first, later, name, got, before):
                continue
        yield found


def _gradients_on_used_memory(
    subject: Subject, first: Case, later: Case, gradients: Mapping[str, np.ndarray], note: str
) -> Iterator[Finding]:
    """Judge gradients of a later case in the memory of a first one, as its outputs are."""
    for name, got in gradients.items():
        found = subject.judge_gradient(later, name, got, note=note)
        if found.violated:
            alone, before = (subject.observe(one).gradients[name] for one in (later, first))
            if same_bits(got, alone) and not _may_be_kept(subject, first, later, name, got, before):
                continue
        yield found
