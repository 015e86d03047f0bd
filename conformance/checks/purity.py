"""Purity: a call changes nothing, remembers nothing, and gives the same result again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from ...adapters.binding import differentiable
from ...adapters.layouts import why_not
from ...adapters.session import Evaluation
from ...spec.errors import BadOutput, LayoutNotApplicable, TargetRaised, Unsupported
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject
from .derived import affine_names
from .later_calls import different_values, memory_used_again, one_value_changed, settings_changed
from .registry import check, of_any_size
from .relations import changed, same_gradients
from .repetitions import REPEATED, repeated_where_tracking_differs, repetitions


def _for_layouts(case: Case) -> bool:
    return "CM-V1" in case.requirements


@check("CM-P1", every=_for_layouts, calls_often=True)
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

    modes = dict.fromkeys((*subject.modes(case), subject.strictest_mode(case)))

    def asked() -> Iterator[Callable[[], object]]:
        for mode in modes:
            yield started(wrt=(), mode=mode).inputs
        evaluation = started()
        yield evaluation.inputs
        if not subject.forward_only:
            pulled = evaluation.pull(case.g, layout)
            yield evaluation.inputs
            yield pulled.cotangent

    subject.prefetch(case, asked())
    # Untracked first: with gradients tracked, a framework may refuse any change of x.
    for mode in modes:
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
    if layout == "contiguous" and _for_layouts(case):
        inside = subject.start(case, intermediate=differentiable(case.operator, case.inputs))
        inside.outputs()
        yield from inputs_kept(inside, "a call with each input passed as the result of another operation")


@check("CM-P2", every=of_any_size, raising="violates")
def repeats_agree(subject: Subject, case: Case) -> Iterator[Finding]:
    """Repeated calls agree, each within the envelope; on cases of CM-P6, calls that seem to differ by tracking."""
    if "CM-P2" not in case.requirements:
        yield from repeated_where_tracking_differs(subject, case)
        return
    yield from repetitions(subject, case).findings
    yield Finding(case, violated=False)
    yield from settings_changed(subject, case)
    yield from one_value_changed(subject, case)
    yield from memory_used_again(subject, case)


@check("CM-P3")
def repeats_equal(subject: Subject, case: Case) -> Iterator[Finding]:
    """Repeated calls agree to the last bit."""
    difference = repetitions(subject, case).difference
    if difference is not None:
        name, first, value = difference
        yield changed(first, value, case, name, f"{REPEATED} gave other bits")
        return
    yield Finding(case, violated=False)


#: Later calls, of which each may take the next of several buffers or slots: more than code keeps in turn.
_LATER = 16
#: When a result changed that a check kept.
_CALLED = "another call was made"


@check("CM-P4")
def results_stay(subject: Subject, case: Case) -> Iterator[Finding]:
    """A result stays the same after later calls, a gradient after later gradients."""
    later_case = different_values(case)

    def asked(mode: str, options: Mapping[str, Any]) -> Iterator[Callable[[], object]]:
        evaluation = subject.start(case, mode=mode, **options)
        later = subject.start(later_case, mode=mode, **options)
        yield partial(subject.repeated_outputs, later_case, _LATER, mode)
        yield evaluation.outputs
        if mode == "training" and not options and not subject.forward_only:
            pulled = evaluation.pull(case.g)
            later.pull(later_case.g)
            yield pulled.gradients
            yield evaluation.outputs

    def made(mode: str, options: Mapping[str, Any]) -> tuple[Evaluation, Evaluation, dict[str, np.ndarray]]:
        """A call, with its outputs at once, and another one, after which many more were made."""
        subject.prefetch(case, asked(mode, options))
        evaluation = subject.start(case, mode=mode, **options)
        before = evaluation.outputs()
        later = subject.start(later_case, mode=mode, **options)
        later.outputs()
        subject.repeated_outputs(later_case, _LATER, mode)
        return evaluation, later, before

    def stay(evaluation: Evaluation, before: Mapping[str, np.ndarray], when: str) -> Iterator[Finding]:
        for name, value in evaluation.outputs().items():
            yield changed(before[name], value, case, name, f"{name} changed when {when}")

    # A target reuses buffers most readily where nothing is tracked, which frameworks have two modes for.
    for mode, options in (("inference", {}), ("training", {"wrt": ()})):
        evaluation, later, before = made(mode, options)
        yield from stay(evaluation, before, _CALLED)
    if subject.forward_only:
        return
    evaluation, later, before = made("training", {})
    yield from stay(evaluation, before, _CALLED)
    pulled = evaluation.pull(case.g)
    gradients = pulled.gradients()
    later.pull(later_case.g).gradients()
    for name, value in pulled.gradients().items():
        known = gradients[name]
        if value is not None and known is not None:
            note = f"the gradient of {name} changed when another was taken"
            yield changed(known, value, case, name, note)
    yield from stay(evaluation, before, "gradients were taken")


@check("CM-P5", raising="violates", gradient=True)
def gradients_later(subject: Subject, case: Case) -> Iterator[Finding]:
    """A gradient taken after other calls, or after another gradient of its own call, is still that of its own call."""
    at_once = subject.observe(case).gradients

    def asked() -> Iterator[Callable[[], object]]:
        evaluation = subject.start(case)
        yield partial(subject.repeated_gradients, different_values(case), _LATER)
        yield partial(evaluation.pull, case.g)

    subject.prefetch(case, asked())
    evaluation = subject.start(case)
    evaluation.outputs()
    subject.repeated_gradients(different_values(case), _LATER)
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
