"""What a call does not use: inputs that its y does not depend on, and parts that it does not call."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import attrs
import numpy as np

from ...spec.errors import CALL_FAILED, MissingGradient
from ...spec.parts import Parts
from ..cases.case import Case
from ..checks.part_calls import roles
from ..judging.library import fitted
from ..judging.subject import Subject
from ..judging.verdicts import Result
from .question import results_if_any


def cases_of_unused_inputs(subject: Subject, result: Result) -> tuple[Case, ...]:
    """
    Two cases whose y must differ, if the right y depends on inputs that no gradient reaches, and the target's does not.

    The first shows the violation; the second has other numbers in those inputs. Empty for any other violation.
    """
    case = _case_without_gradients(subject, result)
    if case is None:
        return ()
    missing = missing_gradients(subject, case)
    return (case, with_others(case, missing)) if is_independent_of(subject, case, missing) else ()


def is_of_uncalled_parts(subject: Subject, result: Result) -> bool:
    """Whether a violation is about parts alone that are not called: their leaves, or what they were replaced by."""
    shown, case = result.counterexample, _case_without_gradients(subject, result)
    if case is not None:
        about = parts_of(missing_gradients(subject, case))
    else:
        case = _case_found_on(subject, result)
        if shown is None or case is None:
            return False
        before, after = _by_role(case.parts), _by_role(shown.parts)
        about = {role for role in before if before[role] != after.get(role)}
    return bool(about) and about <= {*uncalled(subject, case)}


def missing_gradients(subject: Subject, case: Case) -> tuple[str, ...]:
    """The inputs that no gradient of a fresh call reaches; empty if each has one, or if the call fails otherwise."""
    subject.target.begin()
    with contextlib.suppress(*CALL_FAILED):
        try:
            subject.pull(case)
        except MissingGradient as found:
            return found.missing
    return ()


def is_independent_of(subject: Subject, case: Case, names: Iterable[str]) -> bool:
    """
    Whether y keeps its bits when some inputs change, so that there is nothing for a gradient to reach.

    A function whose calls vary shows nothing: y is then seldom the same.
    """
    names = tuple(names)
    before, after = (results_if_any(subject, one, gradients=False) for one in (case, with_others(case, names)))
    return bool(names) and "y" in before and "y" in after and np.array_equal(before["y"], after["y"], equal_nan=True)


def with_others(case: Case, names: Iterable[str]) -> Case:
    """The case with another finite number in the place of each in some inputs."""
    given = {name: value for name in names if (value := case.inputs.get(name)) is not None}
    others = {name: np.where(np.isfinite(one), one.astype(np.float64) * -2 + 1, one) for name, one in given.items()}
    return case.replace(**{name: one.astype(given[name].dtype) for name, one in others.items()})


def uncalled(subject: Subject, case: Case) -> tuple[str, ...]:
    """The roles of the parts that a call does not call; empty if it calls all, or fails."""
    wanted = roles(case)
    if wanted:
        subject.target.begin()
        with contextlib.suppress(*CALL_FAILED):
            recorder = subject.start(case, record=True).recorder
            called = wanted if recorder is None else [call.role for call in recorder.calls]
            return tuple(role for role in wanted if role not in called)
    return ()


def parts_of(leaves: Iterable[str]) -> set[str]:
    """The roles of the parts that close over some leaves; "" for an input of the call itself."""
    return {name.rpartition(".")[0] for name in leaves}


def _by_role(parts: Parts) -> dict[str, object]:
    """Each part by its role, a branch with its number."""
    found: dict[str, object] = {}
    for role, part in parts.items():
        found.update({f"{role}.{i}": one for i, one in enumerate(part)} if isinstance(part, tuple) else {role: part})
    return found


def _case_without_gradients(subject: Subject, result: Result) -> Case | None:
    """The very case of a call that lacks gradients, if a violation is that; its check may have made it of another."""
    shown, found_on = result.counterexample, _case_found_on(subject, result)
    g = None if shown is None else shown.inputs.get("g")
    if shown is None or shown.failure != "missing" or g is None or found_on is None:
        return None
    return attrs.evolve(found_on, inputs=shown.arguments, settings=shown.settings, g=g, parts=shown.parts)


def _case_found_on(subject: Subject, result: Result) -> Case | None:
    """The case that a violation was found on, in the form that the target takes."""
    fit = fitted(result.violated_on, subject.binding)
    return None if fit is None else subject.new_library().fresh(fit)
