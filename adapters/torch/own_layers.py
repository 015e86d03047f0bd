"""Users' layers on PyTorch: each call lends them their parameters and buffers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.func import functional_call
from torch.nn.utils import parametrize
from torch.overrides import TorchFunctionMode

from ...spec.errors import WrongSignature
from ..binding import Binding
from ..layers.kit import Kit, LayerTensor
from . import group_norm, layers, rms_norm, rms_norm_transformers
from .bridge import TorchBridge


class TorchKit(Kit):
    """Layers that are torch.nn.Modules."""

    framework = "torch"
    channel_axis = 1
    base = nn.Module
    # PyTorch's own layers are recognised by the functions they call.
    home = "transformers."
    method = "forward"
    bindings = rms_norm_transformers.bindings()

    def __init__(self, bridge: TorchBridge) -> None:
        self.bridge = bridge

    def within(self, layer: nn.Module) -> dict[str, Any]:
        return dict(layer.named_modules())

    def tensors(self, layer: nn.Module) -> dict[str, LayerTensor]:
        if isinstance(layer, torch.jit.ScriptModule):
            raise WrongSignature("a scripted module cannot be given other parameters: name the module as it was before")
        for module in layer.modules():
            if parametrize.is_parametrized(module):  # what is passed as its weight would not be its parameter
                name = next(iter(module.parametrizations))
                raise WrongSignature(
                    f"{type(layer).__name__} computes its {name} from other parameters, so that none can be given:"
                    f" check it without that, after torch.nn.utils.parametrize.remove_parametrizations(layer, {name!r})"
                )
        if any(map(nn.parameter.is_lazy, (*layer.parameters(), *layer.buffers()))):
            raise WrongSignature(
                f"{type(layer).__name__} gets its size from its first call: name the class that is given a size, or a"
                " layer that was called once"
            )
        found = {name: LayerTensor(tuple(one.shape), True) for name, one in layer.named_parameters()}
        return {**found, **{name: LayerTensor(tuple(one.shape), False) for name, one in layer.named_buffers()}}

    def placed(self, layer: nn.Module, device: str) -> nn.Module:
        return copy.deepcopy(layer).to(device)

    def run(
        self, layer: nn.Module, lent: Mapping[str, Any], x: torch.Tensor, *, training: bool, sample: int
    ) -> tuple[Any, Mapping[str, Any]]:
        del sample
        if any(one.training is not training for one in layer.modules()):  # it may empty what is kept between calls
            layer.train(training)
        # Buffers are lent too, as copies: transformations of torch.func refuse changes to tensors from outside them.
        buffers = dict(layer.named_buffers())
        tensors = {name: buffer.clone() for name, buffer in buffers.items()}
        changes = {name for name in tensors if name in lent}
        tensors.update({name: value.clone() if name in changes else value for name, value in lent.items()})
        y = functional_call(layer, tensors, (x,))
        # What is no argument of the operator stays, such as a count of batches: the next call may depend on it.
        _keep({name: (buffer, tensors[name]) for name, buffer in buffers.items() if name not in changes})
        return y, tensors

    def reshaped(self, tensor: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
        return tensor.reshape(shape)

    def names_of(self, kind: type, owner: nn.Module) -> tuple[str, ...]:
        return (f"transformers {kind.__name__}",)

    def called_by(self, call: Callable[[], Any], operator: str) -> Binding | None:
        with _Functions() as called:
            call()
        known = {binding.name: binding for binding in (*layers.BINDINGS, *rms_norm.BINDINGS, *group_norm.BINDINGS)}
        return known.get(f"torch.nn.functional.{operator}") if operator in called.names else None


def _keep(changed: Mapping[str, tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Write what a call made of its copies into the buffers; not what belongs to a transformation of torch.func."""
    with torch.no_grad():
        for buffer, value in changed.values():
            if buffer.shape == value.shape and not torch._C._functorch.is_functorch_wrapped_tensor(value):
                buffer.copy_(value)


class _Functions(TorchFunctionMode):
    """Collects the names of the PyTorch functions called inside it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))
