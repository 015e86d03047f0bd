"""Sizes: large shapes and empty ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ...adapters.binding import differentiable
from ...spec.errors import MissingGradient
from ...spec.operators import Groups
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject
from .registry import check, in_training


@check("CM-S1", raising="violates", plain=True)
def sizes(subject: Subject, case: Case) -> Iterator[Finding]:
    """Long groups, many groups, and counts just past a power of two work like any other."""
    note = f"x of shape {case.x.shape}"
    for name, value in subject.observe(case).outputs.items():
        yield subject.judge_output(case, name, value, note=note)
    if not subject.slow:
        for where_called, outputs in subject.outputs_in_modes(case, but_training=True):
            yield subject.judge_output(case, "y", outputs["y"], note=f"{note}{where_called}")
    if subject.forward_only:
        return
    for name, value in subject.observe(case).gradients.items():
        yield subject.judge_gradient(case, name, value, note=note)


def emptied(case: Case, axis: int = 0) -> Case:
    """
    The case without any sample (batch_norm) or any group; leaves of x's shape are emptied too.

    ``axis``: which of the leading axes is empty, where groups lie along trailing ones.
    """
    if case.record.composed:
        shaped = {name: value for name, value in case.inputs.items() if value is not None}
        changes = {name: value[:0] for name, value in shaped.items() if value.shape == case.x.shape}
        return case.replace(g=case.g[:0], **changes)
    if case.record.has_channels and case.settings["channel_axis"] % case.x.ndim == 0:
        axis = 1
    return case.replace(x=np.take(case.x, [], axis=axis), g=np.take(case.g, [], axis=axis))


def _square_leaf(case: Case) -> bool:
    """Whether a matrix has x's shape by chance, so that `emptied` would empty it."""
    matrices = [v for name, v in case.inputs.items() if name.endswith((".w", ".k", ".a")) and v is not None]
    return any(matrix.shape == case.x.shape for matrix in matrices)


@check("CM-S2", when=in_training, raising="violates")
def no_groups(subject: Subject, case: Case) -> Iterator[Finding]:
    """Without groups, y is empty and the gradients of parameters are zero."""
    if not case.layout.before or _square_leaf(case):
        return
    _ = subject.observe(case).outputs
    yield from _judged_without_groups(subject, emptied(case))
    leading = case.x.ndim - len(case.settings.get("axes", ()))
    if case.record.groups is Groups.TRAILING and not case.record.composed and leading > 1:
        yield from _judged_without_groups(subject, emptied(case, leading - 1))


def _judged_without_groups(subject: Subject, empty: Case) -> Iterator[Finding]:
    for mode in subject.modes(empty):
        subject.outputs(empty, mode)  # it checks the shape
    y = subject.start(empty).outputs()["y"]
    if y.shape != empty.x.shape:
        note = f"y has shape {y.shape} in place of {empty.x.shape}"
        yield Finding(empty, violated=True, output="y", note=note, failure="shape")
        return
    yield Finding(empty, violated=False)
    if subject.forward_only:
        return
    yield from all_zero(empty, present_gradients(subject, empty), "no groups at all")


def present_gradients(subject: Subject, empty: Case) -> dict[str, np.ndarray]:
    """The gradients of a case without values. One may be absent, because an empty y depends on nothing."""
    try:
        return subject.pull(empty)
    except MissingGradient as absent:
        present = [name for name in differentiable(empty.operator, empty.inputs) if name not in absent.missing]
        return subject.pull(empty, wrt=tuple(present)) if present else {}


def all_zero(empty: Case, gradients: Mapping[str, np.ndarray], note: str) -> Iterator[Finding]:
    """Judge whether every gradient of a case without values is zero, like any sum of nothing."""
    for name, value in gradients.items():
        wrong = value.astype(np.float64).reshape(-1)
        wrong = wrong[wrong != 0]
        if wrong.size:
            yield Finding(empty, violated=True, output=name, expected=0.0, got=float(wrong[0]), note=note)
        else:
            yield Finding(empty, violated=False, output=name)
