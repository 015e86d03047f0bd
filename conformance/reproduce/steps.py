"""The calls of a counterexample as steps of a script, each with the variables that hold its results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from ...adapters.binding import differentiable
from ..judging.call_log import LoggedCall
from ..judging.truth import gradient_name
from ..judging.verdicts import Counterexample
from .spelling import CannotWrite, Spelling, identifier

#: Derivatives of derivatives, by the name that a check gives them: the function beside a target, and the helper.
_NESTED = {
    "jvp of the vjp": ("jvp_vjp", "jvp_of_vjp"),
    "vjp of the jvp": ("vjp_jvp", "vjp_of_jvp"),
    "jvp of the jvp": ("jvp_jvp", "jvp_of_jvp"),
}

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
        if call.does == "jvp":
            return self._jvp(call)
        if call.does == "vjp of the vjp":
            return self._second_order(call)
        if call.does in _NESTED:
            return self._nested(call)
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
        return Step(call, (*lines, f"{', '.join(results.values())} = {expression}"), results, inputs)

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
            made = [f"{', '.join(results.values())} = {self.spelling.call(call, inputs)}", *given]
            taken, gradients = self._by_hand(call, inputs, handed["g"])
        else:
            made, results = self._differentiated(call, inputs)
            made = [*given, *made]
            taken, gradients = self._by_pulling(call, results["pull"], handed["g"])
        return Step(call, (*lines, *made, taken), {**results, **gradients}, {**inputs, **handed})

    def _by_pulling(self, call: LoggedCall, pull: str, g: str) -> tuple[str, dict[str, str]]:
        """The gradients from the framework's function for them."""
        gradients = self._gradients(self._wrt(call))
        return f"{', '.join(gradients.values())}{',' * (len(gradients) == 1)} = {pull}({g})", gradients

    def _by_hand(self, call: LoggedCall, inputs: Mapping[str, str], g: str) -> tuple[str, dict[str, str]]:
        """The gradients from a function that is defined beside the target."""
        if self.spelling.operator.composed:
            raise CannotWrite("in NumPy its gradients take parts that have derivatives of their own")
        if call.wrt is not None:
            raise CannotWrite("NumPy has no call that takes only some of the gradients")
        names = self.spelling.operator.differentiable
        gradients = self._gradients(names)
        expression = self.spelling.call(call, inputs, f"{self.spelling.function}_vjp", g)
        line = f"{', '.join(gradients.values())} = {expression}"
        return line, {gradient_name(n): gradients[gradient_name(n)] for n in names if call.inputs[n] is not None}

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
            line = f"{', '.join(results.values())} = {self.spelling.call(call, inputs)}"
            return Step(call, (*lines, line), results, inputs)
        return self._with_gradients(call, lines, inputs, {})

    # Other derivatives ----------------------------------------------------------------------------------------

    def _directions(self, call: LoggedCall, given: Mapping[str, Any], prefix: str) -> tuple[list[str], dict[str, str]]:
        """A tensor for each input that moves; zero if none is given."""
        names = self.spelling.operator.differentiable
        if not self._beside(call):
            names = differentiable(self.spelling.operator.name, call.inputs)
        arrays: dict[str, np.ndarray | None] = {}
        for name in names:
            like = call.inputs[name]
            if like is not None:
                one = given.get(name)
                arrays[f"{prefix}{name}"] = np.zeros_like(like) if one is None else one
        return self._tensors(arrays, {})

    def _beside(self, call: LoggedCall) -> bool:
        """Whether the derivative is a function beside the target."""
        name = {"jvp": "jvp", "vjp of the vjp": "vjp_vjp"}.get(call.does) or _NESTED[call.does][0]
        if name in self.spelling.written_out and self.spelling.operator.composed:
            raise CannotWrite("in NumPy its derivatives take parts that have derivatives of their own")
        return name in self.spelling.written_out

    def _explicit(self, variables: Mapping[str, str], prefix: str) -> list[str]:
        return [variables.get(f"{prefix}{name}", "None") for name in self.spelling.operator.differentiable]

    def _helper(self, name: str) -> str:
        if not self.spelling.has(name):
            raise CannotWrite(f"a script takes no {name.replace('_', ' ')} in this framework")
        return name

    def _jvp(self, call: LoggedCall) -> Step:
        lines, inputs = self._inputs(call)
        moved, tangents = self._directions(call, call.tangents, "t")
        ty = self._variable("ty")
        if self._beside(call):
            function = f"{self.spelling.function}_jvp"
            made = [f"{ty} = {self.spelling.call(call, inputs, function, *self._explicit(tangents, 't'))}"]
        else:
            names = differentiable(self.spelling.operator.name, call.inputs)
            name = self._variable("call")
            tensors, directions = _listed(inputs, names), _listed(tangents, [f"t{one}" for one in names])
            helper = self._helper("tangent")
            made = [
                self._function(call, inputs, name, names),
                f"{ty} = {helper}({name}, {tensors}, {directions})",
            ]
        return Step(call, (*lines, *moved, *made), {"tangent of y": ty}, inputs)

    def _second_order(self, call: LoggedCall) -> Step:
        lines, inputs = self._inputs(call)
        given, handed = self._tensors({"g": call.g}, {})
        record = self.spelling.operator
        if self._beside(call):
            moved, second = self._directions(call, call.cotangents, "s")
            bars = {name: self._variable(f"bar_{name}") for name in record.second_order_results}
            function = f"{self.spelling.function}_vjp_vjp"
            expression = self.spelling.call(call, inputs, function, handed["g"], *self._explicit(second, "s"))
            made = [f"{', '.join(bars.values())} = {expression}"]
        else:
            helper = self._helper("second_order")
            moved, second = self._directions(call, call.cotangents, "s")
            names = differentiable(record.name, call.inputs)
            bars = {name: self._variable(f"bar_{name}") for name in (*names, "g")}
            name = self._variable("call")
            tensors, seconds = _listed(inputs, names), _listed(second, [f"s{one}" for one in names])
            made = [
                self._function(call, inputs, name, names),
                f"{', '.join(bars.values())} = {helper}({name}, {tensors}, {handed['g']}, {seconds})",
            ]
        results = {
            f"second-order gradient of {name}": variable
            for name, variable in bars.items()
            if name == "g" or call.inputs[name] is not None
        }
        return Step(call, (*lines, *given, *moved, *made), results, {**inputs, **handed})

    def _nested(self, call: LoggedCall) -> Step:
        beside, helper = _NESTED[call.does]
        lines, inputs = self._inputs(call)
        given, handed = self._tensors({"g": call.g}, {})
        moved, tangents = self._directions(call, call.tangents, "t")
        more, again = self._directions(call, call.tangents_again, "a") if call.g is None else ([], {})
        names = self.spelling.operator.differentiable
        bare = call.does == "jvp of the jvp"
        results = {"y": self._variable("tty")} if bare else {one: self._variable(f"bar_{one}") for one in names}
        if self._beside(call):
            first, last = self._explicit(tangents, "t"), self._explicit(again, "a") if bare else [handed["g"]]
            order = [*last, *first] if call.does == "jvp of the vjp" else [*first, *last]
            expression = self.spelling.call(call, inputs, f"{self.spelling.function}_{beside}", *order)
            made = [f"{', '.join(results.values())} = {expression}"]
        else:
            moving = differentiable(self.spelling.operator.name, call.inputs)
            results = results if bare else {one: results.get(one) or self._variable(f"bar_{one}") for one in moving}
            name = self._variable("call")
            tensors, directions = _listed(inputs, moving), _listed(tangents, [f"t{one}" for one in moving])
            last = _listed(again, [f"a{one}" for one in moving]) if bare else handed["g"]
            variables = f"{', '.join(results.values())}{',' * (not bare and len(results) == 1)}"
            made = [
                self._function(call, inputs, name, moving),
                f"{variables} = {self._helper(helper)}({name}, {tensors}, {directions}, {last})",
            ]
        words = {"jvp_vjp": "forward over reverse in", "vjp_jvp": "reverse over forward in"}
        results_by_words = {
            "forward over forward of y" if bare else f"{words[beside]} {name}": variable
            for name, variable in results.items()
            if bare or call.inputs.get(name) is not None
        }
        return Step(call, (*lines, *given, *moved, *more, *made), results_by_words, {**inputs, **handed})


def _listed(variables: Mapping[str, str], names: Sequence[str]) -> str:
    return f"[{', '.join(variables[name] for name in names)}]"
