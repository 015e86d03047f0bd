"""PyTorch's RMSNorm in the canonical signature, and the conventions that it follows."""

from __future__ import annotations

from functools import lru_cache

from torch import nn
from torch.func import functional_call
from torch.nn import functional

from ..binding import Binding
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


BINDINGS: tuple[Binding, ...] = (
    Binding("rms_norm", "torch.nn.RMSNorm", _module_rms_norm, has_modes=True, defaults=_module_rms_norm),
    Binding("rms_norm", "torch.nn.functional.rms_norm", _functional_rms_norm, defaults=_functional_rms_norm),
)
