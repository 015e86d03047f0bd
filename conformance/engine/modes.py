"""Modes of batch_norm: the mode that a binding is judged in, and its cases and checks."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ...adapters.binding import Binding
from ..cases.case import Case
from ..cases.description import Description
from ..cases.few_shapes import in_few_shapes
from ..checks.catalogue import checks_of
from ..checks.registry import Check
from ..judging.library import Library, fitted
from ..judging.subject import Subject
from ..requests.profiles import profile_of


@attrs.frozen
class Mode:
    """The mode that a binding is judged in."""

    #: "training" or "inference", or "" for both.
    name: str = ""
    #: Why it is judged only in that mode; empty if the caller asked for it.
    reason: str = ""


def mode_of(subject: Subject, asked: str, descriptions: Sequence[Description], library: Library) -> Mode:
    """
    The mode that a subject is judged in: the one asked for, or inference if it declines all training calls.

    The other operators have one mode.
    """
    has_modes = subject.binding.record.has_modes
    if asked or not has_modes:
        return Mode(asked if has_modes else "")
    fitting = [fit for d in descriptions if (fit := fitted(d, subject.binding)) is not None]
    plain = [one for one in fitting if not one.only]
    reason = ""
    for description in plain:
        if description.training:
            declined = subject.declines(library.case(description))
            if not declined:
                return Mode()
            reason = reason or declined
    taken = any(not one.training and not subject.declines(library.case(one)) for one in plain)
    return Mode("inference", f"it declines every training call ({reason})") if reason and taken else Mode()


def modes_to_try(binding: Binding, mode: str) -> tuple[bool, ...]:
    """
    Whether the plainest call is in training, mode by mode until the target takes one.

    ``mode``: the only one that is judged; empty for both.
    """
    if not binding.record.has_modes:
        return (True,)
    return (mode == "training",) if mode else (True, False)


def cases_in(mode: str, descriptions: Sequence[Description]) -> list[Description]:
    """
    The cases of a mode.

    Inference also takes the training cases, with the running statistics in place of the batch's. A case that isolates
    a part of the formula, a size, a layout or a law does so in either mode.
    """
    if not mode:
        return list(descriptions)
    if mode == "training":
        return [one for one in descriptions if one.training]
    return list(dict.fromkeys(attrs.evolve(one, training=False) for one in descriptions))


def checks_in(mode: str, checks: Sequence[Check]) -> list[Check]:
    """The checks that have a meaning in a mode. In inference they also run on cases that they take in training."""
    if not mode:
        return list(checks)
    asked = [check for check in checks if mode in check.modes]
    return asked if mode == "training" else [_in_inference(check) for check in asked]


def checks_on(subject: Subject) -> list[Check]:
    """The checks of the subject's operator, in the mode that it is judged in."""
    return checks_in(subject.mode, checks_of(subject.operator))


def quick_cases(subject: Subject, seed: int = 0) -> list[Description]:
    """The cases of `quick` for the subject's operator, in the mode that it is judged in, on shapes that it takes."""
    return in_shapes_of(subject, cases_in(subject.mode, profile_of("quick").cases(subject.operator, seed)))


def in_shapes_of(subject: Subject, cases: Sequence[Description]) -> list[Description]:
    """These cases; on the few shapes of a run if a call of a new one is slow."""
    if not subject.slow_once or subject.binding.fixed.shape:
        return list(cases)
    return list(dict.fromkeys(few for one in cases if (few := in_few_shapes(one)) is not None))


def _in_inference(check: Check) -> Check:
    def when(case: Case) -> bool:
        return check.when(case) or check.when(attrs.evolve(case, settings={**case.settings, "training": True}))

    return attrs.evolve(check, when=when)
