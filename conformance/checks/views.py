"""Views: how the values lie in memory makes no difference, for the inputs and for the cotangent."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from ...adapters.errors import LayoutNotApplicable, TargetRaised, Unsupported
from ..cases.case import Case
from ..findings import Finding
from ..subject import Subject, checked_shapes
from .groups import as_rows, from_rows
from .registry import check, ordinary
from .relations import same, same_gradients


def _for_layouts(case: Case) -> bool:
    return "layout" in case.tags and (ordinary(case) or "inference" in case.tags)


def _views(subject: Subject) -> list[str]:
    """The layouts that the target's tensors can have, beside the contiguous one."""
    return [layout for layout in subject.target.layouts if layout != "contiguous"]


def _repeated_group(case: Case) -> Case:
    """The case with x constant along an axis, so that a zero stride can hold it."""
    if case.operator != "batch_norm":  # every group the same
        return case.replace(x=np.broadcast_to(case.x[:1], case.x.shape).copy())
    rows = as_rows(case, case.x)  # every channel the same
    return case.replace(x=from_rows(case, np.broadcast_to(rows[:1], rows.shape).copy()))


def _compared(
    subject: Subject, case: Case, layouts: dict[str, str], note: str
) -> Generator[Finding, None, Unsupported | None]:
    """Compare a call on views with the call on their contiguous copies, and return why there are no gradients."""
    plain = subject.observe(case)
    try:
        evaluation = subject.start(case, layouts=layouts)
    except LayoutNotApplicable:
        return None
    except TargetRaised as raised:
        yield Finding(case, violated=True, output="y", note=f"{note}: raised {raised}", failure="raises")
        return None
    for name, value in checked_shapes(evaluation.outputs(), case).items():
        yield same(subject, case, name, value, plain.outputs[name], note)
    if subject.forward_only:
        return None
    try:
        contiguous = plain.gradients
        gradients = subject.named_gradients(evaluation.pull(case.g).gradients(), case)
    except Unsupported as lacking:
        return lacking
    yield from same_gradients(subject, case, gradients, contiguous, note)
    return None


@check("CM-V1", when=_for_layouts, raising="violates")
def input_layouts(subject: Subject, case: Case) -> Iterator[Finding]:
    """Strided, transposed, offset, zero-stride and negative views of x equal their contiguous copies."""
    lacking = None
    for layout in _views(subject):
        _ = subject.observe(case).outputs
        handed = _repeated_group(case) if layout == "zero_stride" else case
        lacking = (yield from _compared(subject, handed, {"x": layout}, f"x {layout}")) or lacking
    if lacking is not None:
        raise lacking


@check("CM-V3", when=_for_layouts, raising="violates")
def parameter_layouts(subject: Subject, case: Case) -> Iterator[Finding]:
    """Strided and offset gamma, beta and running statistics equal their contiguous copies."""
    # What a part closes over is the part's: the operator never sees it.
    names = [name for name, value in case.inputs.items() if name != "x" and value is not None and "." not in name]
    lacking = None
    for layout in sorted({"strided", "offset"}.intersection(_views(subject))):  # what holds anything for a vector
        _ = subject.observe(case).outputs
        for name in names:
            lacking = (yield from _compared(subject, case, {name: layout}, f"{name} {layout}")) or lacking
    if lacking is not None:
        raise lacking


@check("CM-V2", when=_for_layouts, raising="violates", gradient=True)
def cotangent_layouts(subject: Subject, case: Case) -> Iterator[Finding]:
    """The layout of the cotangent makes no difference to any gradient."""
    subject.require_gradients()
    for layout in _views(subject):
        _ = subject.observe(case).gradients
        cotangents = [case.g]
        if layout == "zero_stride":  # what a broadcast loss hands over, and what sum().backward() does
            cotangents = [np.broadcast_to(case.g[:1], case.g.shape).copy(), np.ones_like(case.g)]
        for g in cotangents:
            handed = case if g is case.g else case.replace(g=g)
            try:
                pulled = subject.start(handed).pull(handed.g, layout)
            except LayoutNotApplicable:
                continue
            contiguous = subject.observe(handed).gradients
            found = subject.named_gradients(pulled.gradients(), handed)
            yield from same_gradients(subject, handed, found, contiguous, f"cotangent {layout}")
