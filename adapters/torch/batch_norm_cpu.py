"""What PyTorch's batch_norm is known to violate on the CPU; tests pin each with its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..known import Failure, KnownViolation
from .bridge import SOURCE

_LINK = f"{SOURCE}aten/src/ATen/native/Normalization.cpp (batch_norm_backward_cpu)"
_FORWARD = f"{SOURCE}aten/src/ATen/native/Normalization.cpp (batch_norm_cpu_transform_input_template)"

# A strided weight ----------------------------------------------------------------------------------------


def _one_place(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether x is (N, C), (N, C, 1), (N, C, 1, 1) or so: its memory lies with the channels last, too."""
    shape, axis = inputs["x"].shape, settings["channel_axis"]
    return axis in (1, 1 - len(shape)) and all(size == 1 for size in shape[2:])


def _of_the_buffer(failure: Failure) -> Any:
    """
    Whether dx is that of the first elements of the buffer behind a weight of stride 2, at each of its elements.

    Between the weights the buffer holds NaN: in odd channels dx is NaN, and in channel 2k that of the weight of channel
    k, to the accuracy of the data.
    """
    assert failure.got is not None and failure.expected is not None
    gamma = np.asarray(failure.inputs["gamma"], np.float64)
    shape = [1] * failure.got.ndim
    shape[failure.settings["channel_axis"]] = -1
    channels = np.arange(gamma.size)
    odd, read = (channels % 2 == 1).reshape(shape), gamma[channels // 2].reshape(shape)
    own = gamma.reshape(shape)
    with np.errstate(all="ignore"):
        error = np.abs(failure.got * own - failure.expected * read)
        size = np.nanmax(np.abs(failure.expected / np.where(own == 0, np.nan, own)), initial=0.0)
        near = error <= 1e-4 * np.abs(own * read) * (size + 1)
    return np.where(odd, np.isnan(failure.got), near)


#: A strided weight is misread where x lies with the channels last: as it does with one place a channel, too.
_MISREAD: dict[str, Any] = {
    "requirement": "CM-V3",
    "reason": "on the CPU the backward pass reads a strided weight as if it were contiguous",
    "links": (_LINK,),
    "outputs": ("dx",),
    "dtypes": ("float32", "float64"),
    "devices": ("cpu",),
    "predicts": _of_the_buffer,
}


# Strided data of 16 bits ---------------------------------------------------------------------------------


def _each_step_rounded(failure: Failure) -> Any:
    """
    Whether y, dx and dgamma are as far off as rounding every step to x's 16-bit format makes them, at each element.

    u is the unit roundoff of the format and eta half its smallest number: a step that gives z is off by u |z| + eta at
    most, where eta is for products and quotients alone. The mean and r = 1/sqrt(var + eps) are off by u and 2 u of
    themselves; r of y by what var + eps is off too, which is eta at least. Terms in u^2 are below one in a hundred.
    """
    assert failure.got is not None and failure.expected is not None and failure.g is not None
    u, eta = (2.0**-11, 2.0**-25) if np.asarray(failure.inputs["x"]).dtype == np.float16 else (2.0**-8, 2.0**-134)
    axis, eps = failure.settings["channel_axis"], failure.settings["eps"]

    def rows(values: Any) -> Any:
        values = np.moveaxis(np.asarray(values, np.float64), axis, 0)
        return values.reshape(values.shape[0], -1)

    def column(values: Any) -> Any:
        return np.asarray(values, np.float64).reshape(-1, 1)

    x, g = rows(failure.inputs["x"]), rows(failure.g)
    weight = failure.inputs["gamma"]
    w = np.abs(column(np.ones(len(x)) if weight is None else weight))
    training = failure.settings["training"]
    mean = x.mean(axis=1, keepdims=True) if training else column(failure.inputs["running_mean"])
    var = x.var(axis=1, keepdims=True) if training else column(failure.inputs["running_var"])
    r, n, d = 1 / np.sqrt(var + eps), x.shape[1], x - mean
    of_d = u * (np.abs(mean) + np.abs(d))
    if failure.output == "y":
        of_sum = u * (var + eps) + 2 * u * var * training + eta
        least = np.maximum(var + eps - of_sum, 2 * eta)  # where y is finite, var + eps was not rounded to 0
        of_r = r * (of_sum / (2 * least) + 2 * u) + eta
        off = w * (r * of_d + np.abs(d) * of_r + 2 * u * np.abs(d) * r + eta) + eta
        moved = np.moveaxis(failure.expected, axis, 0)
        off = off + u * np.abs(moved.reshape(moved.shape[0], -1))
        # That of the contiguous x may be as far off to the other side.
        return np.abs(failure.got - failure.expected) <= 2.02 * np.moveaxis(off.reshape(moved.shape), 0, axis)
    of_dot = (np.abs(g) * of_d + u * np.abs(d * g) + eta).sum(axis=1, keepdims=True)
    if failure.output == "dgamma":
        off = (r * of_dot).reshape(-1) + 3 * u * np.abs(failure.expected) + eta
        return np.abs(failure.got - failure.expected) <= 1.01 * off
    off = (w + 1) * eta
    if training:
        k = (d * g).sum(axis=1, keepdims=True) * r**2 / n
        of_k = r**2 / n * of_dot + 6 * u * np.abs(k) + 3 * eta
        along, average = d * k, g.mean(axis=1, keepdims=True)
        of_along = np.abs(d) * of_k + np.abs(k) * of_d + u * np.abs(along) + eta
        of_average = 2 * u * np.abs(average) + eta
        off = off + r * w * (of_along + of_average + u * (np.abs(g - average) + np.abs(g - average - along)))
    moved = np.moveaxis(failure.expected, axis, 0)
    off = off + 4 * u * np.abs(moved.reshape(moved.shape[0], -1))
    return np.abs(failure.got - failure.expected) <= 1.01 * np.moveaxis(off.reshape(moved.shape), 0, axis)


ON_CPU = (
    KnownViolation(notes=("gamma strided",), where="x of one place a channel", cases=_one_place, **_MISREAD),
    KnownViolation(notes=("gamma strided, x channels_last",), ranks=(4, 5), **_MISREAD),
    *(
        KnownViolation(
            requirement,
            "where x or the cotangent is strided, every step of both passes is rounded to 16 bits; those of contiguous"
            " ones are computed in float32",
            links=(_FORWARD, _LINK) if "y" in outputs else (_LINK,),
            failures=("value",),
            outputs=outputs,
            dtypes=("float16", "bfloat16"),
            devices=("cpu",),
            predicts=_each_step_rounded,
            always=False,  # the accuracy class of 16-bit data hides most of it
        )
        for requirement, outputs in (("CM-V1", ("y", "dx", "dgamma")), ("CM-V2", ("dx", "dgamma")))
    ),
)
