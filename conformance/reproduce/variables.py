"""The variables of a script, and lines that give them their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from ...adapters.binding import differentiable
from ..judging.call_log import LoggedCall
from .spelling import Spelling, identifier


@attrs.define
class Variables:
    """The variables of one script."""

    spelling: Spelling
    #: How often each name was taken.
    _taken: dict[str, int] = attrs.field(factory=dict, init=False)

    def new(self, name: str) -> str:
        """A new variable with this name, numbered if an earlier step has it."""
        name = identifier(name)
        count = self._taken[name] = self._taken.get(name, 0) + 1
        return name if count == 1 else f"{name}_{count}"

    def of_arrays(
        self, arrays: Mapping[str, np.ndarray | None], layouts: Mapping[str, str]
    ) -> tuple[list[str], dict[str, str]]:
        """Lines that make tensors of the arrays that are there, and the variable of each by name."""
        lines, variables = [], {}
        for name, array in arrays.items():
            if array is not None:
                variables[name] = self.new(name)
                lines.append(f"{variables[name]} = {self.spelling.array(array, layouts.get(name, ''))}")
        return lines, variables

    def of_inputs(self, call: LoggedCall) -> tuple[list[str], dict[str, str]]:
        """The same for the inputs of a call."""
        return self.of_arrays(self.spelling.inputs(call), call.layouts)

    def of_outputs(self) -> dict[str, str]:
        """A new variable for each output of the operator."""
        return {name: self.new(name) for name in self.spelling.operator.outputs}

    def function(self, call: LoggedCall, inputs: Mapping[str, str], name: str, moving: Sequence[str]) -> str:
        """The definition of y as a function of some of the inputs."""
        parameters = {one: identifier(one) for one in moving}
        expression = self.spelling.call(call, {**inputs, **parameters})
        one = "[0]" if len(self.spelling.operator.outputs) > 1 else ""
        return f"def {name}({', '.join(parameters.values())}):\n    return {expression}{one}"

    def moving(self, call: LoggedCall) -> list[str]:
        """The inputs whose gradients are wanted."""
        names = differentiable(self.spelling.operator.name, call.inputs)
        return [name for name in names if call.wrt is None or name in call.wrt]


def assigned(results: Mapping[str, str], expression: str, *, of_sequence: bool = False) -> str:
    """The line that assigns a value to variables; ``of_sequence``: one variable gets its only element."""
    comma = "," if of_sequence and len(results) == 1 else ""
    return f"{', '.join(results.values())}{comma} = {expression}"


def listed(variables: Sequence[str]) -> str:
    """A list of variables, as an expression."""
    return f"[{', '.join(variables)}]"
