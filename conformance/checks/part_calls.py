"""How a composed operator treats its parts: it calls each once, with the right input, and spares their tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ...adapters.recording import Recorder
from ...reference.composed import Value
from ...spec.errors import BadOutput, TakesNoPart
from ...spec.parts import Part, every_part
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject
from .later_calls import different_values
from .one_callable import handed_twice, in_two_callables
from .registry import check
from .relations import changed
from .ways_to_call import other_layouts


def _recorder(subject: Subject, case: Case, **options: object) -> Recorder:
    recorder = subject.start(case, record=True, **options).recorder
    assert recorder is not None
    return recorder


def recorded(subject: Subject, case: Case) -> dict[str, list[np.ndarray]]:
    """The inputs of each part's first call, by role; raises BadOutput if a part was not called or got no tensor."""
    found: dict[str, list[np.ndarray]] = {}
    for call in _recorder(subject, case).calls:
        values = [value for value in call.handed if isinstance(value, np.ndarray)]
        if len(values) < len(call.handed):
            raise BadOutput(f"{call.role} was handed something that is not a tensor: {call.handed}")
        found.setdefault(call.role, values)
    for role in roles(case):
        if role not in found:
            raise BadOutput(f"{role} was never called")
    return found


def handed_value(subject: Subject, case: Case, role: str) -> Callable[[bool], Value]:
    """The exact input of a part's first call and its envelope, under the declared or the normative conventions."""

    def value(normative: bool) -> Value:
        arithmetic = subject.arithmetic(case, normative=normative)
        return subject.truth(case, normative=normative).handed(arithmetic)[role][0]

    return value


def roles(case: Case) -> list[str]:
    """The roles of a case's parts in the order of a call, with a number for each branch."""
    found = []
    for role in case.record.roles:
        part = case.parts.get(role)
        if isinstance(part, tuple):
            found += [f"{role}.{place}" for place in range(len(part))]
        elif part is not None:
            found.append(role)
    return found


@check("CM-C1", calls_often=True)
def called_once(subject: Subject, case: Case) -> Iterator[Finding]:
    """Every part is called once in a forward pass: the branches in order, and fuse after them."""
    modes, layouts = ("inference", "training"), other_layouts(subject, case)
    twice = list(handed_twice(case))
    calls = [partial(_recorder, subject, one, mode=mode) for mode in modes for one in (case, *(t for *_, t in twice))]
    subject.prefetch(case, [*calls, *(partial(_recorder, subject, case, layouts={"x": one}) for one in layouts)])
    for mode in modes:
        yield from _called_in_order(case, _recorder(subject, case, mode=mode), "")
        for first, second, one in twice:
            with contextlib.suppress(TakesNoPart):
                yield _each_role_called(_recorder(subject, one, mode=mode), first, second, one)
    for layout in layouts:
        yield from _called_in_order(case, _recorder(subject, case, layouts={"x": layout}), f", x {layout}")
    for first, second, one in twice:
        if any(map(_counts_calls, every_part(one.parts))):  # its results in two roles depend on which comes first
            continue
        with contextlib.suppress(TakesNoPart):
            note = f"one callable was passed as {first} and as {second}"
            found = _y_of(subject, one, note)
            # Where y is wrong with two callables that do the same, that they are one is not why.
            if not (found.violated and _y_of(subject, in_two_callables(one), note).violated):
                yield found


def _y_of(subject: Subject, case: Case, note: str) -> Finding:
    return subject.judge_output(case, "y", subject.outputs(case, "inference")["y"], note=note)


def _counts_calls(part: Part) -> bool:
    return part.kind == "counted" or any(map(_counts_calls, part.inner))


def _called_in_order(case: Case, recorder: Recorder, where: str) -> Iterator[Finding]:
    called = [call.role for call in recorder.calls]
    for role in roles(case):
        if called.count(role) != 1:
            note = f"{role} was called {called.count(role)} times in one forward pass{where}"
            yield Finding(case, violated=True, output="y", note=note)
            return
    ordered = [role for role in called if role.startswith("branches.") or role == "fuse"]
    wanted = [role for role in roles(case) if role in ordered]
    words = f"called in the order {', '.join(ordered)}{where}"
    yield Finding(case, violated=ordered != wanted, output="y", note=words)


def _each_role_called(recorder: Recorder, first: str, second: str, twice: Case) -> Finding:
    """One callable in two roles is called for each."""
    count = sum(call.role == first for call in recorder.calls)  # the name under which both are recorded
    note = f"one callable was passed as {first} and as {second}, and was called {count} times in one forward pass"
    return Finding(twice, violated=count != 2, output="y", note=note)


#: The parts whose input is x itself.
_OF_X = ("branch", "shortcut", "transform", "gate", "carry", "branches")


@check("CM-C2")
def handed(subject: Subject, case: Case) -> Iterator[Finding]:
    """Each part gets the input that the formula says, to the last bit where that is x or a branch's output."""
    recorder = _recorder(subject, case)
    branches = {call.role: call.returned for call in recorder.calls if call.role.startswith("branches.")}
    for call in recorder.calls:
        role = call.role.partition(".")[0]
        wanted = len(branches) if role == "fuse" else 1
        if len(call.handed) != wanted:
            note = f"{call.role} was handed {len(call.handed)} tensors in place of {wanted}"
            yield Finding(case, violated=True, output="y", note=note)
            return
        for place, value in enumerate(call.handed):
            if misfit(value, case):
                continue  # CM-C10 judges it, and there is nothing to compare
            assert isinstance(value, np.ndarray)
            if role in _OF_X or (role == "sublayer" and case.record.normalises_sum):
                yield changed(case.x, value, case, "x", f"{call.role} is to be handed x itself")
            elif role == "fuse":
                branch = branches.get(f"branches.{place}")
                if branch is not None:
                    yield changed(branch, value, case, "y", f"fuse is to be handed what branch {place} returned")
            else:  # LN(x), or the sum before the activation
                yield from judge_handed(subject, case, role, value)


@check("CM-C10", calls_often=True)
def handed_as(subject: Subject, case: Case) -> Iterator[Finding]:
    """Each part gets tensors of x's shape and dtype."""
    laid_out: list[dict[str, str]] = [{}, *({"x": layout} for layout in other_layouts(subject, case))]
    subject.prefetch(case, (partial(_recorder, subject, case, layouts=one) for one in laid_out))
    for layouts in laid_out:
        where = f", x {layouts['x']}" if layouts else ""
        for call in _recorder(subject, case, layouts=layouts).calls:
            for value in call.handed:
                words = misfit(value, case)
                yield Finding(case, violated=bool(words), output="y", note=f"{call.role} was handed {words}{where}")


def judge_handed(subject: Subject, case: Case, role: str, value: np.ndarray, note: str = "") -> Iterator[Finding]:
    """Compare a part's input with the exact one."""
    exact = handed_value(subject, case, role)
    yield subject.judge(
        case, f"what {role} is handed", value, exact(False).exact, lambda normative: exact(normative).error, note
    )


def misfit(value: np.ndarray | str, case: Case) -> str:
    """How a tensor differs from x in shape or dtype, in words; "" if it does not."""
    if isinstance(value, str):
        return f"no tensor: {value}"
    if value.shape != case.x.shape:
        return f"shape {value.shape} in place of {case.x.shape}"
    if value.dtype != case.x.dtype:
        return f"dtype {value.dtype.name} in place of {case.x.dtype.name}"
    return ""


@check("CM-C3", calls_often=True)
def left_alone(subject: Subject, case: Case) -> Iterator[Finding]:
    """Neither the forward nor the backward pass changes a part's inputs or its outputs."""

    def asked(**options: Any) -> Iterator[Callable[[], object]]:
        evaluation = subject.start(case, record=True, **options)
        assert evaluation.recorder is not None
        yield evaluation.recorder.lists_are_whole  # this reads everything that was recorded
        if not options:
            if not subject.forward_only:
                evaluation.pull(case.g)
                yield evaluation.recorder.lists_are_whole
            yield partial(subject.outputs, different_values(case))
            yield evaluation.recorder.lists_are_whole

    for options in ({"wrt": ()}, {}):  # untracked first: a framework then lets anything be overwritten
        subject.prefetch(case, asked(**options))
        evaluation = subject.start(case, record=True, **options)
        recorder = evaluation.recorder
        assert recorder is not None
        yield from _unchanged(case, recorder, "the forward pass")
        if not options and not subject.forward_only:
            evaluation.pull(case.g).gradients()
            yield from _unchanged(case, recorder, "the backward pass")
        if not options:  # tensors that a part saved for its derivatives must survive the calls of other layers
            subject.outputs(different_values(case))
            yield from _handed_unchanged(case, recorder, "a later call")


def _unchanged(case: Case, recorder: Recorder, when: str) -> Iterator[Finding]:
    if case.record.has_branches:
        same = recorder.lists_are_whole()
        yield Finding(case, violated=not same, output="y", note=f"the list of branches was changed by {when}")
    for call in recorder.calls:
        now = recorder.returned_now(call)
        if call.returned is not None and isinstance(now, np.ndarray):
            yield changed(call.returned, now, case, "y", f"what {call.role} returned was changed by {when}")
    yield from _handed_unchanged(case, recorder, when)


def _handed_unchanged(case: Case, recorder: Recorder, when: str) -> Iterator[Finding]:
    for call in recorder.calls:
        for before, after in zip(call.handed, recorder.handed_now(call), strict=True):
            if isinstance(before, np.ndarray) and isinstance(after, np.ndarray):
                yield changed(before, after, case, "x", f"what {call.role} was handed was changed by {when}")
