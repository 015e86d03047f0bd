"""16-bit data with parameters and running statistics in float32: the numbers, and the dtype of each result."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import numpy as np

from ...spec.errors import BadOutput, TargetRaised, Unsupported
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject
from ..judging.truth import owner_of
from .contract import mistyped
from .derived import affine_names
from .part_calls import handed_as, judge_handed, recorded
from .registry import check

_Judge = Callable[[Subject, Case], Iterator[Finding]]


def _mixed(requirement: str) -> Callable[[_Judge], object]:
    """
    A check on 16-bit data with float32 parameters, and with one of gamma and beta alone: each has code of its own.

    A target need not take such calls: if it raises, they are unsupported.
    """

    def checked(judge: _Judge) -> object:
        def judged(subject: Subject, case: Case) -> Iterator[Finding]:
            yield from judge(subject, case)
            given = [name for name in affine_names(case) if case.inputs[name] is not None]
            for name in given if len(given) > 1 else ():
                with contextlib.suppress(TargetRaised, BadOutput, Unsupported):
                    yield from judge(subject, case.replace(**{name: None}))

        judged.__doc__ = judge.__doc__
        return check(requirement, dtypes=("float16", "bfloat16"), raising="unsupported")(judged)

    return checked


def _gradients(subject: Subject, case: Case) -> dict[str, np.ndarray]:
    """The gradients for the case's cotangent, in the dtype that y has: CM-D2 judges whether that dtype is right."""
    dtype = subject.observe(case).outputs["y"].dtype
    return subject.observe(case).gradients if dtype == case.g.dtype else subject.pull(case, case.g.astype(dtype))


def _of_parameters(case: Case, name: str) -> bool:
    """Whether a result belongs to a parameter or a running statistic, which have 32 bits; x and leaves have 16."""
    return owner_of(name) in case.record.parameters


def _typed(
    case: Case, name: str, value: np.ndarray, dtype: np.dtype, deviates: tuple[str, ...] = (), where_called: str = ""
) -> Finding:
    words = mistyped(name, value, dtype)
    if words:
        return Finding(case, violated=True, output=name, note=f"{words}{where_called}", failure="dtype")
    return Finding(case, violated=False, output=name, deviates=deviates)


def _owner_dtype(case: Case, name: str) -> np.dtype:
    return case.given(owner_of(name)).dtype


@_mixed("CM-D1")
def formulas(subject: Subject, case: Case) -> Iterator[Finding]:
    """The formulas hold: each number is within its envelope, and so is the input of the sublayer of pre_norm."""
    note = "16-bit data, float32 parameters"
    for name, value in subject.observe(case).outputs.items():
        yield subject.judge_output(case, name, value, note=note)
    if case.record.normalises_handed:  # y has lost its last bits
        yield from judge_handed(subject, case, "sublayer", recorded(subject, case)["sublayer"][0])
    if subject.forward_only:
        return
    for name, value in _gradients(subject, case).items():
        yield subject.judge_gradient(case, name, value, note=note)


@_mixed("CM-D2")
def dtypes_of_data(subject: Subject, case: Case) -> Iterator[Finding]:
    """
    y, dx, the gradients of leaves and what parts are handed have the dtype of x.

    Where mixed dtypes are declared promoted, y has that of its cotangent, and parts may be handed a wider one.
    """
    deviates = ("mixed_dtypes",) if case.promoted else ()
    yield _typed(case, "y", subject.observe(case).outputs["y"], case.g.dtype, deviates)
    for where_called, outputs in subject.outputs_in_modes(case, but_training=True):
        yield _typed(case, "y", outputs["y"], case.g.dtype, deviates, where_called)
    if case.record.composed and not case.promoted:
        yield from handed_as(subject, case)
    if subject.forward_only:
        return
    for name, value in _gradients(subject, case).items():
        if not _of_parameters(case, name):
            yield _typed(case, name, value, _owner_dtype(case, name))


@_mixed("CM-D3")
def dtypes_of_parameters(subject: Subject, case: Case) -> Iterator[Finding]:
    """New running statistics and the gradients of parameters are float32, as the parameters are."""
    for name, value in subject.observe(case).outputs.items():
        if _of_parameters(case, name):
            yield _typed(case, name, value, _owner_dtype(case, name))
    for name, value in _gradients(subject, case).items():
        if _of_parameters(case, name):
            yield _typed(case, name, value, _owner_dtype(case, name))
