"""Callers: one binding on one device, called on the tensors of its framework."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from ..spec.errors import BadOutput, Unsupported
from ..spec.parts import Parts
from .binding import Binding
from .bridge import Bridge
from .call_arguments import CallArguments
from .layouts import fitting
from .other_framework import hint_from_value
from .recording import Recorder
from .stage import Stage

if TYPE_CHECKING:
    Arrays = Mapping[str, Optional[np.ndarray]]


@dataclass
class Caller:
    """One binding on one device. Raises DeviceUnavailable if the framework has no such device."""

    bridge: Bridge
    binding: Binding
    device: str = "cpu"
    #: The buffers that parts own, kept between calls.
    memory: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bridge.check_device(self.device)

    def read(self, value: Any, what: str) -> np.ndarray:
        """The present values of one of the target's tensors, in a new array. Raises BadOutput if it is not a tensor."""
        with Stage("read"):
            return self.bridge.array(value, what)

    def arguments(self, settings: Mapping[str, Any], parts: Parts | None) -> CallArguments:
        """The arguments of a call, with momentum in the binding's convention."""
        keywords = dict(settings)
        if "momentum" in keywords and self.binding.conventions.get("momentum") == "old":
            keywords["momentum"] = 1.0 - keywords["momentum"]
        return CallArguments(self.binding, self.bridge, keywords, parts or {}, self.memory)

    def tensor(self, array: np.ndarray, layout: str = "contiguous", *, tracked: bool = False) -> Any:
        """A tensor with the array's values on the caller's device."""
        return self.bridge.tensor(array, layout, self.device, tracked=tracked)

    def tensors(self, inputs: Arrays, tracked: Sequence[str] = (), layout: str = "contiguous") -> dict[str, Any]:
        """A tensor for each input by name, in this layout if it can have it; None for an input that is None."""
        return {
            name: None if array is None else self.tensor(array, fitting(array, layout), tracked=name in tracked)
            for name, array in inputs.items()
        }

    def call_target(
        self,
        arguments: CallArguments,
        tensors: Mapping[str, Any],
        mode: str,
        recorder: Recorder | None = None,
        *,
        defaults: bool = False,
    ) -> Any:
        """Call the target. Raises Unsupported if ``defaults`` is set and the binding has none."""
        positional, keywords = arguments.with_tensors(tensors, recorder=recorder, mode=mode)
        if self.binding.has_modes:
            keywords["mode"] = mode
        call = self.binding.defaults if defaults else self.binding.call
        if call is None:
            raise Unsupported(f"{self.binding.name} has no defaults: eps and momentum are given by the caller")
        return call(*positional, **keywords)

    def y_of(self, arguments: CallArguments, tensors: Mapping[str, Any], names: Sequence[str]) -> Callable[..., Any]:
        """The map from the named inputs to y, with the other inputs held fixed."""

        def y_of(*moved: Any) -> Any:
            handed = {**tensors, **dict(zip(names, moved))}
            return self.results_by_name(self.call_target(arguments, handed, "training"))["y"]

        return y_of

    def results_by_name(self, returned: Any) -> dict[str, Any]:
        """The target's results by name. Raises BadOutput unless there is one tensor for each."""
        names = self.binding.record.outputs
        several = isinstance(returned, (tuple, list)) and (len(names) > 1 or self._holds_tensors(returned))
        if several != (len(names) > 1) or (several and len(returned) != len(names)) or inspect.iscoroutine(returned):
            raise self._another_count(returned, names)
        results = tuple(returned) if several else (returned,)
        for name, value in zip(names, results):
            try:
                self.bridge.check_tensor(value, name)
            except BadOutput as error:
                hint = hint_from_value(value, self.bridge.name)
                raise BadOutput(f"{error}{hint}", error.kind) from None
        return dict(zip(names, results))

    def _another_count(self, returned: Any, names: Sequence[str]) -> BadOutput:
        """The error for other results than one tensor for each name."""
        wanted = names[0] if len(names) == 1 else f"({', '.join(names)})"
        told = f"{self.binding.operator} returned {{}} in place of {wanted}"
        if isinstance(returned, (tuple, list)) and self._holds_tensors(returned):
            kind = "list" if isinstance(returned, list) else "tuple"
            got = f"a {kind} of one value" if len(returned) == 1 else f"{len(returned)} values"
            return BadOutput(told.format(got), "count")
        if inspect.iscoroutine(returned):
            returned.close()  # Python would warn of each that nobody awaits
            return BadOutput(told.format("a coroutine"))
        try:
            self.bridge.check_tensor(returned, names[0])
        except BadOutput:
            return BadOutput(told.format("None" if returned is None else type(returned).__name__))
        return BadOutput(told.format(f"{names[0]} alone"), "count")

    def _holds_tensors(self, several: Sequence[Any]) -> bool:
        """Whether these may be results, one by one; a list of numbers, as `tolist` makes it, is one wrong result."""
        return not several or any(map(self._is_tensor, several))

    def _is_tensor(self, value: Any) -> bool:
        """Whether a value is a tensor of the framework, in whatever dtype."""
        try:
            self.bridge.check_tensor(value, "y")
        except BadOutput as error:
            return error.kind == "dtype"
        return True
