"""PyTorch's RMSNorm in the canonical signature, and the conventions that it follows."""

from __future__ import annotations

from functools import lru_cache

from torch import nn
from torch.func import functional_call
from torch.nn import functional

from ..binding import Binding
from .bridge import SOURCE
from .layers import having, lent


def _functional_rms_norm(x, gamma, *, axes, **eps):
    return functional.rms_norm(x, x.shape[x.ndim - len(axes) :], gamma, **eps)


def _module_rms_norm(x, gamma, *, axes, mode, **eps):
    module = _rms_norm_of(tuple(x.shape[x.ndim - len(axes) :]), gamma is not None, **eps)
    module.train(mode == "training")
    return functional_call(module, lent(gamma, None), (x,))


@lru_cache(maxsize=256)
def _rms_norm_of(shape: tuple[int, ...], weight: bool, **eps: float) -> nn.Module:
    return having(nn.RMSNorm(list(shape), device="meta", **eps), weight, False)


#: The convention of CUDA's fused kernel; on the CPU, RMSNorm is composed of operations in float32.
_ON_CUDA = {"cuda": {"storage": "H1"}}
_REASONS = {
    "storage": (
        "on CUDA second-order and forward-mode derivatives are composed of operations on 16-bit tensors;"
        f" {SOURCE}torch/csrc/autograd/FunctionsManual.cpp (rms_norm_jvp,"
        " infinitely_differentiable_native_rms_norm_backward)"
    )
}


def _binding(name: str, call, has_modes: bool) -> Binding:
    return Binding(
        "rms_norm", name, call, conventions_on=_ON_CUDA, reasons=_REASONS, has_modes=has_modes, defaults=call
    )


BINDINGS: tuple[Binding, ...] = (
    _binding("torch.nn.RMSNorm", _module_rms_norm, has_modes=True),
    _binding("torch.nn.functional.rms_norm", _functional_rms_norm, has_modes=False),
)
