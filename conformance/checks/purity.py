"""Purity: a call changes nothing, remembers nothing, and gives the same result again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, product

import attrs
import numpy as np

from ...adapters.layouts import why_not
from ...adapters.same_bits import same_bits
from ...adapters.session import Evaluation
from ...spec.errors import CALL_FAILED, BadOutput, LayoutNotApplicable, MissingGradient, TargetRaised, Unsupported
from ...spec.operators import OPERATORS
from ..cases.case import Case
from ..judging.calling_subject import LARGE
from ..judging.findings import Finding
from ..judging.subject import Subject
from ..judging.translated import one_plus
from ..judging.truth import gradient_name
from .derived import affine_names
from .registry import check
from .relations import same, same_gradients


def agree(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays have the same dtype, shape and numbers: [=], to which -0 is 0 and one NaN is like another."""
    return same_bits(one, other) or (one.dtype == other.dtype and np.array_equal(one, other, equal_nan=True))


def changed(before: np.ndarray, after: np.ndarray, case: Case, name: str, note: str) -> Finding:
    """Return a finding that says whether, and where, an array changed."""
    if agree(before, after):
        return Finding(case, violated=False)
    if before.shape != after.shape:
        return Finding(case, violated=True, output=name, note=f"{note}: shape {after.shape}", failure="shape")
    if before.dtype != after.dtype:
        return Finding(case, violated=True, output=name, note=f"{note}: dtype {after.dtype.name}", failure="dtype")
    a, b = before.astype(np.float64), after.astype(np.float64)
    index = tuple(int(i) for i in np.argwhere(~((a == b) | (np.isnan(a) & np.isnan(b))))[0]) if a.ndim else ()
    return Finding(
        case, violated=True, output=name, index=index, expected=float(a[index]), got=float(b[index]), note=note
    )


def _for_layouts(case: Case) -> bool:
    return "CM-V1" in case.requirements


@check("CM-P1", every=_for_layouts)
def nothing_changed(subject: Subject, case: Case) -> Iterator[Finding]:
    """Neither the inputs nor the cotangent change, contiguous or not, with gamma and beta or without."""
    cases, lacking = [(case, "contiguous")], None
    if "gamma" in case.inputs:  # without parameters there is least to compute, so doing it in place is most tempting
        cases.append((case.replace(**dict.fromkeys(affine_names(case))), "contiguous"))
    if _for_layouts(case):
        _ = subject.observe(case).outputs  # a target that was lost in it is not called again
        cases += [(case, layout) for layout in _LAYOUTS_WITHOUT_GAPS if layout in subject.target.layouts]
    for one, layout in cases:
        try:
            yield from _unchanged(subject, one, layout)
        except Unsupported as found:
            lacking = found
        except (LayoutNotApplicable, TargetRaised, BadOutput):
            if layout == "contiguous" and not case.mixed:
                raise  # otherwise CM-V1 and CM-V2, or CM-D1, judge it
    if lacking is not None:
        raise lacking


#: Layouts without gaps. To a kernel that works in a contiguous copy with its axes in another order, one of these may
#: already lie as the copy would, and is then no copy.
_LAYOUTS_WITHOUT_GAPS = ("transposed", "channels_last", "leading_transposed")


def _unchanged(subject: Subject, case: Case, layout: str) -> Iterator[Finding]:
    if why_not(case.x, layout) is not None:
        return
    started = partial(subject.start, case, layouts={} if layout == "contiguous" else {"x": layout})
    where = "" if layout == "contiguous" else f", x and the cotangent {layout}"

    def inputs_kept(evaluation: Evaluation, when: str) -> Iterator[Finding]:
        for name, now in evaluation.inputs().items():
            given = case.inputs[name]
            if given is not None and now is not None:
                yield changed(given, now, case, name, f"{name} was changed by {when}{where}")

    def asked() -> Iterator[Callable[[], object]]:
        for mode in subject.modes(case):
            yield started(wrt=(), mode=mode).inputs
        evaluation = started()
        yield evaluation.inputs
        if not subject.forward_only:
            pulled = evaluation.pull(case.g, layout)
            yield evaluation.inputs
            yield pulled.cotangent

    subject.prefetch(case, asked())
    # Untracked first: with gradients tracked, a framework may refuse any change of x.
    for mode in subject.modes(case):
        untracked = started(wrt=(), mode=mode)
        untracked.outputs()
        yield from inputs_kept(untracked, "the call" if mode == "training" else "the call in inference mode")
    evaluation = started()
    evaluation.outputs()
    yield from inputs_kept(evaluation, "the call")
    if subject.forward_only:
        return
    pulled = evaluation.pull(case.g, layout)
    pulled.gradients()
    yield from inputs_kept(evaluation, "taking gradients")
    yield changed(case.g, pulled.cotangent(), case, "g", f"the cotangent was changed{where}")


#: How the note of a violation begins if repetitions of one call showed it.
REPEATED = "a repeated call"
#: The note of a violation that the first call on a single thread showed.
_ON_ONE_THREAD = "a call on one thread"
#: How the notes of violations begin that only repetitions show.
SHOWN_BY_REPEATING = (REPEATED, _ON_ONE_THREAD)

#: Repetitions of a call between two calls of another case of the same shapes, which change what a target keeps.
_CALLS_IN_A_ROUND = 32


@attrs.define
class Repetitions:
    """Differences that repeated calls of a case showed, compared with the first call."""

    #: The first result that differed: its name, its value in the first call, and the value that differed.
    difference: tuple[str, np.ndarray, np.ndarray] | None = None
    #: The findings about results that differ, up to the first violation.
    findings: list[Finding] = attrs.field(factory=list)

    @property
    def violated(self) -> bool:
        return bool(self.findings) and self.findings[-1].violated


def _repetitions(subject: Subject, case: Case) -> Repetitions:
    """Call a case repeatedly, once for both checks. The envelope judges only results that differ."""
    if case not in subject.repeated:
        found = Repetitions()
        for name, first, value in _differences(subject, case):
            if first is not None:
                found.difference = found.difference or (name, first, value)
            judge = subject.judge_output if name in OPERATORS[case.operator].outputs else subject.judge_gradient
            found.findings.append(judge(case, name, value, note=_ON_ONE_THREAD if first is None else REPEATED))
            if found.violated:
                break
        subject.repeated[case] = found  # only at the end: if a call raised, nothing is known
    return subject.repeated[case]


#: Rounds of a large call that use all threads. The others use one, since on a busy machine threads wait for one another
#: a hundred times as long as they work. A real race shows in far more than one call in sixty.
_THREADED_ROUNDS = 1


def _differences(subject: Subject, case: Case) -> Iterator[tuple[str, np.ndarray | None, np.ndarray]]:
    """Yield the results that differ: name, the first result to compare it with, and the value."""
    rounds = subject.repetitions(case) // _CALLS_IN_A_ROUND
    threaded = min(rounds, _THREADED_ROUNDS) if case.x.size >= LARGE else rounds
    for alone, count in ((False, threaded), (True, rounds - threaded)):
        if count:
            yield from _different_outputs(subject, case, count, alone=alone)
            if not subject.forward_only:
                yield from _different_gradients(subject, case, count, alone=alone)


def _different_outputs(
    subject: Subject, case: Case, rounds: int, *, alone: bool
) -> Iterator[tuple[str, np.ndarray | None, np.ndarray]]:
    first = subject.observe(case).outputs
    for place in range(rounds):
        subject.outputs(different_values(case))
        several = distinct(subject.repeated_outputs(case, _CALLS_IN_A_ROUND, alone=alone))
        if alone and not place:  # one thread adds in another order than several: this difference does not violate CM-P3
            first = next(several)
            yield from ((name, None, value) for name, value in first.items())
        for outputs in several:
            for name, value in outputs.items():
                if not agree(first[name], value):
                    yield name, first[name], value


def _different_gradients(
    subject: Subject, case: Case, rounds: int, *, alone: bool
) -> Iterator[tuple[str, np.ndarray | None, np.ndarray]]:
    try:
        first = subject.observe(case).gradients
    except Unsupported:
        return
    for place in range(rounds):
        try:
            several = distinct(subject.repeated_gradients(case, _CALLS_IN_A_ROUND, alone=alone))
        except MissingGradient as missing:  # a gradient that comes and goes is a difference
            lost = {gradient_name(name): np.full_like(case.inputs[name], np.nan) for name in missing.missing}
            several = iter([lost])
        if alone and not place:
            first = next(several)
            yield from ((name, None, value) for name, value in first.items())
        for found in several:
            for name, value in found.items():
                known = first.get(name, np.zeros_like(value))
                if not agree(known, value):
                    yield name, known, value


def distinct(results: Iterable[dict[str, np.ndarray]]) -> Iterator[dict[str, np.ndarray]]:
    """The results without repeated objects: those of calls that agree are one object (adapters/repeats.py)."""
    return iter({id(one): one for one in results}.values())


def _for_tracking(case: Case) -> bool:
    return not case.only or "CM-S1" in case.requirements


@check("CM-P2", every=_for_tracking, raising="violates")
def repeats_agree(subject: Subject, case: Case) -> Iterator[Finding]:
    """Repeated calls agree, each within the envelope; on cases of CM-P6, calls that seem to differ by tracking."""
    if "CM-P2" not in case.requirements:
        yield from _repeated_where_tracking_differs(subject, case)
        return
    yield from _repetitions(subject, case).findings
    yield Finding(case, violated=False)
    yield from _settings_changed(subject, case)
    if "CM-S1" not in case.requirements:
        yield from _changed_late(subject, case)
        yield from _memory_used_again(subject, case)


def _repeated_where_tracking_differs(subject: Subject, case: Case) -> Iterator[Finding]:
    """Judge repetitions of a call if tracking only seems to make a difference; there are none where it makes none."""
    if subject.forward_only:
        return
    with contextlib.suppress(*CALL_FAILED):
        seen = subject.observe(case)
        found = [one for one in _compared(subject, case, seen.outputs, seen.tracked, REPEATED) if one.violated]
        if found and not _is_by_tracking(subject, case):
            again = _repetitions(subject, case)
            yield from again.findings if again.violated else found


def _compared(
    subject: Subject, case: Case, untracked: dict[str, np.ndarray], tracked: dict[str, np.ndarray], note: str
) -> Iterator[Finding]:
    for name, value in untracked.items():
        if name in tracked:
            yield same(subject, case, name, tracked[name], value, note)


#: How often a difference by tracking is looked for again.
_LOOKED_AGAIN = 3


def _is_by_tracking(subject: Subject, case: Case) -> bool:
    """Whether calls that track differ from others each time, and the others repeat themselves."""
    if case not in subject.by_tracking:
        logged = len(subject.log)
        subject.by_tracking[case] = (
            subject.may_track
            and not _repetitions(subject, case).violated
            and all(_differs_again(subject, case) for _ in range(_LOOKED_AGAIN))
        )
        if subject.by_tracking[case]:  # otherwise these calls are what shows that they do not repeat themselves
            del subject.log[logged:]
    return subject.by_tracking[case]


def _differs_again(subject: Subject, case: Case) -> bool:
    untracked, (tracked, _) = subject.outputs(case), subject.tracked(case)
    return any(one.violated for one in _compared(subject, case, untracked, tracked, ""))


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
    if "CM-S1" in case.requirements:  # the exact results of a large call take long
        return
    if (flipped := subject.in_other_mode(case)) is not None:
        yield flipped
    if "groups" in given:
        channels = shape[given["channel_axis"]]
        others = (k for k in range(channels, 0, -1) if channels % k == 0 and k != given["groups"])
        yield from (case.replace(groups=k) for k in islice(others, 1))
    if "axes" in given and len(shape) > 1:  # without parameters, whose shapes would tell the two calls apart
        axes = (-1,) if len(given["axes"]) > 1 else (-2, -1)
        yield case.replace(axes=axes, **dict.fromkeys(affine_names(case)))


def _settings_changed(subject: Subject, case: Case) -> Iterator[Finding]:
    """Judge calls with the same tensors and other settings than the call before, and the first call after them."""
    for later in other_settings(subject, case):
        changed_ones = [name for name, value in later.settings.items() if value != case.settings[name]]
        first = case.replace(**{name: later.inputs[name] for name in affine_names(case)})
        calls = [partial(subject.outputs, one) for one in (first, later, first)]
        pulls = [] if subject.forward_only else [partial(subject.pull, one) for one in (first, later)]
        note = f"{', '.join(changed_ones)} changed since the last call"
        try:
            subject.prefetch(case, [*calls, *pulls])
            found = [call() for call in calls]
        except (Unsupported, TargetRaised, BadOutput):  # CM-T1 says so where it must not
            continue
        for one, outputs in ((later, found[1]), (first, found[2])):
            for name, got in outputs.items():
                yield subject.judge_output(one, name, got, note=note)
        try:
            gradients = [pull() for pull in pulls][-1:]
        except Unsupported:
            continue
        for name, got in (gradients[0] if gradients else {}).items():
            yield subject.judge_gradient(later, name, got, note=note)


def with_last_value_changed(given: np.ndarray) -> np.ndarray:
    """An input with another number in its last place."""
    value = given.copy()
    value.reshape(-1)[-1] = 3 if value.reshape(-1)[-1] == 2 else 2  # exact in every dtype; positive, as a variance is
    return value


def _changed_late(subject: Subject, case: Case) -> Iterator[Finding]:
    """
    Judge calls that differ from the previous call only in the last value of one input.

    A target that compares only a few values misses this. In the other mode of batch_norm, only the running statistics
    change: the rest is used in both.
    """
    yield from _last_value_changed(subject, case, [*case.inputs])
    if (flipped := subject.in_other_mode(case)) is not None:
        with contextlib.suppress(TargetRaised, BadOutput):  # CM-T1 says so where it must not
            yield from _last_value_changed(subject, flipped, ["running_mean", "running_var"])


def _last_value_changed(subject: Subject, case: Case, names: Sequence[str]) -> Iterator[Finding]:
    for name in names:
        given = case.inputs[name]
        if given is None or not given.size:
            continue
        later = case.replace(**{name: with_last_value_changed(given)})
        note = f"the last value of {name} changed since the last call"
        pulls = [] if subject.forward_only else [partial(subject.pull, case), partial(subject.pull, later)]
        subject.prefetch(case, [partial(subject.outputs, case), partial(subject.outputs, later), *pulls])
        subject.outputs(case)
        for output, got in subject.outputs(later).items():
            yield subject.judge_output(later, output, got, note=note)
        if subject.forward_only:
            continue
        try:
            subject.pull(case)
            gradients = subject.pull(later)
        except Unsupported:
            continue
        for gradient, got in gradients.items():
            yield subject.judge_gradient(later, gradient, got, note=note)


#: Whether the second call's tensors are new objects -> the note of its findings.
_REUSED_MEMORY = {
    False: "every tensor was overwritten in place since the last call",
    True: "new tensors lie where those of the last call lay",
}


def _memory_used_again(subject: Subject, case: Case) -> Iterator[Finding]:
    """Judge calls with other values in the last call's tensors, or in its memory: the old values must not show."""
    yield from _values_replaced(subject, case)
    if (flipped := subject.in_other_mode(case)) is not None:
        with contextlib.suppress(TargetRaised, BadOutput):  # CM-T1 says so where it must not
            yield from _values_replaced(subject, flipped)


def _values_replaced(subject: Subject, case: Case) -> Iterator[Finding]:
    later = different_values(case)
    # A cache that is meant for inference is kept only where nothing is tracked.
    in_both_ways = (False,) if subject.forward_only else (True, False)
    for tracked, (fresh, note) in product(in_both_ways, _REUSED_MEMORY.items()):
        try:
            outputs, gradients = subject.recall(case, later, fresh=fresh, tracked=tracked)
        except Unsupported:  # the target's tensors cannot be written in place
            return
        for name, got in outputs.items():
            found = subject.judge_output(later, name, got, note=note)
            # The same call on memory of its own may return the same bits: then CM-P6 judges it.
            observed = subject.observe(later)
            if not (found.violated and same_bits(got, (observed.started if tracked else observed.outputs)[name])):
                yield found
        for name, got in gradients.items():
            yield subject.judge_gradient(later, name, got, note=note)


@check("CM-P3")
def repeats_equal(subject: Subject, case: Case) -> Iterator[Finding]:
    """Repeated calls agree to the last bit."""
    difference = _repetitions(subject, case).difference
    if difference is not None:
        name, first, value = difference
        yield changed(first, value, case, name, f"{REPEATED} gave other bits")
        return
    yield Finding(case, violated=False)


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


@check("CM-P4")
def results_stay(subject: Subject, case: Case) -> Iterator[Finding]:
    """A result stays the same after later calls, a gradient after later gradients."""
    later_case = different_values(case)

    def asked(mode: str) -> Iterator[Callable[[], object]]:
        evaluation = subject.start(case, mode=mode)
        later = subject.start(later_case, mode=mode)
        yield evaluation.outputs
        if mode == "training" and not subject.forward_only:
            pulled = evaluation.pull(case.g)
            later.pull(later_case.g)
            yield pulled.gradients
            yield evaluation.outputs

    for mode in ("inference", "training"):  # a target reuses buffers most readily where nothing is tracked
        subject.prefetch(case, asked(mode))
        evaluation = subject.start(case, mode=mode)
        before = evaluation.outputs()
        later = subject.start(later_case, mode=mode)
        later.outputs()
        for name, value in evaluation.outputs().items():
            yield changed(before[name], value, case, name, f"{name} changed when another call was made")
    if subject.forward_only:
        return
    pulled = evaluation.pull(case.g)
    gradients = pulled.gradients()
    later.pull(later_case.g).gradients()
    for name, value in pulled.gradients().items():
        known = gradients[name]
        if value is not None and known is not None:
            note = f"the gradient of {name} changed when another was taken"
            yield changed(known, value, case, name, note)
    for name, value in evaluation.outputs().items():
        yield changed(before[name], value, case, name, f"{name} changed when gradients were taken")


@check("CM-P6", every=_for_tracking, gradient=True)
def tracking_makes_no_difference(subject: Subject, case: Case) -> Iterator[Finding]:
    """
    A call whose gradients are taken returns the same as one where nothing is tracked.

    If the calls do not repeat themselves, tracking is not the reason: then CM-P2 says so.
    """
    observed = subject.observe(case)
    for found in _compared(subject, case, observed.outputs, observed.tracked, "gradients are tracked"):
        if not found.violated or _is_by_tracking(subject, case):
            yield found
    # A function has no mode of its own, but its framework may: PyTorch has inference_mode, which code can tell apart.
    if "CM-P4" in case.requirements and not subject.binding.has_modes:
        for name, value in subject.outputs(case, "inference").items():
            yield same(subject, case, name, value, observed.outputs[name], "in the framework's inference mode")


@check("CM-P5", raising="violates", gradient=True)
def gradients_later(subject: Subject, case: Case) -> Iterator[Finding]:
    """A gradient taken after other calls, or after another gradient of its own call, is still that of its own call."""
    at_once = subject.observe(case).gradients

    def asked() -> Iterator[Callable[[], object]]:
        evaluation = subject.start(case)
        yield partial(subject.outputs, different_values(case))
        yield partial(evaluation.pull, case.g)

    subject.prefetch(case, asked())
    evaluation = subject.start(case)
    evaluation.outputs()
    subject.outputs(different_values(case))
    found = subject.named_gradients(evaluation.pull(case.g).gradients(), case)
    yield from same_gradients(subject, case, found, at_once, "the gradient taken after another call")
    # One small case of each operator, and the larger ones: a path of its own may spoil what it saved.
    if "CM-P2" in case.requirements or "CM-S1" in case.requirements:
        yield from _pulled_again(subject, case, at_once)


def _pulled_again(subject: Subject, case: Case, at_once: dict[str, np.ndarray]) -> Iterator[Finding]:
    """Judge whether a second gradient of one call, taken after another call's gradient, equals the first."""
    evaluation, between = subject.start(case), different_values(case)
    try:
        evaluation.pull(case.g, keep=True)
    except (TargetRaised, Unsupported):  # it keeps nothing: a compiled call uses its buffers up for the first gradient
        return
    subject.pull(between)
    try:
        again = evaluation.pull(case.g)
    except (TargetRaised, Unsupported):  # it keeps nothing either, and says so only at the second gradient
        return
    found = subject.named_gradients(again.gradients(), case)
    yield from same_gradients(subject, case, found, at_once, "the gradient of one call, taken a second time")
