"""
PyTorch's LayerNorm and BatchNorm in the canonical signatures, and the conventions that they follow.

PyTorch updates running statistics in place, so each call gets clones of the statistics, which are returned as the new
ones. PyTorch's channels are axis 1: x's channel axis is moved to 1 for the call, and y's back.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional

from ..binding import Binding
from ..departures import Departures
from ..known import KnownViolation, beta_alone
from .ambiguous_strides import AMBIGUOUS_ON_CPU
from .batch_norm_cpu import ON_CPU
from .batch_norm_cuda import ON_CUDA
from .bridge import SOURCE

_DOCS = "https://docs.pytorch.org/docs/stable/generated/"

#: Why 16-bit data has class H2 in every operator that saves its statistics.
SAVED = (
    "with 16-bit parameters the saved mean and 1/sqrt(var + eps), and the gradients of the parameters, are rounded"
    f" to 16 bits; {SOURCE}aten/src/ATen/native/cpu/mixed_data_type.h (param_scalar_type)"
)

#: LayerNorm's addition to that reason, for any dtype of the parameters.
_SUMMED = (
    "; on the CPU the sums over rows that are the gradients of gamma and beta are accumulated in x's 16-bit dtype,"
    " with float32 parameters too (1000 rows of ones sum to 256 a thread in bfloat16);"
    f" {SOURCE}aten/src/ATen/native/cpu/layer_norm_kernel.cpp (LayerNormBackwardKernelImplInternal)"
)


# LayerNorm ------------------------------------------------------------------------------------------------


def functional_layer_norm(x, gamma, beta, *, axes, **eps):
    """LayerNorm by torch.nn.functional.layer_norm; without eps its default applies."""
    return functional.layer_norm(x, x.shape[x.ndim - len(axes) :], gamma, beta, **eps)


def module_layer_norm(x, gamma, beta, *, axes, mode, **eps):
    """LayerNorm by torch.nn.LayerNorm, in training or inference mode; without eps its default applies."""
    module = _layer_norm_of(tuple(x.shape[x.ndim - len(axes) :]), gamma is not None, beta is not None, **eps)
    module.train(mode == "training")
    return functional_call(module, lent(gamma, beta), (x,))


@lru_cache(maxsize=256)
def _layer_norm_of(shape: tuple[int, ...], weight: bool, bias: bool, **eps: float) -> nn.Module:
    return having(nn.LayerNorm(list(shape), device="meta", **eps), weight, bias)


# BatchNorm ------------------------------------------------------------------------------------------------


def _functional_batch_norm(x, gamma, beta, running_mean, running_var, *, training, channel_axis, **numbers):
    mean, variance = running_mean.clone(), running_var.clone()
    y = functional.batch_norm(x.movedim(channel_axis, 1), mean, variance, gamma, beta, training, **numbers)
    return y.movedim(1, channel_axis), mean, variance


def _module_batch_norm(kind: type[nn.Module]):
    # One cache for each class; a module is determined by the number of channels, eps and momentum.
    @lru_cache(maxsize=256)
    def module_of(channels: int, weight: bool, bias: bool, **numbers: float) -> nn.Module:
        return having(kind(channels, device="meta", **numbers), weight, bias)

    def batch_norm(x, gamma, beta, running_mean, running_var, *, training, channel_axis, mode, **numbers):
        del mode  # `training` decides
        module = module_of(x.shape[channel_axis], gamma is not None, beta is not None, **numbers)
        module.train(training)
        mean, variance = running_mean.clone(), running_var.clone()
        # Its count of batches is lent too: transformations of torch.func refuse to change a tensor from outside them.
        batches = torch.zeros((), dtype=torch.long)
        tensors = {
            **lent(gamma, beta), "running_mean": mean, "running_var": variance, "num_batches_tracked": batches,
        }  # fmt: skip
        y = functional_call(module, tensors, (x.movedim(channel_axis, 1),))
        return y.movedim(1, channel_axis), mean, variance

    return batch_norm


# Modules --------------------------------------------------------------------------------------------------


def having(module: nn.Module, weight: bool, bias: bool) -> nn.Module:
    """
    The module with the wanted parameters; in torch, registering None means that it has no such parameter.

    It is made on the meta device and holds no values: functional_call lends it every tensor for one call, so that
    gradients reach the caller's tensors.
    """
    if not weight:
        module.register_parameter("weight", None)
    if not bias:
        module.register_parameter("bias", None)
    return module


def lent(gamma, beta) -> dict[str, torch.Tensor]:
    """The tensors that functional_call lends to a module made for these parameters."""
    given = {}
    if gamma is not None:
        given["weight"] = gamma
    if beta is not None:
        given["bias"] = beta
    return given


@lru_cache(maxsize=None)
def _eps_of_zero_in_inference() -> bool:
    """Whether this PyTorch accepts eps = 0 in inference: 2.13 does, 2.11 does not."""
    one = torch.ones(1)
    try:
        functional.batch_norm(torch.ones(1, 1), one, one, eps=0.0)
    except ValueError:
        return False
    return True


def _accepts_ranks(name: str, ranks: tuple[int, ...] | None):
    """The ``accepts`` of a BatchNorm: it checks the rank, one of these or any from 2 on, and the modes for eps = 0."""

    def accepts(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
        if ranks is not None and len(shape) not in ranks:
            return f"{name} takes rank {' or '.join(map(str, ranks))}, not {len(shape)}"
        if len(shape) < 2:
            return f"{name} takes rank 2 or more, not {len(shape)}"
        if settings.get("eps", 1.0) <= 0.0:
            if settings.get("training"):
                return f"{name} raises ValueError in training unless eps is positive"
            if not _eps_of_zero_in_inference():
                return f"{name} raises ValueError unless eps is positive"
        return None

    return accepts


def constants_in_forward_mode(*requirements: str, issue: str) -> tuple[KnownViolation, ...]:
    """Known violations in derivatives of the tangent of y, by reverse mode and by forward mode."""
    outputs = ("reverse over forward in x", "forward over forward of y")
    return tuple(
        KnownViolation(
            requirement,
            "the tangent of y is written in the saved mean and 1/sqrt(var + eps), which its derivative takes for"
            " constants",
            links=(
                f"https://github.com/pytorch/pytorch/issues/{issue}",
                f"{SOURCE}torch/csrc/autograd/FunctionsManual.cpp (layer_norm_jvp, batch_norm_jvp)",
            ),
            failures=("value",),
            outputs=(output,),
            dtypes=dtypes,
            modes=("training",),
            always=always,
        )
        for requirement, output in zip(requirements, outputs)
        # The accuracy class of 16-bit data hides it in some cases.
        for dtypes, always in ((("float32", "float64"), True), (("float16", "bfloat16"), False))
    )


def second_order_of_beta_alone(requirement: str) -> KnownViolation:
    """The known violation of second derivatives where a beta is given and no gamma."""
    return KnownViolation(
        requirement,
        "with a beta and no gamma, the derivative of beta's gradient raises 'Expected a proper Tensor but got None'",
        links=(
            f"{SOURCE}torch/csrc/autograd/FunctionsManual.cpp (layer_norm_double_backward, batchnorm_double_backward)",
        ),
        failures=("raises",),
        where="beta without gamma",
        cases=beta_alone,
    )


#: What LayerNorm declares, and every layer that contains one.
LAYER_NORM = Departures(
    {"storage=H2": SAVED + _SUMMED},
    known_violations=(
        second_order_of_beta_alone("LN-G9"),
        *constants_in_forward_mode("LN-G13", "LN-G14", issue="196700"),
    ),
)

_BATCH_NORM = Departures(
    {
        "storage=H2": SAVED,
        "running_variance=bessel": (
            "the variance in the moving average is the unbiased one, although the batch is normalised by the biased"
            f" one; {_DOCS}torch.nn.BatchNorm1d.html"
        ),
        "single_value=error": (
            "training on one value per channel raises ValueError 'Expected more than 1 value per channel when"
            f" training'; {SOURCE}torch/nn/functional.py (_verify_batch_size)"
        ),
    },
    known_violations=(
        *ON_CPU,
        AMBIGUOUS_ON_CPU,
        *ON_CUDA,
        second_order_of_beta_alone("BN-G10"),
        *constants_in_forward_mode("BN-G14", "BN-G15", issue="196699"),
    ),
)


def _layer_norm_binding(name: str, call, has_modes: bool) -> Binding:
    return LAYER_NORM.binding("layer_norm", name, call, has_modes=has_modes, defaults=call)


def _batch_norm_binding(name: str, call, ranks: tuple[int, ...] | None, has_modes: bool) -> Binding:
    accepts = _accepts_ranks(name, ranks)
    return _BATCH_NORM.binding("batch_norm", name, call, accepts=accepts, has_modes=has_modes, defaults=call)


BINDINGS: tuple[Binding, ...] = (
    _layer_norm_binding("torch.nn.LayerNorm", module_layer_norm, has_modes=True),
    _layer_norm_binding("torch.nn.functional.layer_norm", functional_layer_norm, has_modes=False),
    _batch_norm_binding("torch.nn.BatchNorm1d", _module_batch_norm(nn.BatchNorm1d), (2, 3), has_modes=True),
    _batch_norm_binding("torch.nn.BatchNorm2d", _module_batch_norm(nn.BatchNorm2d), (4,), has_modes=True),
    _batch_norm_binding("torch.nn.BatchNorm3d", _module_batch_norm(nn.BatchNorm3d), (5,), has_modes=True),
    _batch_norm_binding("torch.nn.functional.batch_norm", _functional_batch_norm, None, has_modes=False),
)
