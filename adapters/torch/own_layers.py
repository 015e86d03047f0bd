"""Layers of a user's own on PyTorch: their parameters and buffers are lent to them for one call."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.func import functional_call

from ..binding import Binding
from ..layers.kit import Kit, Own
from . import group_norm, layers, rms_norm, rms_norm_transformers
from .bridge import TorchBridge


class TorchKit(Kit):
    """Layers that are torch.nn.Modules."""

    framework = "torch"
    channel_axis = 1
    base = nn.Module

    def __init__(self, bridge: TorchBridge) -> None:
        self.bridge = bridge

    def within(self, layer: nn.Module) -> dict[str, Any]:
        return dict(layer.named_modules())

    def tensors(self, layer: nn.Module) -> dict[str, Own]:
        found = {name: Own(tuple(one.shape), True) for name, one in layer.named_parameters()}
        return {**found, **{name: Own(tuple(one.shape), False) for name, one in layer.named_buffers()}}

    def placed(self, layer: nn.Module, device: str) -> nn.Module:
        return copy.deepcopy(layer).to(device)

    def run(
        self, layer: nn.Module, lent: Mapping[str, Any], x: torch.Tensor, *, training: bool
    ) -> tuple[Any, Mapping[str, Any]]:
        layer.train(training)
        # Buffers are lent too, as copies: what one call leaves in them, such as a count of batches, the next does not
        # find, and transformations of torch.func refuse what is changed outside of them.
        tensors = {name: buffer.clone() for name, buffer in layer.named_buffers()}
        changes = {name for name in tensors if name in lent}
        tensors.update({name: value.clone() if name in changes else value for name, value in lent.items()})
        y = functional_call(layer, tensors, (x,))
        return y, tensors

    def reshaped(self, tensor: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
        return tensor.reshape(shape)

    def inherited(self, owner: nn.Module, operator: str) -> Binding | None:
        known = {binding.name: binding for binding in _bindings() if binding.operator == operator}
        for kind in type(owner).__mro__:
            for name in (f"torch.nn.{kind.__name__}", f"transformers {kind.__name__}"):
                if name in known and kind.__module__.split(".")[0] == name.replace(" ", ".").split(".")[0]:
                    return known[name]
        return None


def _bindings() -> tuple[Binding, ...]:
    """What is known of the layers that others derive from."""
    return (*layers.BINDINGS, *rms_norm.BINDINGS, *group_norm.BINDINGS, *rms_norm_transformers.bindings())
