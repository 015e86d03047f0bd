"""Views: the memory layout of the inputs and of the cotangent makes no difference."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from functools import partial

import numpy as np

from ...adapters.layouts import LAYOUTS, why_not
from ...spec.errors import BadOutput, LayoutNotApplicable, TargetRaised, Unsupported
from ...spec.operators import Groups
from ..cases.case import Case
from ..judging.calls import checked_shapes
from ..judging.findings import Finding
from ..judging.subject import Subject
from .derived import affine_names
from .registry import check
from .relations import same, same_gradients
from .strange_parts import before_y, with_wrapped


def _views(subject: Subject) -> list[str]:
    """The layouts that the target's tensors can have, except the contiguous one."""
    return [layout for layout in subject.target.layouts if layout != "contiguous"]


def _repeated_group(case: Case) -> Case:
    """The case with x constant along an axis, so that a zero stride can hold it."""
    if case.record.groups is not Groups.CHANNEL:  # every sample the same
        return case.replace(x=np.broadcast_to(case.x[:1], case.x.shape).copy())
    rows = case.layout.rows(case.x)  # every channel the same
    return case.replace(x=case.layout.back(np.broadcast_to(rows[:1], rows.shape).copy()))


#: An offset of 16 bytes is tried where this divides the number of values: kernels load others one by one.
_IN_VECTORS = 8


def _is_tried(array: np.ndarray, layout: str) -> bool:
    """Whether an array that can have a layout is tried in it."""
    return layout != "offset_by_16_bytes" or array.size % _IN_VECTORS == 0


def _applies(case: Case, layouts: Mapping[str, str], cotangent: str = "contiguous") -> bool:
    """Whether the inputs of a case, and its cotangent, can have these layouts, and are tried in them."""
    given = [*((case.inputs[name], layout) for name, layout in layouts.items()), (case.g, cotangent)]
    return all(
        array is None or layout not in LAYOUTS or (why_not(array, layout) is None and _is_tried(array, layout))
        for array, layout in given
    )


def _is_called_untracked(subject: Subject, layouts: Mapping[str, str], cotangent: str) -> bool:
    """Whether a call on views is also made with nothing tracked: code may have a path of its own for inference."""
    return bool(layouts) and cotangent == "contiguous" and not subject.forward_only


def _untracked_mode(subject: Subject, case: Case, layouts: Mapping[str, str]) -> str:
    """
    The mode of a call on views where nothing is tracked: the framework's inference mode, where nothing is either.

    One layout is tried without it, which tells a path for inference mode from one for all that is not tracked.
    """
    return subject.modes(case)[-1] if "transposed" in layouts.values() else subject.strictest_mode(case)


#: A case as it is called, the layouts of its inputs, and the layout of the cotangent.
View = tuple[Case, dict[str, str], str]


def _calls(subject: Subject, views: Iterable[View], *, plain: bool = True) -> Iterator[Callable[[], object]]:
    """
    The calls needed to compare cases on views with their contiguous copies.

    Without ``plain``, without those on the copies: the cases are compared with another one.
    """

    def pulled(case: Case, layouts: dict[str, str], cotangent: str) -> object:
        return subject.start(case, layouts=layouts).pull(case.g, cotangent)

    seen: list[Case] = []
    for case, layouts, cotangent in views:
        if _applies(case, layouts, cotangent):
            untracked = _is_called_untracked(subject, layouts, cotangent)
            if plain and case not in seen:
                yield from subject.missing_calls(case, untracked=untracked)
                seen.append(case)
            if untracked:
                yield partial(
                    subject.start, case, layouts=layouts, wrt=(), mode=_untracked_mode(subject, case, layouts)
                )
            if subject.forward_only:
                yield partial(subject.start, case, layouts=layouts)
            else:
                yield partial(pulled, case, layouts, cotangent)


def _compared(
    subject: Subject,
    case: Case,
    layouts: dict[str, str],
    note: str,
    cotangent: str = "contiguous",
    handed: Case | None = None,
) -> Generator[Finding, None, Unsupported | None]:
    """
    Compare a call on views, and its gradients for a cotangent of this layout, with those on contiguous copies.

    ``handed`` is the case with parts that return views. Returns why there are no gradients.
    """
    if not _applies(case, layouts, cotangent):
        return None
    handed = handed or case
    plain = subject.observe(case)
    expected = plain.started
    if _is_called_untracked(subject, layouts, cotangent):
        yield from _compared_untracked(subject, case, layouts, note, handed)
    try:
        evaluation = subject.start(handed, layouts=layouts)
    except LayoutNotApplicable:
        return None
    except TargetRaised as raised:
        yield Finding(handed, violated=True, output="y", note=f"{note}: raised {raised}", failure="raises")
        return None
    for name, value in checked_shapes(evaluation.outputs(), case).items():
        yield same(subject, handed, name, value, expected[name], note)
    if subject.forward_only:
        return None
    try:
        contiguous = plain.gradients
        gradients = subject.named_gradients(evaluation.pull(case.g, cotangent).gradients(), case)
    except LayoutNotApplicable:
        return None
    except Unsupported as lacking:
        return lacking
    yield from same_gradients(subject, handed, gradients, contiguous, note)
    return None


def _compared_untracked(
    subject: Subject, case: Case, layouts: dict[str, str], note: str, handed: Case
) -> Iterator[Finding]:
    """Compare a call on views where nothing is tracked. If one on copies raises there, CM-P6 says so."""
    mode = _untracked_mode(subject, case, layouts)
    try:
        expected = subject.observe(case).untracked
    except (TargetRaised, BadOutput):
        return
    # The mode of a batch_norm is one of its settings; this is that of its framework, where nothing is tracked.
    in_inference = "in the framework's inference mode" if case.record.has_modes else "in inference mode"
    where_called = f"{note}, {'no gradients tracked' if mode == 'training' else in_inference}"

    def compared_with(expected: Mapping[str, np.ndarray]) -> list[Finding]:
        outputs = subject.start(handed, layouts=layouts, wrt=(), mode=mode).outputs()
        given = checked_shapes(outputs, case).items()
        return [same(subject, handed, name, value, expected[name], where_called) for name, value in given]

    try:
        found = compared_with(expected)
    except LayoutNotApplicable:
        return
    except TargetRaised as raised:
        with contextlib.suppress(TargetRaised):
            subject.outputs(handed, mode)
            words = f"{where_called}: raised {raised}"
            yield Finding(handed, violated=True, output="y", note=words, failure="raises")
        return
    if mode == "inference" and _failed(found):
        # CM-P6 is about what the mode changes on copies too. The views come last: the last call shows what is found.
        found = compared_with(subject.outputs(case, mode))
    yield from found


@check("CM-V1", raising="violates", calls_often=True)
def input_layouts(subject: Subject, case: Case) -> Iterator[Finding]:
    """Strided, sliced, transposed, offset, zero-stride and negative views equal their contiguous copies."""
    lacking, repeated = None, case.derived("a group repeated", _repeated_group)
    cases = {layout: repeated if layout == "zero_stride" else case for layout in _views(subject)}
    subject.prefetch(case, _calls(subject, ((one, {"x": layout}, "contiguous") for layout, one in cases.items())))
    for layout, handed in cases.items():
        _ = subject.observe(case).outputs
        lacking = (yield from _compared(subject, handed, {"x": layout}, f"x {_in_words(layout)}")) or lacking
    lacking = (yield from _laid_out_without_parameters(subject, case)) or lacking
    lacking = (yield from _results_laid_out(subject, case)) or lacking
    if lacking is not None:
        raise lacking


#: The layout in which x comes without some parameters too: kernels for images have a path of their own for it.
_OF_IMAGES = "channels_last"


def _laid_out_without_parameters(subject: Subject, case: Case) -> Generator[Finding, None, Unsupported | None]:
    """x in the layout of images, without gamma, without beta, and without both."""
    names, lacking = affine_names(case), None
    absent = [names, *([name] for name in names if len(names) > 1)] if _OF_IMAGES in _views(subject) else []
    cases = [
        (some, case.replace(**dict.fromkeys(some))) for some in absent if some and _applies(case, {"x": _OF_IMAGES})
    ]
    subject.prefetch(case, _calls(subject, ((one, {"x": _OF_IMAGES}, "contiguous") for _, one in cases)))
    for some, one in cases:
        try:
            _ = subject.observe(one).started
        except (Unsupported, TargetRaised, BadOutput):  # it takes no such call: other requirements are about that
            continue
        note = f"x {_in_words(_OF_IMAGES)}, no {' and no '.join(some)}"
        lacking = (yield from _compared(subject, one, {"x": _OF_IMAGES}, note)) or lacking
    return lacking


#: The layouts in which a part can return its result (spec/parts.py): as a transpose leaves it, and a slice.
_LAYOUTS_OF_RESULTS = ("transposed", "strided")


def _results_laid_out(subject: Subject, case: Case) -> Generator[Finding, None, Unsupported | None]:
    """Parts that return views: one alone, and all of them with an x that lies as their results do."""
    lacking, returning = None, before_y(case)
    views: list[tuple[str, Case, dict[str, str]]] = []
    for layout in (one for one in _LAYOUTS_OF_RESULTS if one in _views(subject)):
        everywhere = case
        for role in returning:
            alone, everywhere = with_wrapped(case, role, layout), with_wrapped(everywhere, role, layout)
            views.append((f"what {role} returns {_in_words(layout)}", alone, {}))
        if returning:
            views.append((f"x and what parts return {_in_words(layout)}", everywhere, {"x": layout}))
    asked = ((handed, layouts, "contiguous") for _, handed, layouts in views)
    subject.prefetch(case, _calls(subject, asked, plain=False))
    for note, handed, layouts in views:
        lacking = (yield from _compared(subject, case, layouts, note, handed=handed)) or lacking
    return lacking


def _with_constant(case: Case, names: list[str]) -> Case:
    """The case with one number for all of each of these parameters."""
    given = {name: case.given(name) for name in names}
    first = {name: value.reshape(-1)[:1] for name, value in given.items() if value.size}
    return case.replace(**{name: np.full(given[name].shape, one[0], one.dtype) for name, one in first.items()})


@check("CM-V3", raising="violates", calls_often=True)
def parameter_layouts(subject: Subject, case: Case) -> Iterator[Finding]:
    """Views of gamma, beta and running statistics equal their contiguous copies, whatever the layout of x."""
    # Only the part sees the leaves that it closes over; the operator does not.
    names = [name for name, value in case.inputs.items() if name != "x" and value is not None and "." not in name]
    views, lacking = _views(subject), None
    # The first two are layouts that a vector can have; the last is for parameters over several axes.
    of_parameters = [one for one in ("offset", "strided", "transposed", "negative") if one in views]
    beside = ("contiguous", *(one for one in _LAYOUTS_OF_X if one in views))
    tried = [(layout, x) for layout in of_parameters for x in beside]
    if "offset_by_16_bytes" in views:  # code that loads parameters in vectors has an x that is contiguous
        tried.append(("offset_by_16_bytes", "contiguous"))
    if "zero_stride" in views:  # one number that is expanded
        tried.append(("zero_stride", "contiguous"))
    several = [[name] for name in names] if len(names) > 1 else []
    constant = case.derived("constant parameters", partial(_with_constant, names=names))
    cases = {layout: constant if layout == "zero_stride" else case for layout, _ in tried}
    asked = (
        (cases[layout], _laid_out(chosen, layout, x), x)
        for layout, x in tried
        for chosen in ([names, *several] if (layout, x) == _LAYOUTS_FOR_EACH_ALONE else [names])
    )
    subject.prefetch(case, _calls(subject, asked))
    for layout, x in tried:
        handed = cases[layout]
        _ = subject.observe(handed).outputs
        together, why = _parameters(subject, handed, names, layout, x)
        lacking = why or lacking
        failed = _failed(together)
        if failed and x != "contiguous" and _failed(_parameters(subject, handed, [], "", x)[0]):
            continue  # the layout of x and its cotangent does it, which CM-V1 and CM-V2 judge
        one_by_one = several if failed or (layout, x) == _LAYOUTS_FOR_EACH_ALONE else []
        alone = [one for chosen in one_by_one for one in _parameters(subject, handed, chosen, layout, x)[0]]
        yield from alone if _failed(alone) else [*together, *alone]
    if lacking is not None:
        raise lacking


def _failed(findings: Iterable[Finding]) -> bool:
    return any(finding.violated for finding in findings)


#: Layouts of x and its cotangent for which a kernel may read the parameters in another way.
_LAYOUTS_OF_X = ("channels_last", "transposed")


#: The layouts of a parameter and of x with which each parameter is tried alone in any case: one that is read by the
#: strides of another shows only where theirs differ.
_LAYOUTS_FOR_EACH_ALONE = ("strided", "contiguous")


def _laid_out(names: list[str], layout: str, x: str) -> dict[str, str]:
    """The layouts of these parameters, and of x where it is not contiguous."""
    return {**dict.fromkeys(names, layout), **({} if x == "contiguous" else {"x": x})}


def _parameters(
    subject: Subject, case: Case, names: list[str], layout: str, x: str
) -> tuple[list[Finding], Unsupported | None]:
    """The findings of a call with these layouts of parameters and of x, and why there are no gradients."""
    note = f"{', '.join(names)} {_in_words(layout)}" + ("" if x == "contiguous" else f", x {_in_words(x)}")
    found: list[Finding] = []
    compared = _compared(subject, case, _laid_out(names, layout, x), note, x)
    while True:
        try:
            found.append(next(compared))
        except StopIteration as end:
            return found, end.value


@check("CM-V2", raising="violates", gradient=True, calls_often=True)
def cotangent_layouts(subject: Subject, case: Case) -> Iterator[Finding]:
    """The layout of the cotangent makes no difference to any gradient, beside an x in the same layout or another."""
    constant = case.derived("constant cotangents", _constant_cotangents)
    cases = {layout: constant if layout == "zero_stride" else (case,) for layout in _views(subject)}
    _ = subject.observe(case).gradients
    subject.prefetch(case, _pulls(subject, cases))
    for layout, several in cases.items():
        _ = subject.observe(case).gradients
        for handed in several:
            if not _applies(handed, {}, layout):
                continue
            try:
                pulled = subject.start(handed).pull(handed.g, layout)
            except LayoutNotApplicable:
                continue
            found = subject.named_gradients(pulled.gradients(), handed)
            contiguous = subject.observe(handed).gradients
            yield from same_gradients(subject, handed, found, contiguous, f"cotangent {_in_words(layout)}")
    yield from _both_laid_out(subject, case)


#: The layouts of x and of its cotangent. A tensor passes some on to what is computed from it, so that both often have
#: the same; code that reads one by the strides of the other is wrong where they differ.
_LAYOUTS_OF_BOTH = (
    ("channels_last", "channels_last"),
    ("transposed", "transposed"),
    ("leading_transposed", "leading_transposed"),
    ("strided", "transposed"),
)


def _both_laid_out(subject: Subject, case: Case) -> Iterator[Finding]:
    """x and its cotangent in layouts for which a kernel may have a path of its own."""
    views = _views(subject)
    both = [(x, g) for x, g in _LAYOUTS_OF_BOTH if x in views and g in views]
    subject.prefetch(case, _calls(subject, ((case, {"x": x}, g) for x, g in both)))
    for x, g in both:
        note = f"x and cotangent {_in_words(x)}" if x == g else f"x {_in_words(x)} and cotangent {_in_words(g)}"
        found = list(_compared(subject, case, {"x": x}, note, g))
        if _failed(found) and _failed(_compared(subject, case, {"x": x}, f"x {_in_words(x)}")):
            continue  # the layout of x alone does it, which CM-V1 judges
        yield from found


def _constant_cotangents(case: Case) -> tuple[Case, ...]:
    """The case with a cotangent as from a broadcast loss, and with one as from sum().backward()."""
    return tuple(case.replace(g=g) for g in (np.broadcast_to(case.g[:1], case.g.shape).copy(), np.ones_like(case.g)))


def _pulls(subject: Subject, cases: Mapping[str, Iterable[Case]]) -> Iterator[Callable[[], object]]:
    """The calls needed to compare cotangents of these layouts with contiguous ones."""

    def pulled(case: Case, layout: str) -> object:
        return subject.start(case).pull(case.g, layout)

    for layout, several in cases.items():
        for case in several:
            if _applies(case, {}, layout):
                yield partial(pulled, case, layout)
                yield from subject.missing_calls(case, outputs=False)  # for cases other than the given one


def _in_words(layout: str) -> str:
    """A layout behind the name of an array."""
    return "with negative strides" if layout == "negative" else layout
