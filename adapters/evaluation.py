"""Evaluations: one call of a target, its results and its gradients, read as they are now."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..spec.errors import BadOutput, MissingGradient, Unsupported
from ..spec.operators import OPERATORS
from .binding import Binding, idle
from .bridge import Bridge
from .call_arguments import CallArguments
from .caller import Caller
from .recording import Recorder
from .stage import Stage


@dataclass
class Evaluation:
    """One call, with what was handed in and what came out, both as they are now."""

    _caller: Caller
    tensors: dict[str, Any]
    arguments: CallArguments
    _wrt: tuple[str, ...]
    #: The number of elements of x, which decides on how many threads it runs.
    size: int
    #: What came out, once the call has returned.
    results: dict[str, Any] = field(default_factory=dict)
    #: The calls of the parts, where they were recorded.
    recorder: Recorder | None = None
    #: y of the further call that a functional framework makes for the gradients.
    _y_of_pull: Any = None

    @property
    def tracked(self) -> bool:
        """Whether anything is tracked for gradients."""
        return bool(self._wrt)

    def outputs(self) -> dict[str, np.ndarray]:
        """The results as they are now: read again each time, so that a buffer that is used again shows."""
        return {name: self._caller.read(value, name) for name, value in self.results.items()}

    def tracked_outputs(self) -> dict[str, np.ndarray]:
        """The results of the call whose gradients were taken. A functional framework makes a further call for y."""
        if self._y_of_pull is None:
            return self.outputs()
        return {"y": self._caller.read(self._y_of_pull, "y")}

    def inputs(self) -> dict[str, np.ndarray | None]:
        """The inputs as they are now: another value than was handed in means that the target changed it."""
        return {
            name: None if tensor is None else self._caller.read(tensor, name) for name, tensor in self.tensors.items()
        }

    def pull(self, g: np.ndarray, layout: str = "contiguous", *, keep: bool = False) -> Pulled:
        """
        The gradients of sum(y * g) with respect to the inputs that the evaluation was started for.

        ``keep`` leaves the evaluation fit for another pull, which a framework may otherwise refuse.

        A function that reaches none of the leaves of its parts, and everything else, cannot differentiate closures:
        their gradients are None.

        Raises MissingGradient where none reaches one of them, Unsupported where the target has no gradients or
        the evaluation was made in inference mode, BadOutput where y has not the cotangent's shape or dtype.
        """
        caller = self._caller
        bridge, binding, y = caller.bridge, caller.binding, self.results.get("y")
        if not self._wrt:
            raise Unsupported("nothing was tracked: the evaluation was started in inference mode, or for no gradient")
        own = binding.derivatives.get("vjp")
        if own is None and not bridge.differentiates:
            raise Unsupported(f"{binding.name} has no gradients: no function named {sibling(binding, 'vjp')}")
        cotangent = caller.bridge.tensor(g, layout, caller.device)
        with Stage("vjp"), bridge.guarded(self.size, gradients=True):
            if own is not None and not bridge.tracks(y):
                if binding.prepare is not None:
                    binding.prepare(mode="training", wrt=self._wrt)
                named = self._written_out(own, cotangent)
            elif bridge.functional:
                named = dict(zip(self._wrt, self._called_again(cotangent)))
            else:
                check_like(y, g.shape, g.dtype.name, bridge)
                found = bridge.vjp(y, [self.tensors[name] for name in self._wrt], cotangent, keep=keep)
                named = dict(zip(self._wrt, found))
            bridge.finish(caller.device)
            leaves = tuple(name for name in self._wrt if "." in name)
            names = (*OPERATORS[binding.operator].differentiable, *leaves)
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
        return Pulled(caller, gradients, cotangent)

    def _called_again(self, cotangent: Any) -> list[Any | None]:
        """The gradients of a call that is made for them."""
        caller = self._caller
        call = caller.y_of(self.arguments, self.tensors, self._wrt)
        inputs = [self.tensors[name] for name in self._wrt]
        self._y_of_pull, found = caller.bridge.pullback(call, inputs, cotangent)
        return found

    def _written_out(self, own: Any, cotangent: Any) -> dict[str, Any]:
        """What a vjp that is written out returns, and what it made the parts note of their leaves."""
        binding, notes = self._caller.binding, {}
        positional, keywords = self.arguments.with_tensors(self.tensors, notes=notes)
        names = OPERATORS[binding.operator].differentiable
        found = own(*positional, cotangent, **keywords)
        if len(names) == 1 and not isinstance(found, (tuple, list)):
            found = (found,)
        named = dict(zip(names, listed(binding, "vjp", found, len(names))))
        if OPERATORS[binding.operator].composed:  # a leaf whose part was handed no cotangent has a gradient of zero
            leaves = [name for name in self._wrt if "." in name]
            named.update({name: notes[name] if name in notes else self._zeros(name) for name in leaves})
        return named

    def _zeros(self, name: str) -> Any:
        caller = self._caller
        like = np.zeros_like(caller.read(self.tensors[name], name))
        return caller.bridge.tensor(like, "contiguous", caller.device)


@dataclass
class Pulled:
    """The gradients of one evaluation for one cotangent, as they are now."""

    _caller: Caller
    _gradients: dict[str, Any]
    _cotangent: Any

    def gradients(self) -> dict[str, np.ndarray | None]:
        """By the name of the input, None where none was asked for; read again each time."""
        return {
            name: None if value is None else self._caller.read(value, f"the gradient of {name}")
            for name, value in self._gradients.items()
        }

    def cotangent(self) -> np.ndarray:
        """The cotangent as it is now: another value than was handed in means that the target changed it."""
        return self._caller.read(self._cotangent, "the cotangent")


def listed(binding: Binding, derivative: str, returned: Any, count: int) -> tuple[Any, ...]:
    """What a written-out vjp or vjp_vjp returned: so many gradients. Raises BadOutput."""
    if not isinstance(returned, (tuple, list)) or len(returned) != count:
        got = f"{len(returned)} values" if isinstance(returned, (tuple, list)) else type(returned).__name__
        raise BadOutput(f"{sibling(binding, derivative)} returned {got} in place of {_COUNTS[count]}")
    return tuple(returned)


#: How many gradients a written-out derivative returns, in words.
_COUNTS = {1: "one gradient", 2: "two gradients", 3: "three gradients", 4: "four gradients"}


def sibling(binding: Binding, derivative: str) -> str:
    """The name under which a derivative is looked for beside the function."""
    return f"{binding.name.rpartition(':')[2]}_{derivative}"


def check_like(y: Any, shape: tuple[int, ...], dtype: str, bridge: Bridge) -> None:
    """BadOutput unless y has the cotangent's shape and dtype, without which no gradient is defined."""
    got = bridge.describe(y)
    if got[0] != shape:
        raise BadOutput(f"y has shape {got[0]} in place of {shape}", "shape")
    if got[1] != dtype:
        raise BadOutput(f"y has dtype {got[1]} in place of {dtype}", "dtype")
