"""The contract of a call: what it returns, with which shapes and dtypes, and what it refuses."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np

from ...adapters.binding import differentiable
from ...spec.errors import BadOutput, MissingGradient, TargetRaised, Unsupported
from ..cases.case import Case
from ..judging.calls import checked_shapes
from ..judging.findings import Finding
from ..judging.known import failure_shown
from ..judging.subject import Subject
from ..judging.truth import gradient_name, owner_of
from .refusal import judge_refusals
from .registry import check, in_training


def _violation(case: Case, output: str, note: str, failure: str) -> Finding:
    return Finding(case, violated=True, output=output, note=note, failure=failure)


def mistyped(name: str, value: np.ndarray, dtype: np.dtype) -> str:
    """What is wrong with the dtype of a result; empty if it is the expected one."""
    return "" if value.dtype == dtype else f"{name} has dtype {value.dtype.name} in place of {dtype.name}"


def _plain(case: Case) -> bool:
    """Every case with a plainly valid call; cases of sizes name CM-T1 and CM-T2 themselves."""
    return not case.only


@check("CM-T1", every=_plain)
def returns(subject: Subject, case: Case) -> Iterator[Finding]:
    """A valid call returns tensors, as many as promised."""
    try:
        _ = subject.observe(case).outputs
    except TargetRaised as raised:
        yield _violation(case, "y", f"raised {raised}", "raises")
    except BadOutput as bad:
        if bad.kind in ("type", "count"):
            yield _violation(case, "y", str(bad), bad.kind)
        else:
            yield Finding(case, violated=False)
    else:
        yield Finding(case, violated=False)


@check("CM-T2", every=_plain, calls_rarely=True)
def output_types(subject: Subject, case: Case) -> Iterator[Finding]:
    """Outputs have the shape and dtype of the input they belong to, also in inference mode and where tracked."""
    wrong = _mistyped_output(case, lambda: subject.observe(case).outputs)
    yield wrong or Finding(case, violated=False)
    if wrong is None and "CM-P4" in case.requirements:
        yield from _mistyped_elsewhere(subject, case)


def _mistyped_output(case: Case, call: Callable[[], Mapping[str, np.ndarray]], where: str = "") -> Finding | None:
    """The first output with another shape or dtype than the input that it belongs to; None if all have theirs."""
    try:
        outputs = call()
    except BadOutput as bad:
        if bad.kind in ("shape", "dtype"):
            return _violation(case, "y", f"{bad}{where}", bad.kind)
        raise
    for name, value in outputs.items():
        owner = case.inputs[owner_of(name)]
        if owner is not None and (words := mistyped(name, value, owner.dtype)):
            return _violation(case, name, f"{words}{where}", "dtype")
    return None


def _mistyped_elsewhere(subject: Subject, case: Case) -> Iterator[Finding]:
    """The outputs in inference mode, and those whose gradients are taken: each may come from code of its own."""
    places = {"inference": " in inference mode"}
    if not subject.forward_only and subject.session.tracks_calls:
        places["training"] = " where gradients are tracked"
    subject.prefetch(case, (subject.start(case, mode=mode).outputs for mode in places))
    for mode, where in places.items():

        def outputs(mode: str = mode) -> Mapping[str, np.ndarray]:
            return checked_shapes(subject.start(case, mode=mode).outputs(), case)

        with contextlib.suppress(TargetRaised, BadOutput, Unsupported):  # such a call violates LN-L15, CM-P4 or CM-T3
            wrong = _mistyped_output(case, outputs, where)
            if wrong is not None:
                yield wrong


@check("CM-T3", every=_plain, gradient=True, calls_rarely=True)
def gradient_types(subject: Subject, case: Case) -> Iterator[Finding]:
    """Every gradient is there, with the shape and dtype of its input."""
    _ = subject.observe(case).outputs  # a call that fails is judged by CM-T1
    try:
        gradients = subject.observe(case).gradients
    except MissingGradient as missing:
        hint = ""
        if set(missing.missing) >= set(differentiable(case.operator, case.inputs)):
            hint = "; if the function is forward-only by design, say so with --forward-only"
        yield _violation(case, "gradient", f"{missing}{hint}", "missing")
        return
    except (BadOutput, TargetRaised) as failed:
        if isinstance(failed, BadOutput) and "y has dtype" in str(failed):
            raise  # CM-T2 judges it
        words = f"raised {failed}" if isinstance(failed, TargetRaised) else str(failed)
        yield _violation(case, "gradient", f"taking gradients: {words}", failure_shown(failed))
        return
    for name, value in gradients.items():
        owner = case.inputs[owner_of(name)]
        if owner is not None and (words := mistyped(name, value, owner.dtype)):
            yield _violation(case, name, words, "dtype")
            return
    yield Finding(case, violated=False)
    if "CM-T3" in case.requirements:
        yield from _alone(subject, case, gradients)


def _alone(subject: Subject, case: Case, together: Mapping[str, np.ndarray]) -> Iterator[Finding]:
    """Take each gradient alone, and those of a composed operator without one, such as that of x in a first layer."""
    names = [name for name in differentiable(case.operator, case.inputs) if gradient_name(name) in together]
    asked: dict[tuple[str, ...], str] = {(name,): f"{name} alone needs a gradient" for name in names}
    for left in names if case.record.composed and len(names) > 1 else ():
        others = tuple(name for name in names if name != left)
        asked.setdefault(others, f"{left} needs no gradient")
    subject.prefetch(case, (partial(subject.pull, case, wrt=wrt) for wrt in asked))
    for wrt, words in asked.items():
        try:
            found = subject.pull(case, wrt=wrt)
        except MissingGradient as missing:
            lost = missing.missing[0] if missing.missing else wrt[0]
            yield _violation(case, gradient_name(lost), f"{missing}, where {words}", "missing")
            return
        except TargetRaised as failed:
            yield _violation(case, "gradient", f"raised {failed}, where {words}", failure_shown(failed))
            return
        for name in wrt:
            gradient = gradient_name(name)
            if gradient not in found:
                yield _violation(case, gradient, f"no gradient reaches {name}, where {words}", "missing")
                return


def _bad_calls(case: Case) -> Iterator[tuple[str, Case]]:
    """Yield meaningless calls, each with what is wrong with it."""
    for name in ("gamma", "logits"):
        value = case.inputs.get(name)
        if value is None or value.ndim != 1 or value.size < 2:
            continue
        yield f"{name} is one element too long", case.replace(**{name: np.concatenate([value, value[:1]])})
        yield f"{name} has one element and would broadcast", case.replace(**{name: value[:1]})
    beta = case.inputs.get("beta")
    if beta is not None and beta.ndim == 1 and beta.size > 1:
        yield "beta has one element and would broadcast", case.replace(beta=beta.reshape(-1)[:1])
    if "groups" in case.settings:
        channels = case.layout.parameters
        yield "groups does not divide the channels", case.replace(groups=channels - 1 if channels > 2 else channels + 1)
    if case.record.statistics:
        for name in case.record.statistics:
            yield f"{name} is one element short", case.replace(**{name: case.given(name)[:-1]})
    if "channel_axis" in case.settings:
        beyond = case.x.ndim + case.settings["channel_axis"] % case.x.ndim  # the right one, counted round
        yield "channel_axis does not exist", case.replace(channel_axis=beyond)
    if "axes" in case.settings:
        yield "an axis does not exist", case.replace(axes=(-case.x.ndim - 1, *case.settings["axes"]))


@check("CM-A1", when=in_training)
def bad_arguments(subject: Subject, case: Case) -> Iterator[Finding]:
    """Meaningless arguments raise."""
    _ = subject.observe(case).outputs
    yield from judge_refusals(subject, _bad_calls(case))


#: Numbers that cannot be added to a variance, and numbers that cannot weight an average. The negative eps is smaller
#: than most variances, like one with a mistyped sign; with a greater one a call may raise for another reason.
_BAD_EPS = (-1e-5, math.inf, math.nan)
_BAD_MOMENTUM = (-0.25, 1.25, math.nan)


@check("CM-A2", when=in_training)
def bad_eps(subject: Subject, case: Case) -> Iterator[Finding]:
    """An eps that is negative or not finite raises."""
    _ = subject.observe(case).outputs
    yield from judge_refusals(subject, ((f"eps is {eps:g}", case.replace(eps=eps)) for eps in _BAD_EPS))


@check("BN-A1", when=in_training)
def bad_momentum(subject: Subject, case: Case) -> Iterator[Finding]:
    """A momentum that is outside 0 to 1 raises in training."""
    _ = subject.observe(case).outputs
    yield from judge_refusals(subject, ((f"momentum is {m:g}", case.replace(momentum=m)) for m in _BAD_MOMENTUM))
