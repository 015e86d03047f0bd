"""Kits: the operations on a framework's layers that normspec needs to make canonical calls of users' layers."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from ..binding import Binding
from ..bridge import Bridge


@dataclass(frozen=True)
class LayerTensor:
    """A tensor of a layer."""

    shape: tuple[int, ...]
    #: Whether it is trained: a parameter, not a statistic or a constant.
    trained: bool


class Kit(abc.ABC):
    """The layers of one framework. All tensors in its arguments and results are that framework's own."""

    bridge: Bridge
    #: The framework whose tensors the layers take: one of frameworks.FRAMEWORKS.
    framework: str
    #: The default channel axis.
    channel_axis: int
    #: Whether an attribute named momentum is the weight of the old statistic.
    old_momentum: bool = False

    #: Whether a layer gets its size when it is built, not from an argument of its constructor.
    builds: bool = False
    #: Whether a layer takes one sample, and is mapped over the batch axes.
    maps: bool = False
    #: Whether a model's layers exist before it is called.
    models: bool = True
    #: The base class of its layers.
    base: type
    #: The beginning of the modules that define the framework's own layers, and the method in which these compute.
    home: str
    method: str = "__call__"
    #: The bindings of these layers.
    bindings: tuple[Binding, ...]

    def is_layer(self, value: Any) -> bool:
        """Whether a value is a layer of this framework, not a layer class."""
        return isinstance(value, self.base)

    def handed(self, dtype: str) -> Mapping[str, Any]:
        """Arguments for every layer constructor that takes them, such as a random key or the dtype of x."""
        del dtype
        return {}

    def maker(self, layer: Any) -> Callable[[], Any] | None:
        """A function that makes layers like this one, which has no size yet; None if it has a size."""
        del layer
        return None

    def making(self) -> AbstractContextManager[Any]:
        """The context in which layers are made."""
        return nullcontext()

    @abc.abstractmethod
    def within(self, layer: Any) -> dict[str, Any]:
        """The layer under the name "", and its inner layers under their names, outer ones first."""

    @abc.abstractmethod
    def tensors(self, layer: Any) -> dict[str, LayerTensor]:
        """The tensors of a layer, by name."""

    def built(self, layer: Any, shape: tuple[int | None, ...]) -> Any:
        """The layer, built for x of this shape (None for an unknown length) if it needs building."""
        del shape
        return layer

    def axis_of(self, layer: Any) -> int:
        """The channel axis of a layer."""
        del layer
        return self.channel_axis

    def dtype_of(self, layer: Any) -> str | None:
        """The only dtype that a layer takes; None if it takes others too."""
        del layer
        return None

    def placed(self, layer: Any, device: str) -> Any:
        """A copy of a layer on a device; the layer itself if the tensors that it is lent decide the device."""
        del device
        return layer

    def ready(self, layer: Any, x: Any, lent: Mapping[str, Any]) -> Any:
        """The layer to call with x and these parameters: the same layer, unless layers have a dtype of their own."""
        del x, lent
        return layer

    @abc.abstractmethod
    def run(
        self, layer: Any, lent: Mapping[str, Any], x: Any, *, training: bool, sample: int
    ) -> tuple[Any, Mapping[str, Any]]:
        """
        Call a layer on x with these tensors in place of its own; return its result, and the tensors afterwards.

        ``sample``: how many trailing axes of x belong to one sample, for a layer that takes one sample.
        """

    @abc.abstractmethod
    def reshaped(self, tensor: Any, shape: tuple[int, ...]) -> Any:
        """The tensor, reshaped."""

    def inherited(self, owner: Any, operator: str) -> Binding | None:
        """The binding of the framework's layer from which this layer inherits its call; None if the call is its own."""
        known = {binding.name: binding for binding in self.bindings if binding.operator == operator}
        call = getattr(type(owner), self.method)
        for kind in type(owner).__mro__:
            if kind.__module__.startswith(self.home) and getattr(kind, self.method, None) is call:
                for name in self.names_of(kind, owner):
                    if name in known:
                        return known[name]
        return None

    @abc.abstractmethod
    def names_of(self, kind: type, owner: Any) -> tuple[str, ...]:
        """The names that the binding of a framework's class may have, for a layer with such settings as this one's."""

    def called_by(self, call: Callable[[], Any], operator: str) -> Binding | None:
        """The binding of the framework's function for the operator, if a call runs one; else None."""
        del call, operator
        return None
