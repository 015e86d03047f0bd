"""The calls of a counterexample as steps of a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from ..judging.call_log import LoggedCall
from ..judging.truth import gradient_name
from .derivatives import derivative_step, is_derivative
from .spelling import CannotWrite, Spelling
from .step import Step
from .variables import Variables, assigned

#: Calls that read the results of an earlier one again, and those that read its inputs.
_RESULTS_AGAIN = ("read the outputs again", "read the gradients again")
_INPUTS_AGAIN = ("read the inputs again", "read the cotangent again")


def steps(calls: Sequence[LoggedCall], spelling: Spelling) -> list[Step]:
    """A step for each call. Raises CannotWrite."""
    made: list[Step] = []
    writer = _Writer(calls, spelling)
    for place in range(len(calls)):
        made.append(writer.step(place, made))
    return made


class _Writer:
    def __init__(self, calls: Sequence[LoggedCall], spelling: Spelling) -> None:
        self.calls, self.spelling, self.variables = calls, spelling, Variables(spelling)

    def step(self, place: int, before: Sequence[Step]) -> Step:
        """The step of one call, given those before it."""
        call = self.calls[place]
        if call.does in (*_RESULTS_AGAIN, *_INPUTS_AGAIN):
            return self._again(call, before)
        if call.does == "call":
            return self._call(call, pulled=any(one.of == place and one.does == "vjp" for one in self.calls))
        if call.does.startswith("call with"):
            return self._overwritten(call, before[-1])
        if call.does == "vjp":
            return self._vjp(call) if call.of is None else self._pulled(call, before[call.of])
        if is_derivative(call):
            return derivative_step(call, self.variables)
        raise CannotWrite(call.does)

    @property
    def _own(self) -> bool:
        return "vjp" in self.spelling.written_out

    # Calls ----------------------------------------------------------------------------------------------------

    def _call(self, call: LoggedCall, *, pulled: bool) -> Step:
        lines, inputs = self.variables.of_inputs(call)
        if pulled and not self._own:
            made, results = self._differentiated(call, inputs)
            return Step(call, (*lines, *made), results, inputs)
        results, expression = self.variables.of_outputs(), self.spelling.call(call, inputs)
        wrapper = "inferred" if call.mode == "inference" and self.spelling.has("inferred") else "untracked"
        if (call.mode == "inference" or self.spelling.untracked) and self.spelling.has(wrapper):
            expression = f"{wrapper}(lambda: {expression})"
        return Step(call, (*lines, assigned(results, expression)), results, inputs)

    def _differentiated(self, call: LoggedCall, inputs: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """Lines for y and the function that takes its gradients, by the framework."""
        if not self.spelling.has("differentiated"):
            raise CannotWrite("it has no gradients that a script could take")
        names = self.variables.moving(call)
        function, y, pull = self.variables.new("call"), self.variables.new("y"), self.variables.new("pull")
        tensors = ", ".join(inputs[name] for name in names)
        lines = [
            self.variables.function(call, inputs, function, names),
            f"{y}, {pull} = differentiated({function}, [{tensors}])",
        ]
        return lines, {"y": y, "pull": pull}

    def _gradients(self, names: Sequence[str]) -> dict[str, str]:
        return {gradient_name(name): self.variables.new(gradient_name(name)) for name in names}

    def _vjp(self, call: LoggedCall) -> Step:
        lines, inputs = self.variables.of_inputs(call)
        return self._with_gradients(call, lines, inputs, call.layouts)

    def _with_gradients(
        self, call: LoggedCall, lines: Sequence[str], inputs: Mapping[str, str], layouts: Mapping[str, str]
    ) -> Step:
        """The step of a call and its gradients, after the lines that make its inputs."""
        given, handed = self.variables.of_arrays({"g": call.g}, layouts)
        if self._own:
            results = self.variables.of_outputs()
            made = [assigned(results, self.spelling.call(call, inputs)), *given]
            taken, gradients = self._by_hand(call, inputs, handed["g"])
        else:
            made, results = self._differentiated(call, inputs)
            made = [*given, *made]
            taken, gradients = self._by_pulling(call, results["pull"], handed["g"])
        return Step(call, (*lines, *made, taken), {**results, **gradients}, {**inputs, **handed})

    def _by_pulling(self, call: LoggedCall, pull: str, g: str) -> tuple[str, dict[str, str]]:
        """The gradients from the framework's function for them."""
        gradients = self._gradients(self.variables.moving(call))
        return assigned(gradients, f"{pull}({g})", of_sequence=True), gradients

    def _by_hand(self, call: LoggedCall, inputs: Mapping[str, str], g: str) -> tuple[str, dict[str, str]]:
        """The gradients from a function that is defined beside the target."""
        if self.spelling.operator.composed:
            raise CannotWrite("in NumPy its gradients take parts that have derivatives of their own")
        if call.wrt is not None:
            raise CannotWrite("NumPy has no call that takes only some of the gradients")
        names = self.spelling.operator.differentiable
        gradients = self._gradients(names)
        expression = self.spelling.call(call, inputs, f"{self.spelling.function}_vjp", g)
        return assigned(gradients, expression), {
            gradient_name(n): gradients[gradient_name(n)] for n in names if call.inputs[n] is not None
        }

    def _pulled(self, call: LoggedCall, first: Step) -> Step:
        """The gradients of an earlier call."""
        given, handed = self.variables.of_arrays({"g": call.g}, call.layouts)
        inputs = {**first.inputs, **handed}
        if self._own:
            taken, gradients = self._by_hand(attrs.evolve(first.call, wrt=None), first.inputs, handed["g"])
        else:
            taken, gradients = self._by_pulling(first.call, first.results["pull"], handed["g"])
        return Step(attrs.evolve(first.call, does="vjp", g=call.g), (*given, taken), gradients, inputs)

    def _again(self, call: LoggedCall, before: Sequence[Step]) -> Step:
        assert call.of is not None
        first = before[call.of]
        results = dict(first.results) if call.does in _RESULTS_AGAIN else {}
        return Step(first.call, (), results, dict(first.inputs), again=call.of)

    def _overwritten(self, call: LoggedCall, first: Step) -> Step:
        """A second call that uses the memory of the first."""
        if not self.spelling.has("overwritten"):
            raise CannotWrite(f"a {call.does}")
        fresh = call.does.startswith("call with new")
        lines, inputs = [], {}
        for name, array in self.spelling.inputs(call).items():
            if array is not None:
                inputs[name] = self.variables.new(name)
                other = self.spelling.array(array)
                lines.append(f"{inputs[name]} = overwritten({first.inputs[name]}, {other}, {fresh})")
        if call.g is None:
            results = self.variables.of_outputs()
            return Step(call, (*lines, assigned(results, self.spelling.call(call, inputs))), results, inputs)
        return self._with_gradients(call, lines, inputs, {})
