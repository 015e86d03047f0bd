"""Steps that take derivatives of a call other than its gradients: in forward mode, and of the second order."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from ...adapters.layouts import fitting
from ..judging.call_log import COTANGENTS, Arrays, LoggedCall
from .spelling import CannotWrite, Spelling
from .step import Step
from .variables import Variables, assigned, listed


@attrs.frozen
class _Given:
    """What a derivative is given besides the arguments of the call: the field of the call that has it."""

    field: str
    #: What the names of its variables begin with. A direction has one for each input: "tx", "tgamma".
    prefix: str

    def arrays(self, call: LoggedCall, names: Sequence[str]) -> dict[str, np.ndarray]:
        """The direction by the names of its variables; zero where the call gives none."""
        given: Arrays = getattr(call, self.field)
        found = {}
        for name in names:
            like, one = call.inputs[name], given.get(name)
            if like is not None:
                found[self.prefix + name] = np.zeros_like(like) if one is None else one
        return found


#: The cotangent of y, one tensor.
_G = _Given("g", "g")
_TANGENTS = _Given("tangents", "t")
_TANGENTS_AGAIN = _Given("tangents_again", "a")
_COTANGENTS = _Given("cotangents", "s")

#: The order in which a script makes directions.
_DIRECTIONS = (_TANGENTS, _COTANGENTS, _TANGENTS_AGAIN)


@attrs.frozen(kw_only=True)
class _Derivative:
    #: The function beside a target, and what it is given after the arguments of the call.
    function: str
    given: tuple[_Given, ...]
    #: The framework's helper, and what it is given after the function and its tensors.
    helper: str
    helper_given: tuple[_Given, ...] = attrs.field(default=attrs.Factory(lambda self: self.given, takes_self=True))
    #: The variable of each result and the name that a check gives it, with a place for the input that it belongs to.
    variable: str
    words: str

    @property
    def of_inputs(self) -> bool:
        """Whether it has a result for each input, and not only one for y."""
        return "{}" in self.words


#: By the name that a check gives them.
_DERIVATIVES = {
    "jvp": _Derivative(
        function="jvp", given=(_TANGENTS,), helper="tangent", variable="ty", words="tangent of y"
    ),
    "vjp of the vjp": _Derivative(
        function="vjp_vjp", given=(_G, _COTANGENTS), helper="second_order",
        variable="bar_{}", words="second-order gradient of {}",
    ),
    "jvp of the vjp": _Derivative(
        function="jvp_vjp", given=(_G, _TANGENTS), helper="jvp_of_vjp", helper_given=(_TANGENTS, _G),
        variable="bar_{}", words="forward over reverse in {}",
    ),
    "vjp of the jvp": _Derivative(
        function="vjp_jvp", given=(_TANGENTS, _G), helper="vjp_of_jvp",
        variable="bar_{}", words="reverse over forward in {}",
    ),
    "jvp of the jvp": _Derivative(
        function="jvp_jvp", given=(_TANGENTS, _TANGENTS_AGAIN), helper="jvp_of_jvp",
        variable="tty", words="forward over forward of y",
    ),
}  # fmt: skip


def is_derivative(call: LoggedCall) -> bool:
    """Whether a call is a derivative other than the gradients."""
    return call.does in _DERIVATIVES


def derivative_step(call: LoggedCall, variables: Variables) -> Step:
    """A derivative by the function beside the target, or else by the framework's helper. Raises CannotWrite."""
    kind, spelling = _DERIVATIVES[call.does], variables.spelling
    lines, inputs = variables.of_inputs(call)
    own, moving = _is_beside(kind.function, spelling), variables.moving(call)
    names = spelling.operator.differentiable if own else moving
    more, cotangent = variables.of_arrays({"g": call.g}, {})
    lines += more
    given = {_G: [*cotangent.values()]}
    for direction in _DIRECTIONS:
        if direction in kind.given:
            arrays = direction.arrays(call, names)
            layout = call.layouts.get(COTANGENTS, "contiguous")
            more, made = variables.of_arrays(arrays, {name: fitting(one, layout) for name, one in arrays.items()})
            lines += more
            given[direction] = [made.get(direction.prefix + name, "None") for name in names]
    if kind.function == "vjp_vjp":
        names = spelling.operator.second_order_results if own else (*moving, "g")
    results = {name: variables.new(kind.variable.format(name)) for name in (names if kind.of_inputs else ("y",))}
    if own:
        arguments = [one for what in kind.given for one in given[what]]
        expression = spelling.call(call, inputs, f"{spelling.function}_{kind.function}", *arguments)
    else:
        function = variables.new("call")
        lines.append(variables.function(call, inputs, function, moving))
        if not spelling.has(kind.helper):
            raise CannotWrite(f"a script takes no {kind.helper.replace('_', ' ')} in this framework")
        tensors = listed([inputs[name] for name in moving])
        arguments = [given[what][0] if what == _G else listed(given[what]) for what in kind.helper_given]
        expression = f"{kind.helper}({', '.join([function, tensors, *arguments])})"
    lines.append(assigned(results, expression, of_sequence=kind.of_inputs))
    told = {
        kind.words.format(name): variable
        for name, variable in results.items()
        if name in ("y", "g") or call.inputs.get(name) is not None
    }
    return Step(call, tuple(lines), told, {**inputs, **cotangent})


def _is_beside(function: str, spelling: Spelling) -> bool:
    """Whether the derivative is a function beside the target."""
    if function in spelling.written_out and spelling.operator.composed:
        raise CannotWrite("in NumPy its derivatives take parts that have derivatives of their own")
    return function in spelling.written_out
