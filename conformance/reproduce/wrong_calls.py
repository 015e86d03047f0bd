"""What a call does wrong besides numbers: it raises, returns something else, or changes what it was given."""

from __future__ import annotations

from ..judging.truth import owner_of
from .assertion_lines import Assertion, has_dtype, has_shape, has_type, is_there
from .probed_steps import ProbedSteps, alike
from .spelling import CannotWrite
from .step import Step


def raising(probed: ProbedSteps) -> Assertion | None:
    """A call that raises and has to return."""
    kinds = [one.raised for one in probed.happened[probed.last] if one.raised]
    if not kinds:
        return None
    told = probed.found.raised.type if probed.found.raised is not None else kinds[0]
    if probed.found.failure not in ("raises", "type", "count", "shape", "missing") or told != kinds[0]:
        raise CannotWrite(f"its call raises {kinds[0]} in a script")
    step = probed.last_step
    name = "dx" if probed.found.output == "gradient" and "dx" in step.results else next(iter(step.results))
    shape = step.call.inputs["x" if name in ("y", "dx") else owner_of(name)]
    lines = () if shape is None else (has_shape(step.results[name], tuple(shape.shape)),)
    return Assertion(probed.last, lines, f"the call raises {kinds[0]}, and must return")


def accepted(probed: ProbedSteps) -> Assertion | None:
    """A call that returns and has to raise."""
    if probed.found.failure != "accepts":
        return None
    return Assertion(probed.last, (), "the call returns, and must raise", raises=True)


def form(probed: ProbedSteps) -> Assertion | None:
    """A result of another type, shape or dtype, or none at all."""
    if probed.found.failure not in ("type", "count", "shape", "dtype", "missing"):
        return None
    step = probed.last_step
    for name, variable in step.results.items():
        owner = step.call.inputs.get(owner_of(name))
        for seen in probed.all(probed.last, name):
            if owner is None:
                continue
            x = step.inputs[owner_of(name)]
            if seen.missing and name != "y":
                return Assertion(probed.last, (is_there(variable),), f"{name} is missing")
            if seen.values is None:
                words = f"{name} is {'None' if seen.missing else f'of type {seen.kind}'}"
                return Assertion(probed.last, (has_type(variable, x),), words)
            shape = tuple(owner.shape)
            if seen.values.shape != shape:
                words = f"{name} has shape {seen.values.shape} in place of {shape}"
                return Assertion(probed.last, (has_shape(variable, shape),), words)
            if seen.dtype != str(owner.dtype):
                words = f"{name} has dtype {seen.dtype} in place of {owner.dtype}"
                return Assertion(probed.last, (has_dtype(variable, x),), words)
    return None


def missing(probed: ProbedSteps) -> Assertion | None:
    """A gradient that is missing at least once."""
    for place, step in enumerate(probed.steps):
        for name, variable in step.results.items():
            owner = step.call.inputs.get(owner_of(name))
            if owner is not None and any(seen.missing for seen in probed.all(place, name)):
                return Assertion(place, (is_there(variable),), f"{name} is missing")
    return None


def changed(probed: ProbedSteps) -> Assertion | None:
    """An input or a result that has changed since the call."""
    for place, step in enumerate(probed.steps):
        if step.again is not None:
            made = _changed_inputs(probed, place, step) or _changed_results(probed, place, step)
            if made is not None:
                return made
    return None


def _changed_inputs(probed: ProbedSteps, place: int, step: Step) -> Assertion | None:
    given = {**step.call.inputs, "g": step.call.g}
    if probed.judge.subject.conventions.get("gain") == "one-plus-gamma":
        given.pop("gamma", None)  # the target gets gamma - 1
    for name, variable in step.inputs.items():
        array = given.get(name)
        for seen in probed.all(place, f"{name} now"):
            if array is not None and seen.values is not None and not alike(seen.values, array):
                # Keep the numbers where the variable is set; for a cotangent that may be a later step.
                home = next(k for k, one in enumerate(probed.steps) if any(_sets(line, variable) for line in one.lines))
                words = f"{variable} was changed by the call"
                return Assertion(place, _is_as_before(variable, words), words, before={home: _keeping(variable)})
    return None


def _changed_results(probed: ProbedSteps, place: int, step: Step) -> Assertion | None:
    assert step.again is not None
    for name, variable in step.results.items():
        firsts, nows = probed.all(step.again, name), probed.all(place, name)
        if not firsts or not nows or firsts[-1].values is None or nows[-1].values is None:
            continue
        if not alike(firsts[-1].values, nows[-1].values):
            words = f"{variable} changed since it was returned"
            return Assertion(place, _is_as_before(variable, words), words, after={step.again: _keeping(variable)})
    return None


def _keeping(variable: str) -> tuple[str, ...]:
    return (f"before = numbers({variable})",)


def _is_as_before(variable: str, words: str) -> tuple[str, ...]:
    return (f"assert np.array_equal(numbers({variable}), before, equal_nan=True), {words!r}",)


def _sets(line: str, variable: str) -> bool:
    return line.startswith(f"{variable} = ")
