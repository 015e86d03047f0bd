"""Kits: what a framework's folder has to know of layers, so that those of a user's own can be called canonically."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from ..binding import Binding
from ..bridge import Bridge


@dataclass(frozen=True)
class Own:
    """A tensor that a layer holds."""

    shape: tuple[int, ...]
    #: Whether it is trained: a parameter, and not a statistic or a constant.
    trained: bool


class Kit(abc.ABC):
    """The layers of one framework. All that it is handed, and returns, are that framework's own tensors."""

    bridge: Bridge
    #: The framework whose tensors the layers take, of frameworks.FRAMEWORKS.
    framework: str
    #: The axis of the channels where nobody says another.
    channel_axis: int
    #: Whether an attribute named momentum weighs the old statistic.
    old_momentum: bool = False

    #: Whether a layer learns its size when it is built, and not from an argument of its constructor.
    builds: bool = False
    #: Whether a layer takes one sample, which is mapped over the axes of a batch.
    maps: bool = False
    #: Whether a model's layers are there before it is called.
    models: bool = True
    #: The class that its layers derive from.
    base: type

    def is_layer(self, value: Any) -> bool:
        """Whether a value is a layer of this framework, and no class of them."""
        return isinstance(value, self.base)

    def handed(self, dtype: str) -> Mapping[str, Any]:
        """What every constructor of a layer that takes it is given: a random key, say, or the dtype of x."""
        del dtype
        return {}

    def maker(self, layer: Any) -> Callable[[], Any] | None:
        """What makes layers such as this one, which has no size yet; None where it has one."""
        del layer
        return None

    def making(self) -> AbstractContextManager[Any]:
        """What a layer is made in."""
        return nullcontext()

    @abc.abstractmethod
    def within(self, layer: Any) -> dict[str, Any]:
        """The layer under the name "", and those within it under theirs, the outer ones first."""

    @abc.abstractmethod
    def tensors(self, layer: Any) -> dict[str, Own]:
        """The tensors that a layer holds, by name."""

    def built(self, layer: Any, shape: tuple[int | None, ...]) -> Any:
        """The layer, built for x of this shape, of which it may not know all, where that is left to it."""
        del shape
        return layer

    def axis_of(self, layer: Any) -> int:
        """The axis of a layer's channels."""
        del layer
        return self.channel_axis

    def dtype_of(self, layer: Any) -> str | None:
        """The dtype that a layer computes in, if it takes no other."""
        del layer
        return None

    @abc.abstractmethod
    def placed(self, layer: Any, device: str) -> Any:
        """A copy of a layer on a device."""

    def ready(self, layer: Any, x: Any, lent: Mapping[str, Any]) -> Any:
        """The layer that takes x and these parameters: the same one, where layers have no dtype of their own."""
        del x, lent
        return layer

    @abc.abstractmethod
    def run(
        self, layer: Any, lent: Mapping[str, Any], x: Any, *, training: bool, sample: int
    ) -> tuple[Any, Mapping[str, Any]]:
        """
        What a layer makes of x with these tensors in place of its own, and what they are afterwards.

        ``sample``: how many trailing axes of x are those of one sample, for a layer that takes one.
        """

    @abc.abstractmethod
    def reshaped(self, tensor: Any, shape: tuple[int, ...]) -> Any:
        """The tensor in another shape of as many elements."""

    @abc.abstractmethod
    def inherited(self, owner: Any, operator: str) -> Binding | None:
        """The binding of the framework's own layer whose call this one has; None where its call is its own."""

    def called_by(self, call: Callable[[], Any], operator: str) -> Binding | None:
        """The binding of the framework's own function of an operator that a call runs; None where it runs none."""
        del call, operator
        return None
