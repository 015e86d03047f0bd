"""Parts that behave strangely: reuse a buffer, return a wrong shape or dtype, raise, share a leaf, return x itself."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from ...adapters.same_bits import same_bits
from ...spec.errors import PART_ERRORS, BadOutput, TakesNoPart, TargetRaised, Unsupported
from ...spec.parts import Part, every_part
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject
from .later_calls import different_values
from .one_callable import handed_twice
from .part_calls import roles
from .refusal import judge_refusals, outputs_unless_refused
from .registry import check, recipes
from .relations import changed, same


def with_wrapped(case: Case, role: str, kind: str, number: float = 0.0) -> Case:
    """The case with one of its parts wrapped in a part of this kind."""

    def wrapped(part: Part) -> Part:
        return Part(kind, number=number, inner=() if kind == "raising" else (part,))

    name, _, place = role.partition(".")
    part = case.parts[name]
    assert part is not None
    if isinstance(part, tuple):
        chosen = tuple(wrapped(one) if str(i) == place else one for i, one in enumerate(part))
        return case.replace(parts={**case.parts, name: chosen})
    return case.replace(parts={**case.parts, name: wrapped(part)})


def _each_part(case: Case) -> list[str]:
    """The roles in which to put a strange part: of the branches only the first and the last."""
    found = roles(case)
    branches = [role for role in found if role.startswith("branches.")]
    return [role for role in found if role not in branches[1:-1]]


def before_y(case: Case) -> list[str]:
    """The same roles without the activation, which returns y itself."""
    return [role for role in _each_part(case) if role != "activation"]


@check("CM-C4", raising="violates", calls_often=True)
def buffers_stay_theirs(subject: Subject, case: Case) -> Iterator[Finding]:
    """A part that writes its result into one buffer, call after call, changes no earlier y."""
    wrapped = [(role, with_wrapped(case, role, "buffered")) for role in before_y(case)]
    subject.prefetch(case, _used_again(subject, case, [buffered for _, buffered in wrapped]))
    plain = subject.outputs(case, mode="inference")["y"]
    for role, buffered in wrapped:
        evaluation = subject.start(buffered, wrt=(), mode="inference")
        before = evaluation.outputs()["y"]
        yield same(subject, case, "y", before, plain, f"{role} owns the buffer that it returns")
        subject.outputs(different_values(buffered), mode="inference")
        note = f"y changed when {role} used its output buffer again"
        yield changed(before, evaluation.outputs()["y"], case, "y", note)


def _used_again(subject: Subject, case: Case, several: Iterable[Case]) -> Iterator[Callable[[], object]]:
    """The calls of a case, and those that show whether the buffer of a part is used again."""
    yield partial(subject.outputs, case, mode="inference")
    for buffered in several:
        evaluation = subject.start(buffered, wrt=(), mode="inference")
        yield partial(subject.outputs, different_values(buffered), mode="inference")
        yield evaluation.outputs


def _each_refused(subject: Subject, case: Case, kind: str, words: str) -> Iterator[Finding]:
    """Judge whether a call raises with a part of this kind in each of the roles."""
    _ = subject.observe(case).outputs
    calls = ((f"{role} {words}", with_wrapped(case, role, kind)) for role in before_y(case))
    yield from judge_refusals(subject, calls, mode="inference")


@check("CM-C5", when=lambda case: case.x.shape[-1] > 2, calls_often=True)
def misshapen_result(subject: Subject, case: Case) -> Iterator[Finding]:
    """A part's result that cannot be broadcast to x's shape raises, also if it has as many values as x."""
    yield from _each_refused(subject, case, "misshapen", "returned one feature too few")
    if case.x.size > case.x.shape[-1]:  # otherwise it is x's shape, or one that is broadcast to it
        yield from _each_refused(subject, case, "flattened", "returned as many values along one axis")


@check("CM-C6", when=lambda case: case.x.shape[-1] > 1)
def broadcast_result(subject: Subject, case: Case) -> Iterator[Finding]:
    """A part's result that would be broadcast to x's shape raises."""
    yield from _each_refused(subject, case, "broadcasting", "returned one feature, to be broadcast")


#: x's dtype -> another dtype that a part may return: a wider one, which y would take, where there is one.
_ANOTHER_DTYPE = {"float16": "float32", "bfloat16": "float32", "float32": "float64", "float64": "float32"}


@check("CM-C11", when=recipes("leaf"))
def result_of_another_dtype(subject: Subject, case: Case) -> Iterator[Finding]:
    """A part's result of another dtype raises, or leaves y in the dtype of x."""
    _ = subject.observe(case).outputs
    other = _ANOTHER_DTYPE[case.x.dtype.name]
    leaves = [name for name in case.inputs if name.endswith((".h", ".z"))]
    for name in dict.fromkeys((leaves[0], leaves[-1])):
        bad = case.replace(**{name: case.given(name).astype(other)})
        outputs = outputs_unless_refused(subject, bad, mode="inference")
        dtype = case.x.dtype if outputs is None else outputs["y"].dtype
        note = f"a part returned {other}, and y has dtype {dtype.name} in place of {case.x.dtype.name}"
        yield Finding(bad, violated=dtype != case.x.dtype, output="y", note=note, failure="dtype")


@check("CM-C7", calls_often=True)
def raising_part(subject: Subject, case: Case) -> Iterator[Finding]:
    """An exception raised in a part reaches the caller, alone or inside another, and later calls know nothing of it."""
    _ = subject.observe(case).outputs
    later = different_values(case)
    raised = {
        role: [with_wrapped(case, role, "raising", kind) for kind in range(len(PART_ERRORS))]
        for role in _each_part(case)
    }
    in_order = (one for calls in raised.values() for one in (*calls, later))
    subject.prefetch(case, (partial(subject.outputs, one, "inference") for one in (later, *in_order)))
    before = subject.outputs(later, mode="inference")["y"]
    for role, calls in raised.items():
        for error, bad in zip(PART_ERRORS, calls, strict=True):
            words = _came_instead(subject, bad)
            note = f"{role} raised {error.__name__}{words and f', and {words}'}"
            yield Finding(bad, violated=bool(words), output="y", note=note)
            if words:
                return
        yield _after_exception(subject, later, before, role)


def _after_exception(subject: Subject, later: Case, before: np.ndarray, role: str) -> Finding:
    """
    Judge a call of other values that follows one in which a part raised: nothing of that one may be left.

    ``before``: the y of the same call before any part raised. If it was wrong already, the formula judges that.
    """
    note = f"{role} raised in the last call"
    try:
        y = subject.outputs(later, mode="inference")["y"]
    except TargetRaised as raised:
        return Finding(later, violated=True, output="y", note=f"{note}, and this one raised {raised}", failure="raises")
    found = subject.judge_output(later, "y", y, note=note)
    return Finding(later, violated=False) if found.violated and same_bits(y, before) else found


def _came_instead(subject: Subject, bad: Case) -> str:
    """The outcome in place of a part's exception, in words; empty if the exception itself came."""
    try:
        subject.outputs(bad, mode="inference")
    except TargetRaised as raised:
        return "" if raised.by_a_part else f"what reached the caller is {raised} alone"
    except Unsupported as declined:
        return f"the call was declined: {declined}"
    except BadOutput as returned:
        return f"the call returned: {returned}"
    return "the call returned y"


@check("CM-C8", every=recipes("shared", "equal", "fuse_shared"), gradient=True)
def shared_leaves(subject: Subject, case: Case) -> Iterator[Finding]:
    """The gradients of a leaf that two parts share add up, also where one callable stands in both roles."""
    yield from _gradients_of_shared(subject, case, "a leaf that several parts close over")
    for first, second, twice in handed_twice(case):
        with contextlib.suppress(TakesNoPart):
            note = f"a leaf of one callable, passed as {first} and as {second}"
            yield from _gradients_of_shared(subject, twice, note)


def _gradients_of_shared(subject: Subject, case: Case, note: str) -> Iterator[Finding]:
    _ = subject.observe(case).outputs
    names = [leaf for part in every_part(case.parts) for leaf in part.all_leaves()]
    for name in sorted({f"d{name}" for name in names if names.count(name) > 1}):
        yield subject.judge_gradient(case, name, subject.observe(case).gradient(name), note=note)


@check("CM-C9", every=recipes("identity", "view"))
def x_itself(subject: Subject, case: Case) -> Iterator[Finding]:
    """A part that returns x itself, or a view of it, works like any other, and x stays as it is."""
    evaluation = subject.start(case, wrt=())
    yield subject.judge_output(case, "y", evaluation.outputs()["y"])
    now = evaluation.inputs()["x"]
    assert now is not None
    yield changed(case.x, now, case, "x", "x was changed by the call")
    if subject.forward_only:
        return
    gradients = subject.observe(case).gradients
    for name, value in gradients.items():
        yield subject.judge_gradient(case, name, value)
