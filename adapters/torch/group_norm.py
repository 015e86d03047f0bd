"""PyTorch's GroupNorm and InstanceNorm in the canonical signatures, and the conventions that they follow.

PyTorch's channels are axis 1: for each call, x's channel axis is moved to 1, and y's back. InstanceNorm keeps no
running statistics here, which is its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional

from ...spec.errors import Unsupported
from ..binding import Binding
from ..departures import Departures
from ..known import KnownViolation, beta_alone
from .batch_norm_cuda import INSTANCE_NORM_ON_CUDA
from .bridge import SOURCE
from .group_norm_cuda import ON_CUDA
from .group_norm_forward import FORWARD
from .instance_norm_cpu import ON_CPU as INSTANCE_NORM_ON_CPU
from .layers import SAVED, constants_in_forward_mode, having, lent, second_order_of_beta_alone

_GROUP_NORM = f"{SOURCE}aten/src/ATen/native/group_norm.cpp"

#: Why GroupNorm's variance has the weakest class, although that of contiguous data is centred.
_ONE_PASS = (
    "on the CPU the variance of x with the channels last in memory is mean(x^2) - mu^2, clamped at 0, and that of"
    f" contiguous x is from deviations; {SOURCE}aten/src/ATen/native/cpu/group_norm_kernel.cpp"
    " (GroupNormKernelImplChannelsLastInternal)"
)

_INSTANCE_NORM = f"{SOURCE}aten/src/ATen/native/Normalization.cpp (instance_norm)"

# GroupNorm ------------------------------------------------------------------------------------------------


def _functional_group_norm(x, gamma, beta, *, groups, channel_axis, **eps):
    moved = x.movedim(channel_axis, 1)
    _decline_what_crashes(moved, gamma, beta)
    return functional.group_norm(moved, groups, gamma, beta, **eps).movedim(1, channel_axis)


def _module_group_norm(x, gamma, beta, *, groups, channel_axis, mode, **eps):
    module = _group_norm_of(groups, x.shape[channel_axis], gamma is not None, beta is not None, **eps)
    module.train(mode == "training")
    moved = x.movedim(channel_axis, 1)
    _decline_what_crashes(moved, gamma, beta)
    return functional_call(module, lent(gamma, beta), (moved,)).movedim(1, channel_axis)


#: From so many positions on, another function takes the gradients, which looks whether dx is asked for.
_MANY_POSITIONS = 2048


def _decline_what_crashes(x: torch.Tensor, gamma: torch.Tensor | None, beta: torch.Tensor | None) -> None:
    """
    Raise Unsupported before a call whose gradients would end the process (PyTorch 2.13, CPU).

    GroupNormBackwardKernelImplChannelsLastInternal writes dx without a look whether it is asked for: a frozen x whose
    channels are last in memory has none.
    """
    frozen = not x.requires_grad and any(one is not None and one.requires_grad for one in (gamma, beta))
    if not frozen or x.device.type != "cpu" or x.ndim not in _CHANNELS_LAST:
        return
    last = x.is_contiguous(memory_format=_CHANNELS_LAST[x.ndim]) and not x.is_contiguous()
    if last and x[0, 0].numel() < _MANY_POSITIONS:
        raise Unsupported(
            "PyTorch ends the process in group_norm's gradient of gamma or beta alone where x has its channels last in"
            f" memory ({SOURCE}aten/src/ATen/native/cpu/group_norm_kernel.cpp,"
            " GroupNormBackwardKernelImplChannelsLastInternal)"
        )


_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


@lru_cache(maxsize=256)
def _group_norm_of(groups: int, channels: int, weight: bool, bias: bool, **eps: float) -> nn.Module:
    return having(nn.GroupNorm(groups, channels, device="meta", **eps), weight, bias)


# InstanceNorm ---------------------------------------------------------------------------------------------


def _functional_instance_norm(x, gamma, beta, *, channel_axis, **eps):
    y = functional.instance_norm(x.movedim(channel_axis, 1), weight=gamma, bias=beta, **eps)
    return y.movedim(1, channel_axis)


def _module_instance_norm(kind: type[nn.Module]):
    @lru_cache(maxsize=256)
    def module_of(channels: int, weight: bool, bias: bool, **eps: float) -> nn.Module:
        return having(kind(channels, affine=True, device="meta", **eps), weight, bias)

    def instance_norm(x, gamma, beta, *, channel_axis, mode, **eps):
        module = module_of(x.shape[channel_axis], gamma is not None, beta is not None, **eps)
        module.train(mode == "training")
        return functional_call(module, lent(gamma, beta), (x.movedim(channel_axis, 1),)).movedim(1, channel_axis)

    return instance_norm


def _accepts_rank(name: str, rank: int):
    def accepts(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
        return None if len(shape) == rank else f"{name} takes samples of rank {rank}, not {len(shape)}"

    return accepts


def _one_value(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether x has one sample with one value in each group."""
    return inputs["x"].size == settings["groups"]


def _has_parameters(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether gamma or beta is given."""
    return inputs["gamma"] is not None or inputs["beta"] is not None


_OF_GROUPS = Departures(
    {"storage=H2": SAVED, "variance_algorithm=one-pass": _ONE_PASS},
    known_violations=(
        KnownViolation(
            "CM-T3",
            "the gradient of a beta without a gamma raises 'tensor does not have a device'",
            links=(f"{_GROUP_NORM} (native_group_norm_backward)",),
            failures=("raises",),
            where="beta without gamma",
            cases=beta_alone,
        ),
        KnownViolation(
            "CM-T1",
            "one sample with one value a group raises 'Expected more than 1 value per channel', several do not",
            links=(
                f"{SOURCE}torch/nn/functional.py (group_norm, _verify_batch_size)",
                "https://github.com/pytorch/pytorch/issues/19250",
            ),
            failures=("raises",),
            outputs=("y",),
            where="one sample, one value a group",
            cases=_one_value,
        ),
        *FORWARD,
        *ON_CUDA,
    ),
)

_OF_SAMPLES = Departures(
    {
        "storage=H2": f"it is batch_norm of N C channels: {SAVED}; {_INSTANCE_NORM}",
        "single_value=error": (
            "one position raises ValueError 'Expected more than 1 spatial element when training', whatever the"
            f" number of samples; {SOURCE}torch/nn/functional.py (_verify_spatial_size)"
        ),
    },
    known_violations=(
        KnownViolation(
            "CM-S2",
            "gamma and beta are repeated for each sample, which fails where there is none",
            links=(_INSTANCE_NORM, "https://github.com/pytorch/pytorch/issues/39049"),
            failures=("raises",),
            outputs=("y",),
            where="gamma or beta given",
            cases=_has_parameters,
        ),
        second_order_of_beta_alone("IN-G9"),
        *constants_in_forward_mode("IN-G13", "IN-G14", issue="196699"),
        *INSTANCE_NORM_ON_CPU,
        *INSTANCE_NORM_ON_CUDA,
    ),
)


def _group_norm_binding(name: str, call, has_modes: bool) -> Binding:
    return _OF_GROUPS.binding("group_norm", name, call, has_modes=has_modes, defaults=call)


def _instance_norm_binding(name: str, call, has_modes: bool, **more: Any) -> Binding:
    return _OF_SAMPLES.binding("instance_norm", name, call, has_modes=has_modes, defaults=call, **more)


def _module_binding(kind: type[nn.Module], rank: int) -> Binding:
    name = f"torch.nn.{kind.__name__}"
    return _instance_norm_binding(name, _module_instance_norm(kind), True, accepts=_accepts_rank(name, rank))


BINDINGS: tuple[Binding, ...] = (
    _group_norm_binding("torch.nn.GroupNorm", _module_group_norm, has_modes=True),
    _group_norm_binding("torch.nn.functional.group_norm", _functional_group_norm, has_modes=False),
    _module_binding(nn.InstanceNorm1d, 3),
    _module_binding(nn.InstanceNorm2d, 4),
    _module_binding(nn.InstanceNorm3d, 5),
    _instance_norm_binding("torch.nn.functional.instance_norm", _functional_instance_norm, has_modes=False),
)
