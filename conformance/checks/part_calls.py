"""What a composed operator does with its parts: calls each once, hands it the right thing, leaves it alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...adapters.errors import BadOutput, MissingGradient, TargetRaised, Unsupported
from ...adapters.part import ROLES, Part
from ...adapters.recording import Recorder
from ...reference.composed import Value
from ..cases.case import Case
from ..findings import Finding
from ..subject import Subject
from .composed_values import reached
from .purity import changed, other
from .registry import check, ordinary, recipes
from .relations import same


def _once_a_recipe(case: Case) -> bool:
    return "parts" in case.tags and ordinary(case)


def _recorder(subject: Subject, case: Case, **options: object) -> Recorder:
    recorder = subject.start(case, record=True, **options).recorder
    assert recorder is not None
    return recorder


def recorded(subject: Subject, case: Case) -> dict[str, list[np.ndarray]]:
    """What each part was handed in its first call, by role; BadOutput where that was no tensor."""
    found: dict[str, list[np.ndarray]] = {}
    for call in _recorder(subject, case).calls:
        values = [value for value in call.handed if isinstance(value, np.ndarray)]
        if len(values) < len(call.handed):
            raise BadOutput(f"{call.role} was handed something that is no tensor: {call.handed}")
        found.setdefault(call.role, values)
    for role in roles(case):
        if role not in found:
            raise BadOutput(f"{role} was never called")
    return found


def handed_value(subject: Subject, case: Case, role: str, place: int = 0) -> Callable[[bool], Value]:
    """What a part must be handed, and the envelope around it, under the declared or the normative conventions."""

    def value(normative: bool) -> Value:
        arithmetic = subject.arithmetic(case, normative=normative)
        return subject.truth(case, normative=normative).evaluation(arithmetic).handed()[role][place]

    return value


def roles(case: Case) -> list[str]:
    """The roles of a case's parts, the branches counted, in the order of ROLES."""
    found = []
    for role in ROLES[case.operator]:
        part = case.parts.get(role)
        if isinstance(part, tuple):
            found += [f"{role}.{place}" for place in range(len(part))]
        elif part is not None:
            found.append(role)
    return found


@check("CM-C1", when=_once_a_recipe)
def called_once(subject: Subject, case: Case) -> Iterator[Finding]:
    """Every part is called once in a forward pass, the branches in order, before what fuses them."""
    for mode in ("inference", "training"):
        called = [call.role for call in _recorder(subject, case, mode=mode).calls]
        for role in roles(case):
            if called.count(role) != 1:
                note = f"{role} was called {called.count(role)} times in one forward pass"
                yield Finding(case, violated=True, output="y", note=note)
                return
        ordered = [role for role in called if role.startswith("branches.") or role == "fuse"]
        wanted = [role for role in roles(case) if role in ordered]
        words = f"called in the order {', '.join(ordered)}"
        yield Finding(case, violated=ordered != wanted, output="y", note=words)


#: The parts that are handed x itself.
_OF_X = ("branch", "shortcut", "transform", "gate", "carry", "branches")


@check("CM-C2", when=_once_a_recipe)
def handed(subject: Subject, case: Case) -> Iterator[Finding]:
    """Each part is handed what the formula says, in x's shape and dtype."""
    recorder = _recorder(subject, case)
    branches = [call.returned for call in recorder.calls if call.role.startswith("branches.")]
    for call in recorder.calls:
        role = call.role.partition(".")[0]
        wanted = len(branches) if role == "fuse" else 1
        if len(call.handed) != wanted:
            note = f"{call.role} was handed {len(call.handed)} tensors in place of {wanted}"
            yield Finding(case, violated=True, output="y", note=note)
            return
        for place, value in enumerate(call.handed):
            words = _misfit(value, case)
            if words:
                yield Finding(case, violated=True, output="y", note=f"{call.role} was handed {words}")
                return
            assert isinstance(value, np.ndarray)
            if role in _OF_X or (role == "sublayer" and case.operator == "post_norm"):
                yield changed(case.x, value, case, "x", f"{call.role} is to be handed x itself")
            elif role == "fuse":
                branch = branches[place]
                if branch is not None:
                    yield changed(branch, value, case, "y", f"fuse is to be handed what branch {place} returned")
            else:  # LN(x), or the sum before the activation
                yield from judge_handed(subject, case, role, value)


def judge_handed(subject: Subject, case: Case, role: str, value: np.ndarray, note: str = "") -> Iterator[Finding]:
    """Compare what a part was handed with what it must be handed."""
    exact = handed_value(subject, case, role)
    yield subject.judge(case, f"what {role} is handed", value, exact(False).exact, lambda n: exact(n).error, note)


def _misfit(value: np.ndarray | str, case: Case) -> str:
    if isinstance(value, str):
        return f"no tensor: {value}"
    if value.shape != case.x.shape:
        return f"shape {value.shape} in place of {case.x.shape}"
    if value.dtype != case.x.dtype:
        return f"dtype {value.dtype.name} in place of {case.x.dtype.name}"
    return ""


@check("CM-C3", when=_once_a_recipe)
def left_alone(subject: Subject, case: Case) -> Iterator[Finding]:
    """Neither what a part was handed nor what it returned is changed, forward and backward."""
    for options in ({"wrt": ()}, {}):  # untracked first: there a framework lets anything be overwritten
        evaluation = subject.start(case, record=True, **options)
        recorder = evaluation.recorder
        assert recorder is not None
        yield from _unchanged(case, recorder, "the forward pass")
        if not options and not subject.forward_only:
            try:
                evaluation.pull(case.g).gradients()
            except (Unsupported, TargetRaised, BadOutput):
                return
            yield from _unchanged(case, recorder, "the backward pass")


def _unchanged(case: Case, recorder: Recorder, when: str) -> Iterator[Finding]:
    for call in recorder.calls:
        now = recorder.returned_now(call)
        if call.returned is not None and isinstance(now, np.ndarray):
            yield changed(call.returned, now, case, "y", f"what {call.role} returned was changed by {when}")
        for before, after in zip(call.handed, recorder.handed_now(call), strict=True):
            if isinstance(before, np.ndarray) and isinstance(after, np.ndarray):
                yield changed(before, after, case, "x", f"what {call.role} was handed was changed by {when}")


def _with(case: Case, role: str, kind: str) -> Case:
    """The case with one of its parts wrapped in a part of this kind."""

    def wrapped(part: Part) -> Part:
        return Part(kind, inner=() if kind == "raising" else (part,))

    name, _, place = role.partition(".")
    part = case.parts[name]
    assert part is not None
    if isinstance(part, tuple):
        chosen = tuple(wrapped(one) if str(i) == place else one for i, one in enumerate(part))
        return case.replace(parts={**case.parts, name: chosen})
    return case.replace(parts={**case.parts, name: wrapped(part)})


def _each_part(case: Case) -> list[str]:
    """
    The roles to put a strange part in: of many branches the first and the last, and all others but an activation.

    What an activation returns is y itself, for better or worse.
    """
    found = [role for role in roles(case) if role != "activation"]
    branches = [role for role in found if role.startswith("branches.")]
    return [role for role in found if role not in branches[1:-1]]


@check("CM-C4", when=_once_a_recipe, raising="violates")
def buffers_stay_theirs(subject: Subject, case: Case) -> Iterator[Finding]:
    """A part that writes its result into one buffer, call after call, changes no earlier y."""
    plain = subject.observe(case).outputs["y"]
    for role in _each_part(case):
        buffered = _with(case, role, "buffered")
        evaluation = subject.start(buffered, wrt=(), mode="inference")
        before = evaluation.outputs()["y"]
        yield same(subject, case, "y", before, plain, f"{role} owns the buffer that it returns")
        subject.start(other(buffered), wrt=(), mode="inference").outputs()
        note = f"y changed when {role} used its output buffer again"
        yield changed(before, evaluation.outputs()["y"], case, "y", note)


def _refused(subject: Subject, case: Case, kind: str, words: str) -> Iterator[Finding]:
    _ = subject.observe(case).outputs
    for role in _each_part(case):
        bad = _with(case, role, kind)
        try:
            y = subject.start(bad, wrt=(), mode="inference").outputs()["y"]
        except (TargetRaised, BadOutput):
            yield Finding(bad, violated=False)
        else:
            note = f"{role} {words}, and the call returned y of shape {y.shape} without raising"
            yield Finding(bad, violated=True, output="y", note=note)
            return


@check("CM-C5", when=lambda case: _once_a_recipe(case) and case.x.shape[-1] > 2)
def misshapen_result(subject: Subject, case: Case) -> Iterator[Finding]:
    """A part's result that cannot be broadcast to x's shape raises."""
    yield from _refused(subject, case, "misshapen", "returned one feature too few")


@check("CM-C6", when=lambda case: _once_a_recipe(case) and case.x.shape[-1] > 1)
def broadcast_result(subject: Subject, case: Case) -> Iterator[Finding]:
    """A part's result that would be broadcast to x's shape raises too."""
    yield from _refused(subject, case, "broadcasting", "returned one feature, to be broadcast")


@check("CM-C7", when=_once_a_recipe)
def raising_part(subject: Subject, case: Case) -> Iterator[Finding]:
    """What a part raises reaches the caller."""
    yield from _refused(subject, case, "raising", "raised")


@check("CM-C8", when=recipes("shared", "equal", "fuse_shared"), gradient=True)
def shared_leaves(subject: Subject, case: Case) -> Iterator[Finding]:
    """The gradients of a leaf that two parts share add up."""
    _ = subject.observe(case).outputs
    gradients = subject.observe(case).gradients
    names = [leaf for part in case.parts.values() if part for one in _several(part) for leaf in one.all_leaves()]
    for name in sorted({f"d{name}" for name in names if names.count(name) > 1}):
        value = reached(gradients, name)
        yield subject.judge_gradient(case, name, value, note="a leaf that several parts close over")


def _several(part: Part | tuple[Part, ...]) -> tuple[Part, ...]:
    return part if isinstance(part, tuple) else (part,)


@check("CM-C9", when=recipes("identity", "view"))
def x_itself(subject: Subject, case: Case) -> Iterator[Finding]:
    """A part that returns x itself, or a view of it, is like any other; x stays as it is."""
    evaluation = subject.start(case, wrt=())
    yield subject.judge_output(case, "y", evaluation.outputs()["y"])
    now = evaluation.inputs()["x"]
    assert now is not None
    yield changed(case.x, now, case, "x", "x was changed by the call")
    if subject.forward_only:
        return
    try:
        gradients = subject.observe(case).gradients
    except (Unsupported, MissingGradient):
        return
    for name, value in gradients.items():
        yield subject.judge_gradient(case, name, value)
