"""How a real bug is written as a function: its name, the bugs that it shows, and its expected output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from normspec.adapters.target import Target

from ..runs import function
from .plain import Pull, batch, finished, forward, lines, pull, returned

Array = np.ndarray
Call = Callable[..., Any]


@attrs.frozen
class Written:
    """A function that has the mistake of some real bugs."""

    name: str
    operator: str
    #: What the function does, for readers of its output.
    what: str
    #: The bugs, as bugs.json names them.
    bugs: tuple[str, ...]
    #: A new function each time, for some keep a state, and its derivatives.
    build: Callable[[], tuple[Call, Mapping[str, Call]]]
    #: The dtype in which it shows.
    dtype: str = "float32"
    conventions: Mapping[str, str] = attrs.field(factory=dict)
    #: Why it conforms all the same; empty where it must not.
    conforms: str = ""

    def target(self) -> Target:
        """The function as a target."""
        call, derivatives = self.build()
        return function(self.operator, call, **derivatives)


#: Every function, in the order of the files.
WRITTEN: list[Written] = []


def whole(
    name: str, operator: str, what: str, *bugs: str, vjp: Call | None = None, **more: Any
) -> Callable[[Call], Call]:
    """Enter a function with the operator's signature, as it is; ``vjp``: its gradients."""

    def entered(call: Call) -> Call:
        derivatives = {} if vjp is None else {"vjp": vjp}
        WRITTEN.append(Written(name, operator, what, bugs, lambda: (call, derivatives), **more))
        return call

    return entered


def made(name: str, operator: str, what: str, *bugs: str, **more: Any) -> Callable[[Call], Call]:
    """Enter a maker of a function with the operator's signature, or of that and its derivatives; it keeps a state."""

    def entered(make: Call) -> Call:
        def build() -> tuple[Call, Mapping[str, Call]]:
            built = make()
            return built if isinstance(built, tuple) else (built, {})

        WRITTEN.append(Written(name, operator, what, bugs, build, **more))
        return make

    return entered


def _split(operator: str, parameters: tuple[Any, ...]) -> tuple[Any, ...]:
    """gamma, beta and the remaining parameters; rms_norm has no beta."""
    return (parameters[0], None, *parameters[1:]) if operator == "rms_norm" else parameters


def formula(name: str, operator: str, what: str, *bugs: str, **more: Any) -> Callable[[Call], Call]:
    """Enter a function by how it makes xhat of lines, a group each, and eps, both in the dtype of the computation."""

    def entered(change: Call) -> Call:
        def call(x: Array, *parameters: Any, eps: float, **settings: Any) -> Array:
            gamma, beta = _split(operator, parameters)
            rows = lines(operator, x, settings).rows
            return finished(operator, x, change(rows, rows.dtype.type(eps)), gamma, beta, settings)

        whole(name, operator, what, *bugs, **more)(call)
        return change

    return entered


def right_vjp(operator: str) -> Call:
    """The right gradients of an operator."""

    def vjp(x: Array, *parameters: Any, eps: float, **settings: Any) -> Any:
        gamma, beta, g = _split(operator, parameters)
        return pull(operator, x, gamma, beta, g, eps, settings).gradients()

    return vjp


def right_call(operator: str) -> Call:
    """The right y of an operator."""

    def call(x: Array, *parameters: Any, eps: float, **settings: Any) -> Array:
        gamma, beta = _split(operator, parameters)
        return forward(operator, x, gamma, beta, eps, settings)

    return call


def with_gradients(operator: str, change: Callable[[Pull], Any]) -> tuple[Call, Mapping[str, Call]]:
    """A right y, and the gradients that are made of the steps of the backward pass."""

    def vjp(x: Array, *parameters: Any, eps: float, **settings: Any) -> Any:
        gamma, beta, g = _split(operator, parameters)
        return change(pull(operator, x, gamma, beta, g, eps, settings))

    return right_call(operator), {"vjp": vjp}


def gradients(name: str, operator: str, what: str, *bugs: str, **more: Any) -> Callable[[Call], Call]:
    """Enter a function with right values, by the gradients that it makes from the steps of the backward pass."""

    def entered(change: Call) -> Call:
        made(name, operator, what, *bugs, **more)(lambda: with_gradients(operator, change))
        return change

    return entered


def batch_norm(name: str, what: str, *bugs: str, **more: Any) -> Callable[[Call], Call]:
    """Enter a batch_norm by the results that it makes from the steps of a call."""

    def entered(change: Call) -> Call:
        def call(x: Array, gamma: Any, beta: Any, running_mean: Array, running_var: Array, **settings: Any) -> Any:
            one = batch(x, gamma, beta, running_mean, running_var, settings)
            return returned(one, change(one))

        whole(name, "batch_norm", what, *bugs, **more)(call)
        return change

    return entered
