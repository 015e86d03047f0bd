"""The ways to make one call. Code may have a path for each, and a NaN must show in all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs
import numpy as np

from ...adapters.binding import differentiable
from ...adapters.layouts import why_not
from ...spec.errors import CALL_FAILED
from ..cases.case import Case
from ..judging.calls import checked_shapes
from ..judging.subject import Subject

Results = dict[str, np.ndarray]


def other_layouts(subject: Subject, case: Case) -> list[str]:
    """
    Layouts of x for which code may have a path of its own: one without gaps and one with gaps.

    Code that reads neither as it lies copies x, or reads it by its strides.
    """
    return [one for one in ("transposed", "strided") if one in subject.target.layouts and why_not(case.x, one) is None]


@attrs.frozen(eq=False)
class Way:
    """A way to call a case: its outputs, and its gradients where they are tracked."""

    words: str
    call: Callable[[Case], Results]
    #: Whether a target that fails in this way fails the check. Of the others, CM-P6 or CM-V1 says that they fail.
    plain: bool = True
    #: The layout of x, if it is not contiguous.
    layout: str = ""

    def works(self, case: Case) -> bool:
        """Whether a call of this case succeeds."""
        try:
            self.call(case)
        except CALL_FAILED:
            return False
        return True

    def is_right(self, subject: Subject, case: Case) -> bool:
        """Whether the outputs of a call of this case are right."""
        outputs = (one for one in self.call(case).items() if one[0] in case.record.outputs)
        return not any(subject.judge_output(case, name, value).violated for name, value in outputs)


def ways_to_call(subject: Subject, case: Case, *, gradients: bool) -> list[Way]:
    """
    The ways to call a case: in each mode without tracking, in the framework's inference mode, and with x in other
    layouts. With ``gradients``, also where gradients are tracked: of all inputs, and of the parameters alone.
    """

    def untracked(mode: str, one: Case) -> Results:
        return subject.outputs(one, mode)

    def tracked(wrt: tuple[str, ...] | None, one: Case) -> Results:
        outputs, found = subject.tracked(one, wrt)
        return {**outputs, **found}

    def laid_out(layout: str, one: Case) -> Results:
        return checked_shapes(subject.start(one, layouts={"x": layout}, wrt=()).outputs(), one)

    modes = {mode: "" if mode == "training" else " in inference mode" for mode in subject.modes(case)}
    ways = [Way(words, partial(untracked, mode)) for mode, words in modes.items()]
    if not subject.binding.has_modes and subject.may_track:
        ways.append(Way(" in the framework's inference mode", partial(untracked, "inference"), plain=False))
    if gradients:
        ways.append(Way(" where gradients are tracked", partial(tracked, None)))
        names = tuple(name for name in differentiable(case.operator, case.inputs) if name in ("gamma", "beta"))
        if names and subject.may_track:
            words = f" where only {' and '.join(names)} {'needs' if len(names) == 1 else 'need'} a gradient"
            ways.append(Way(words, partial(tracked, names), plain=False))
    layouts = other_layouts(subject, case)
    return [*ways, *(Way(f", x {one}", partial(laid_out, one), plain=False, layout=one) for one in layouts)]
