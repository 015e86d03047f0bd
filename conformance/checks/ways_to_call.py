"""The ways to make one call. Code may have a path for each, and a NaN must show in all of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial

import numpy as np

from ...adapters.layouts import why_not
from ...spec.errors import BadOutput, TargetRaised, Unsupported
from ..cases.case import Case
from ..judging.calls import checked_shapes
from ..judging.subject import Subject

Results = dict[str, np.ndarray]

#: One layout with gaps and one without: code that reads neither as it lies copies x, or reads it by its strides.
_LAYOUTS = ("transposed", "strided")


def results_in_each_way(subject: Subject, case: Case, *, gradients: bool) -> Iterator[tuple[str, str, Results]]:
    """
    The outputs of a call untracked, in inference mode and with x in other layouts, each with words and that layout.

    With ``gradients`` also the outputs and gradients of a call that tracks them. A call that raises in inference mode
    or in another layout is left out: where it raises for every x, CM-P6 or CM-V1 says so.
    """
    layouts = [one for one in _LAYOUTS if one in subject.target.layouts and why_not(case.x, one) is None]
    laid_out = {one: partial(subject.start, case, layouts={"x": one}, wrt=()) for one in layouts}
    own_inference = not subject.binding.has_modes and subject.may_track
    asked = [partial(subject.outputs, case, mode) for mode in subject.modes(case)]
    asked += [partial(subject.outputs, case, "inference")] if own_inference else []
    asked += [partial(subject.tracked, case)] if gradients else []
    subject.prefetch(case, [*asked, *(lambda call=call: call().outputs() for call in laid_out.values())])
    for where_called, outputs in subject.outputs_in_modes(case):
        yield where_called, "", outputs
    if own_inference:
        with contextlib.suppress(TargetRaised, BadOutput, Unsupported):
            yield " in the framework's inference mode", "", subject.outputs(case, "inference")
    if gradients:
        outputs, found = subject.tracked(case)
        yield " where gradients are tracked", "", {**outputs, **found}
    for layout, call in laid_out.items():
        with contextlib.suppress(TargetRaised, BadOutput, Unsupported):
            yield f", x {layout}", layout, checked_shapes(call().outputs(), case)


def is_read_in(subject: Subject, case: Case, layout: str) -> bool:
    """Whether x is read as it lies in a layout; if not, CM-V1 is about it."""
    outputs = subject.start(case, layouts={"x": layout}, wrt=()).outputs()
    return not any(subject.judge_output(case, name, value).violated for name, value in outputs.items())
