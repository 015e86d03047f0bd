"""Evaluations: one call of a target, with its results and gradients, read afresh each time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..spec.errors import BadOutput, MissingGradient, Unsupported
from .binding import Binding, idle
from .bridge import Bridge
from .call_arguments import CallArguments
from .caller import Caller
from .recording import Recorder
from .stage import Stage


@dataclass
class Evaluation:
    """One call of a target, with its inputs and outputs, both readable at any later time."""

    _caller: Caller
    tensors: dict[str, Any]
    arguments: CallArguments
    _wrt: tuple[str, ...]
    #: The number of elements of x; it decides how many threads the call uses.
    size: int
    #: The results, once the call has returned.
    results: dict[str, Any] = field(default_factory=dict)
    #: The calls of the parts, if they were recorded.
    recorder: Recorder | None = None
    #: y of the further call that a functional framework makes for the gradients.
    _y_of_pull: Any = None

    @property
    def tracked(self) -> bool:
        """Whether anything is tracked for gradients."""
        return bool(self._wrt)

    def enter_network(self, intermediate: Collection[str]) -> None:
        """Before the call: make these inputs results of other operations, and other tracked ones parameters."""
        bridge = self._caller.bridge
        for name in self._wrt:
            turned = bridge.intermediate if name in intermediate else bridge.parameter
            self.tensors[name] = turned(self.tensors[name])

    def outputs(self) -> dict[str, np.ndarray]:
        """The present values of the results, read again each time, so that a reused buffer shows."""
        return {name: self._caller.read(value, name) for name, value in self.results.items()}

    def tracked_outputs(self) -> dict[str, np.ndarray]:
        """The results of the call whose gradients were taken. A functional framework makes a further call for y."""
        if self._y_of_pull is None:
            return self.outputs()
        return {"y": self._caller.read(self._y_of_pull, "y")}

    def inputs(self) -> dict[str, np.ndarray | None]:
        """The present values of the inputs; a difference from the original means that the target changed it."""
        return {
            name: None if tensor is None else self._caller.read(tensor, name) for name, tensor in self.tensors.items()
        }

    def pull(self, g: np.ndarray, layout: str = "contiguous", *, keep: bool = False) -> EvaluationGradients:
        """
        The gradients of sum(y * g) with respect to the inputs in ``wrt`` of the evaluation.

        ``keep`` allows another pull afterwards, which a framework may otherwise refuse.

        If gradients reach every argument but no leaf of a part, the function cannot differentiate closures, and the
        gradients of the leaves are None.

        Raises MissingGradient if an input gets no gradient, Unsupported if the target has no gradients or the
        evaluation was made in inference mode, and BadOutput if y does not have the cotangent's shape and dtype.
        """
        caller = self._caller
        bridge, binding, y = caller.bridge, caller.binding, self.results.get("y")
        if not self._wrt:
            raise Unsupported("nothing was tracked: the evaluation was started in inference mode, or for no gradient")
        own = binding.derivatives.get("vjp")
        if own is None and not bridge.differentiates:
            raise Unsupported(f"{binding.name} has no gradients: no function named {derivative_name(binding, 'vjp')}")
        cotangent = caller.bridge.tensor(g, layout, caller.device)
        with Stage("vjp"), bridge.guarded(self.size, gradients=True):
            if own is not None and not bridge.tracks(y):
                if binding.prepare is not None:
                    binding.prepare(mode="training", wrt=self._wrt)
                named = self._handwritten_gradients(own, cotangent)
            elif bridge.functional:
                named = dict(zip(self._wrt, self._gradients_of_second_call(cotangent)))
            else:
                check_like(y, g.shape, g.dtype.name, bridge)
                found = bridge.vjp(y, [self.tensors[name] for name in self._wrt], cotangent, keep=keep)
                named = dict(zip(self._wrt, found))
                left = [name for name in self._wrt if bridge.gradient_left(self.tensors[name])]
                if left:
                    raise BadOutput(f"the call wrote {left[0]}.grad, to which the framework adds the gradient")
            bridge.synchronise(caller.device)
            leaves = tuple(name for name in self._wrt if "." in name)
            names = (*binding.record.differentiable, *leaves)
            gradients = {name: named.get(name) if name in self._wrt else None for name in names}
            for name in idle(binding.operator, self.arguments.parts):
                if name in self._wrt and gradients[name] is None:
                    gradients[name] = self._zeros(name)
            missing = tuple(name for name in self._wrt if gradients[name] is None)
            if missing and missing != leaves:
                raise MissingGradient(f"no gradient reaches {', '.join(missing)}", missing)
            for name in self._wrt:
                if name not in missing:
                    bridge.check_tensor(gradients[name], f"the gradient of {name}")
        return EvaluationGradients(caller, gradients, cotangent)

    def _gradients_of_second_call(self, cotangent: Any) -> list[Any | None]:
        """Call the target again to take the gradients."""
        caller = self._caller
        call = caller.y_of(self.arguments, self.tensors, self._wrt)
        inputs = [self.tensors[name] for name in self._wrt]
        self._y_of_pull, found = caller.bridge.pullback(call, inputs, cotangent)
        return found

    def _handwritten_gradients(self, own: Any, cotangent: Any) -> dict[str, Any]:
        """The gradients of a hand-written vjp, and those of the leaves that the parts noted during it."""
        binding, notes = self._caller.binding, {}
        positional, keywords = self.arguments.with_tensors(self.tensors, notes=notes)
        names = binding.record.differentiable
        found = own(*positional, cotangent, **keywords)
        if len(names) == 1 and not isinstance(found, (tuple, list)):
            found = (found,)
        named = dict(zip(names, checked_gradients(binding, "vjp", found, len(names))))
        if binding.record.composed:  # a leaf has gradient zero if its part got no cotangent
            leaves = [name for name in self._wrt if "." in name]
            named.update({name: notes[name] if name in notes else self._zeros(name) for name in leaves})
        return named

    def _zeros(self, name: str) -> Any:
        caller = self._caller
        like = np.zeros_like(caller.read(self.tensors[name], name))
        return caller.bridge.tensor(like, "contiguous", caller.device)


@dataclass
class EvaluationGradients:
    """The gradients of one evaluation for one cotangent, read afresh each time."""

    _caller: Caller
    _gradients: dict[str, Any]
    _cotangent: Any

    def gradients(self) -> dict[str, np.ndarray | None]:
        """The present values by input name, None for a gradient that was not requested; read again each time."""
        return {
            name: None if value is None else self._caller.read(value, f"the gradient of {name}")
            for name, value in self._gradients.items()
        }

    def cotangent(self) -> np.ndarray:
        """The cotangent's present value; a difference from the original means that the target changed it."""
        return self._caller.read(self._cotangent, "the cotangent")


def checked_gradients(binding: Binding, derivative: str, returned: Any, count: int) -> tuple[Any, ...]:
    """The ``count`` gradients that a hand-written derivative returned. Raises BadOutput for another number."""
    if not isinstance(returned, (tuple, list)) or len(returned) != count:
        got = f"{len(returned)} values" if isinstance(returned, (tuple, list)) else type(returned).__name__
        words = f"{derivative_name(binding, derivative)} returned {got} in place of {_GRADIENTS_IN_WORDS[count]}"
        raise BadOutput(words, "type" if derivative == "vjp" else "count")
    return tuple(returned)


#: How many gradients a hand-written derivative returns, in words.
_GRADIENTS_IN_WORDS = {1: "one gradient", 2: "two gradients", 3: "three gradients", 4: "four gradients"}


def derivative_name(binding: Binding, derivative: str) -> str:
    """The name that a derivative beside the function must have."""
    return f"{binding.name.rpartition(':')[2]}_{derivative}"


def check_like(y: Any, shape: tuple[int, ...], dtype: str, bridge: Bridge) -> None:
    """Raise BadOutput unless y has the cotangent's shape and dtype; otherwise no gradient is defined."""
    got = bridge.describe(y)
    if got[0] != shape:
        raise BadOutput(f"y has shape {got[0]} in place of {shape}", "shape")
    if got[1] != dtype:
        raise BadOutput(f"y has dtype {got[1]} in place of {dtype}", "dtype")
