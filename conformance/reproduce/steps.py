"""The calls of a counterexample as steps of a script, each with the variables that hold its results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs
import numpy as np

from ...adapters.binding import differentiable
from ...adapters.layouts import fitting
from ..judging.call_log import COTANGENTS, LoggedCall
from ..judging.truth import gradient_name
from ..judging.verdicts import Counterexample
from .spelling import CannotWrite, Spelling, identifier


@attrs.frozen
class _Derivative:
    """A derivative of a call other than its gradients. "g" is the cotangent; _DIRECTIONS has the other letters."""

    #: The function beside a target, and what it is handed after the arguments of the call.
    function: str
    handed: str
    #: The framework's helper, and what it is handed after the function and its tensors.
    helper: str
    given: str
    #: The variable of each result and the name that a check gives it, with a place for the input that it belongs to.
    variable: str
    words: str

    @property
    def of_inputs(self) -> bool:
        """Whether it has a result for each input, and not only one for y."""
        return "{}" in self.words


#: By the name that a check gives them.
_DERIVATIVES = {
    "jvp": _Derivative("jvp", "t", "tangent", "t", "ty", "tangent of y"),
    "vjp of the vjp": _Derivative("vjp_vjp", "gs", "second_order", "gs", "bar_{}", "second-order gradient of {}"),
    "jvp of the vjp": _Derivative("jvp_vjp", "gt", "jvp_of_vjp", "tg", "bar_{}", "forward over reverse in {}"),
    "vjp of the jvp": _Derivative("vjp_jvp", "tg", "vjp_of_jvp", "tg", "bar_{}", "reverse over forward in {}"),
    "jvp of the jvp": _Derivative("jvp_jvp", "ta", "jvp_of_jvp", "ta", "tty", "forward over forward of y"),
}

#: The directions of a derivative: the letter that the names of their variables begin with, and the field of a call.
_DIRECTIONS = {"t": "tangents", "s": "cotangents", "a": "tangents_again"}

#: Calls that read something again, and what they read.
_AGAIN = {
    "read the outputs again": "results",
    "read the gradients again": "results",
    "read the inputs again": "inputs",
    "read the cotangent again": "cotangent",
}


@attrs.frozen
class Step:
    """One thing that the script asks of the target."""

    call: LoggedCall
    lines: tuple[str, ...]
    #: The variable of each result, and of each input, by name; "g" is the cotangent.
    results: Mapping[str, str]
    inputs: Mapping[str, str]
    #: For a step that reads something again: the place of the step that it belongs to.
    again: int | None = None

    @property
    def times(self) -> int:
        """How often it is done, one time after the other."""
        return self.call.times if self.again is None else 1

    @property
    def read(self) -> dict[str, str]:
        """The variables to read after it: results by name, and inputs as "x now"."""
        return {**self.results, **{f"{name} now": variable for name, variable in self.inputs.items()}}


def sequences(found: Counterexample) -> Iterator[tuple[LoggedCall, ...]]:
    """
    The calls that may show a violation, the shortest sequence first.

    First the one call; then all calls of the check; then these after the plain call of the case and its gradients. A
    check does not repeat the plain call if another check has made it.
    """
    calls = found.calls if found.shown_by is None else found.calls[: found.shown_by + 1]
    if calls and calls[-1].of is None and not calls[-1].does.startswith("call with"):
        yield calls[-1:]
    elif calls and calls[-1].of is not None and calls[calls[-1].of].of is None:
        yield calls[calls[-1].of], attrs.evolve(calls[-1], of=0)
    if len(calls) > 1:
        yield calls
    plain = _plain(found)
    yield (*plain, *(one if one.of is None else attrs.evolve(one, of=one.of + len(plain)) for one in calls))


def _plain(found: Counterexample) -> tuple[LoggedCall, ...]:
    """The plain call of the case, and its gradients if these are wrong."""
    case = found.case
    inputs = {name: value for name, value in found.inputs.items() if name != "g"} if case is None else case.inputs
    settings, parts = (found.settings, found.parts) if case is None else (case.settings, case.parts)
    g = found.inputs["g"] if case is None else case.g
    call = LoggedCall("call", inputs, settings, parts)
    if found.output == "gradient" or found.output.removeprefix("d") in inputs:
        return (call, attrs.evolve(call, does="vjp", g=g))
    return (call,)


def steps(calls: Sequence[LoggedCall], spelling: Spelling) -> list[Step]:
    """A step for each call. Raises CannotWrite."""
    made: list[Step] = []
    writer = _Writer(calls, spelling)
    for place in range(len(calls)):
        made.append(writer.step(place, made))
    return made


class _Writer:
    def __init__(self, calls: Sequence[LoggedCall], spelling: Spelling) -> None:
        self.calls, self.spelling = calls, spelling
        #: How often each name was taken for a variable.
        self.taken: dict[str, int] = {}

    def step(self, place: int, before: Sequence[Step]) -> Step:
        """The step of one call, given those before it."""
        call = self.calls[place]
        if call.does in _AGAIN:
            return self._again(call, before)
        if call.does == "call":
            return self._call(call, pulled=any(one.of == place and one.does == "vjp" for one in self.calls))
        if call.does.startswith("call with"):
            return self._overwritten(call, before[-1])
        if call.does == "vjp":
            return self._vjp(call) if call.of is None else self._pulled(call, before[call.of])
        if call.does in _DERIVATIVES:
            return self._derivative(call)
        raise CannotWrite(call.does)

    # Variables ------------------------------------------------------------------------------------------------

    def _variable(self, name: str) -> str:
        """A new variable with this name, numbered if an earlier step has it."""
        name = identifier(name)
        count = self.taken[name] = self.taken.get(name, 0) + 1
        return name if count == 1 else f"{name}_{count}"

    def _tensors(self, arrays: Mapping[str, np.ndarray | None], layouts: Mapping[str, str]) -> tuple[list[str], dict]:
        lines, variables = [], {}
        for name, array in arrays.items():
            if array is not None:
                variables[name] = self._variable(name)
                lines.append(f"{variables[name]} = {self.spelling.array(array, layouts.get(name, ''))}")
        return lines, variables

    def _inputs(self, call: LoggedCall) -> tuple[list[str], dict[str, str]]:
        return self._tensors(self.spelling.inputs(call), call.layouts)

    def _outputs(self) -> dict[str, str]:
        return {name: self._variable(name) for name in self.spelling.operator.outputs}

    def _wrt(self, call: LoggedCall) -> list[str]:
        """The inputs whose gradients are wanted."""
        names = differentiable(self.spelling.operator.name, call.inputs)
        return [name for name in names if call.wrt is None or name in call.wrt]

    @property
    def _own(self) -> bool:
        return "vjp" in self.spelling.written_out

    # Calls ----------------------------------------------------------------------------------------------------

    def _call(self, call: LoggedCall, *, pulled: bool) -> Step:
        lines, inputs = self._inputs(call)
        if pulled and not self._own:
            made, results = self._differentiated(call, inputs)
            return Step(call, (*lines, *made), results, inputs)
        results, expression = self._outputs(), self.spelling.call(call, inputs)
        wrapper = "inferred" if call.mode == "inference" and self.spelling.has("inferred") else "untracked"
        if (call.mode == "inference" or self.spelling.untracked) and self.spelling.has(wrapper):
            expression = f"{wrapper}(lambda: {expression})"
        return Step(call, (*lines, _assigned(results, expression)), results, inputs)

    def _differentiated(self, call: LoggedCall, inputs: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """Lines for y and the function that takes its gradients, by the framework."""
        if not self.spelling.has("differentiated"):
            raise CannotWrite("it has no gradients that a script could take")
        names = self._wrt(call)
        function, y, pull = self._variable("call"), self._variable("y"), self._variable("pull")
        tensors = ", ".join(inputs[name] for name in names)
        lines = [
            self._function(call, inputs, function, names),
            f"{y}, {pull} = differentiated({function}, [{tensors}])",
        ]
        return lines, {"y": y, "pull": pull}

    def _function(self, call: LoggedCall, inputs: Mapping[str, str], name: str, moving: Sequence[str]) -> str:
        """y as a function of some of the inputs."""
        parameters = {one: identifier(one) for one in moving}
        expression = self.spelling.call(call, {**inputs, **parameters})
        one = "[0]" if len(self.spelling.operator.outputs) > 1 else ""
        return f"def {name}({', '.join(parameters.values())}):\n    return {expression}{one}"

    def _gradients(self, names: Sequence[str]) -> dict[str, str]:
        return {gradient_name(name): self._variable(gradient_name(name)) for name in names}

    def _vjp(self, call: LoggedCall) -> Step:
        lines, inputs = self._inputs(call)
        return self._with_gradients(call, lines, inputs, call.layouts)

    def _with_gradients(
        self, call: LoggedCall, lines: Sequence[str], inputs: Mapping[str, str], layouts: Mapping[str, str]
    ) -> Step:
        """The step of a call and its gradients, after the lines that make its inputs."""
        given, handed = self._tensors({"g": call.g}, layouts)
        if self._own:
            results = self._outputs()
            made = [_assigned(results, self.spelling.call(call, inputs)), *given]
            taken, gradients = self._by_hand(call, inputs, handed["g"])
        else:
            made, results = self._differentiated(call, inputs)
            made = [*given, *made]
            taken, gradients = self._by_pulling(call, results["pull"], handed["g"])
        return Step(call, (*lines, *made, taken), {**results, **gradients}, {**inputs, **handed})

    def _by_pulling(self, call: LoggedCall, pull: str, g: str) -> tuple[str, dict[str, str]]:
        """The gradients from the framework's function for them."""
        gradients = self._gradients(self._wrt(call))
        return _assigned(gradients, f"{pull}({g})", of_sequence=True), gradients

    def _by_hand(self, call: LoggedCall, inputs: Mapping[str, str], g: str) -> tuple[str, dict[str, str]]:
        """The gradients from a function that is defined beside the target."""
        if self.spelling.operator.composed:
            raise CannotWrite("in NumPy its gradients take parts that have derivatives of their own")
        if call.wrt is not None:
            raise CannotWrite("NumPy has no call that takes only some of the gradients")
        names = self.spelling.operator.differentiable
        gradients = self._gradients(names)
        expression = self.spelling.call(call, inputs, f"{self.spelling.function}_vjp", g)
        return _assigned(gradients, expression), {
            gradient_name(n): gradients[gradient_name(n)] for n in names if call.inputs[n] is not None
        }

    def _pulled(self, call: LoggedCall, first: Step) -> Step:
        """The gradients of an earlier call."""
        given, handed = self._tensors({"g": call.g}, call.layouts)
        inputs = {**first.inputs, **handed}
        if self._own:
            taken, gradients = self._by_hand(attrs.evolve(first.call, wrt=None), first.inputs, handed["g"])
        else:
            taken, gradients = self._by_pulling(first.call, first.results["pull"], handed["g"])
        return Step(attrs.evolve(first.call, does="vjp", g=call.g), (*given, taken), gradients, inputs)

    def _again(self, call: LoggedCall, before: Sequence[Step]) -> Step:
        assert call.of is not None
        first = before[call.of]
        what = _AGAIN[call.does]
        read = first.results if what == "results" else first.inputs
        return Step(first.call, (), dict(read) if what == "results" else {}, dict(first.inputs), again=call.of)

    def _overwritten(self, call: LoggedCall, first: Step) -> Step:
        """A second call that uses the memory of the first."""
        if not self.spelling.has("overwritten"):
            raise CannotWrite(f"a {call.does}")
        fresh = call.does.startswith("call with new")
        lines, inputs = [], {}
        for name, array in self.spelling.inputs(call).items():
            if array is not None:
                inputs[name] = self._variable(name)
                other = self.spelling.array(array)
                lines.append(f"{inputs[name]} = overwritten({first.inputs[name]}, {other}, {fresh})")
        if call.g is None:
            results = self._outputs()
            return Step(call, (*lines, _assigned(results, self.spelling.call(call, inputs))), results, inputs)
        return self._with_gradients(call, lines, inputs, {})

    # Other derivatives ----------------------------------------------------------------------------------------

    def _derivative(self, call: LoggedCall) -> Step:
        """A derivative by the function beside the target, or else by the framework's helper."""
        kind, record = _DERIVATIVES[call.does], self.spelling.operator
        lines, inputs = self._inputs(call)
        own, moving = self._is_beside(kind.function), tuple(self._wrt(call))
        given, cotangent = self._tensors({"g": call.g}, {})
        names = record.differentiable if own else moving
        moved, handed = self._directions(call, kind, names)
        lines += [*given, *moved]
        handed["g"] = [*cotangent.values()]
        if kind.function == "vjp_vjp":
            names = record.second_order_results if own else (*moving, "g")
        results = {name: self._variable(kind.variable.format(name)) for name in (names if kind.of_inputs else ("y",))}
        if own:
            arguments = [one for letter in kind.handed for one in handed[letter]]
            expression = self.spelling.call(call, inputs, f"{self.spelling.function}_{kind.function}", *arguments)
        else:
            function = self._variable("call")
            lines.append(self._function(call, inputs, function, moving))
            if not self.spelling.has(kind.helper):
                raise CannotWrite(f"a script takes no {kind.helper.replace('_', ' ')} in this framework")
            arguments = [handed["g"][0] if letter == "g" else _listed(handed[letter]) for letter in kind.given]
            tensors = _listed([inputs[name] for name in moving])
            expression = f"{kind.helper}({', '.join([function, tensors, *arguments])})"
        lines.append(_assigned(results, expression, of_sequence=kind.of_inputs))
        told = {
            kind.words.format(name): variable
            for name, variable in results.items()
            if name in ("y", "g") or call.inputs.get(name) is not None
        }
        return Step(call, tuple(lines), told, {**inputs, **cotangent})

    def _is_beside(self, function: str) -> bool:
        """Whether the derivative is a function beside the target."""
        if function in self.spelling.written_out and self.spelling.operator.composed:
            raise CannotWrite("in NumPy its derivatives take parts that have derivatives of their own")
        return function in self.spelling.written_out

    def _directions(
        self, call: LoggedCall, kind: _Derivative, names: Sequence[str]
    ) -> tuple[list[str], dict[str, list[str]]]:
        """The lines that make the directions, zero if none is given; and by letter the variables in order."""
        lines, handed = [], {}
        for letter, field in _DIRECTIONS.items():
            if letter in kind.handed:
                given: Mapping[str, np.ndarray | None] = getattr(call, field)
                likes = {name: like for name in names if (like := call.inputs[name]) is not None}
                arrays = {
                    f"{letter}{name}": np.zeros_like(like) if (one := given.get(name)) is None else one
                    for name, like in likes.items()
                }
                layout = call.layouts.get(COTANGENTS, "contiguous")
                layouts = {name: fitting(one, layout) for name, one in arrays.items()}
                made, variables = self._tensors(arrays, layouts)
                lines += made
                handed[letter] = [variables.get(f"{letter}{name}", "None") for name in names]
        return lines, handed


def _assigned(results: Mapping[str, str], expression: str, *, of_sequence: bool = False) -> str:
    """The line that assigns a value to variables; ``of_sequence``: one variable gets its only element."""
    comma = "," if of_sequence and len(results) == 1 else ""
    return f"{', '.join(results.values())}{comma} = {expression}"


def _listed(variables: Sequence[str]) -> str:
    return f"[{', '.join(variables)}]"
