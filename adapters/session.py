"""
Sessions: calls of one binding, with NumPy arrays going in and coming out.

Nothing of the framework crosses this line, so that a process boundary can be put here. And whatever a target
does, a call of it ends in a result or in one of three exceptions: TargetRaised, BadOutput or Unsupported.
Only KeyboardInterrupt passes, because it is the user's and not the target's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from .binding import ARGUMENTS, DIFFERENTIABLE, OUTPUTS, Binding, Target
from .errors import BadOutput, MissingGradient, Unsupported
from .evaluation import Evaluation, Pulled, sibling, three
from .stage import Stage

__all__ = ["Evaluation", "Pulled", "Session"]

Arrays = Mapping[str, "np.ndarray | None"]


@attrs.define
class Session:
    """One binding of one target on one device. Raises DeviceUnavailable if the framework has no such device."""

    target: Target
    binding: Binding
    device: str = "cpu"

    def __attrs_post_init__(self) -> None:
        self.target.bridge.check_device(self.device)

    def start(
        self,
        inputs: Arrays,
        settings: Mapping[str, Any],
        *,
        layouts: Mapping[str, str] | None = None,
        wrt: Sequence[str] | None = None,
        mode: str = "training",
    ) -> Evaluation:
        """
        Call the target.

        ``inputs`` holds every positional argument of the operator by name, ``settings`` every keyword argument,
        ``layouts`` the layout of those inputs that are not to be contiguous. ``wrt`` names the inputs whose
        gradients may be asked for: by default "x", "gamma" and "beta" as far as they are given. In mode
        "inference" a binding that has modes is put into inference, and nothing is tracked.
        """
        bridge, training = self.target.bridge, mode == "training"
        if wrt is None:
            wrt = [name for name in DIFFERENTIABLE if inputs[name] is not None]
        layouts = layouts or {}
        tensors = {}
        for name in ARGUMENTS[self.binding.operator]:
            array = inputs[name]
            layout = layouts.get(name, "contiguous")
            tensors[name] = None if array is None else self._tensor(array, layout, tracked=training and name in wrt)
        call = self._call(settings, mode)
        size = _size(inputs)
        if self.binding.prepare is not None:
            self.binding.prepare(mode=mode, wrt=tuple(wrt))
        with Stage("call"), bridge.guarded(size, gradients=training):
            returned = call(*tensors.values())
            bridge.finish(self.device)
        with Stage("read"):
            results = self._named(returned)
        return Evaluation(self, tensors, dict(settings), results, tuple(wrt) if training else (), size)

    def jvp(self, inputs: Arrays, settings: Mapping[str, Any], tangents: Arrays) -> np.ndarray:
        """
        The tangent of y, for the tangents of "x", "gamma" and "beta"; None, or no entry, is a zero tangent.

        Raises Unsupported where neither the framework nor the binding has forward mode.
        """
        bridge, binding = self.target.bridge, self.binding
        own = binding.derivatives.get("jvp")
        if own is None and not bridge.differentiates:
            raise Unsupported(f"{binding.name} has no forward-mode derivative: none named {sibling(binding, 'jvp')}")
        handed = self._handed(inputs)
        moving = [
            None if inputs[name] is None else self._tensor(_given(tangents, name, inputs[name]), "contiguous")
            for name in DIFFERENTIABLE
        ]
        with Stage("jvp"), bridge.guarded(_size(inputs), gradients=True):
            if own is not None:
                tangent = own(*handed, *moving, **self.keywords(settings))
            else:
                tangent = bridge.jvp(self._y_of(handed, settings), handed[:3], moving)
                if tangent is None:
                    raise MissingGradient("no tangent reaches y", ("x",))
            bridge.finish(self.device)
        return self.read(tangent, "the tangent of y")

    def vjp_vjp(
        self, inputs: Arrays, settings: Mapping[str, Any], g: np.ndarray, cotangents: Arrays
    ) -> dict[str, np.ndarray | None]:
        """
        Second order: the vjp of the map (x, gamma, g) -> gradients, at cotangents for "x", "gamma" and "beta".

        A cotangent that is None, or absent, is zero. The result holds "x", "gamma" (None where gamma is None)
        and "g". Raises Unsupported where neither the framework nor the binding differentiates twice.
        """
        bridge, binding = self.target.bridge, self.binding
        own = binding.derivatives.get("vjp_vjp")
        if own is None and not bridge.differentiates:
            raise Unsupported(
                f"{binding.name} has no second-order derivative: none named {sibling(binding, 'vjp_vjp')}"
            )
        present = {name: inputs[name] is not None for name in DIFFERENTIABLE}
        if own is not None:
            handed, cotangent = self._handed(inputs), self._tensor(g, "contiguous")
            second = [
                self._tensor(_given(cotangents, name, inputs[name]), "contiguous") if present[name] else None
                for name in DIFFERENTIABLE
            ]
            with Stage("vjp_vjp"), bridge.guarded(_size(inputs), gradients=True):
                found = three(binding, "vjp_vjp", own(*handed, cotangent, *second, **self.keywords(settings)))
                bridge.finish(self.device)
        else:
            handed = self._handed(inputs, tracked=DIFFERENTIABLE)
            cotangent = self._tensor(g, "contiguous", tracked=True)
            second = [
                self._tensor(array, "contiguous")
                if present[name] and (array := cotangents.get(name)) is not None
                else None
                for name in DIFFERENTIABLE
            ]
            with Stage("vjp_vjp"), bridge.guarded(_size(inputs), gradients=True):
                found = bridge.vjp_vjp(self._y_of(handed, settings), handed[:3], cotangent, second)
                bridge.finish(self.device)
            found = (found[0], found[1], found[3])
        names = {"x": inputs["x"], "gamma": inputs["gamma"], "g": g}
        return {
            name: self._zero_or(value, like, f"the second-order gradient of {name}")
            for value, (name, like) in zip(found, names.items(), strict=True)
        }

    def read(self, value: Any, what: str) -> np.ndarray:
        """The present values of one of the target's tensors, in a new array; BadOutput if it is none."""
        with Stage("read"):
            return self.target.bridge.array(value, what)

    def keywords(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments, momentum as the binding's convention reads it."""
        if "momentum" in settings and self.binding.conventions.get("momentum") == "old":
            return {**settings, "momentum": 1.0 - settings["momentum"]}
        return dict(settings)

    def _tensor(self, array: np.ndarray, layout: str, *, tracked: bool = False) -> Any:
        return self.target.bridge.tensor(array, layout, self.device, tracked=tracked)

    def _handed(self, inputs: Arrays, tracked: Sequence[str] = ()) -> list[Any]:
        return [
            None if (array := inputs[name]) is None else self._tensor(array, "contiguous", tracked=name in tracked)
            for name in ARGUMENTS[self.binding.operator]
        ]

    def _call(self, settings: Mapping[str, Any], mode: str) -> Callable[..., Any]:
        keywords = self.keywords(settings)
        if self.binding.has_modes:
            keywords["mode"] = mode
        call = self.binding.call
        return lambda *tensors: call(*tensors, **keywords)

    def _y_of(self, handed: Sequence[Any], settings: Mapping[str, Any]) -> Callable[..., Any]:
        """The map (x, gamma, beta) -> y, with the other arguments as handed."""
        call, others = self._call(settings, "training"), handed[3:]
        return lambda x, gamma, beta: self._named(call(x, gamma, beta, *others))["y"]

    def _named(self, returned: Any) -> dict[str, Any]:
        """The target's results by name, each of them a tensor; BadOutput otherwise."""
        names = OUTPUTS[self.binding.operator]
        operator = self.binding.operator
        if len(names) == 1:
            results: tuple[Any, ...] = (returned,)
        elif not isinstance(returned, tuple | list):
            got = "None" if returned is None else type(returned).__name__
            raise BadOutput(f"{operator} returned {got} in place of ({', '.join(names)})")
        elif len(returned) != len(names):
            raise BadOutput(f"{operator} returned {len(returned)} values in place of ({', '.join(names)})")
        else:
            results = tuple(returned)
        for name, value in zip(names, results, strict=True):
            self.target.bridge.check_tensor(value, name)
        return dict(zip(names, results, strict=True))

    def _zero_or(self, value: Any, like: np.ndarray | None, what: str) -> np.ndarray | None:
        if like is None:
            return None
        # Where nothing reaches an input, the map does not depend on it: its gradient is zero.
        return np.zeros_like(like) if value is None else self.read(value, what)


def _given(arrays: Arrays, name: str, like: Any) -> np.ndarray:
    array = arrays.get(name)
    return np.zeros_like(like) if array is None else array


def _size(inputs: Arrays) -> int:
    x = inputs["x"]
    return 0 if x is None else x.size
