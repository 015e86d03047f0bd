"""Known violations of PyTorch's batch_norm on the CPU; tests pin each one with its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..known import Failure, KnownViolation
from .bridge import SOURCE
from .formats import OVERFLOW, ROUNDOFF, UNDERFLOW
from .misread_cotangent import column

_LINK = f"{SOURCE}aten/src/ATen/native/Normalization.cpp (batch_norm_backward_cpu)"
_FORWARD = f"{SOURCE}aten/src/ATen/native/Normalization.cpp (batch_norm_cpu_transform_input_template)"

# A strided weight ----------------------------------------------------------------------------------------


def _channels_come_last(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether the channels are x's last axis, so that PyTorch, whose channels are axis 1, gets a channels_last view."""
    return settings["channel_axis"] % inputs["x"].ndim == inputs["x"].ndim - 1


def _one_place(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether x is (N, C), (N, C, 1), (N, C, 1, 1) ...: such a contiguous x also has the channels-last layout."""
    shape, axis = inputs["x"].shape, settings["channel_axis"]
    return axis in (1, 1 - len(shape)) and all(size == 1 for size in shape[2:])


def _of_the_buffer(failure: Failure) -> Any:
    """
    Whether each element of dx comes from reading the buffer of a weight with stride 2 or 0 as if it were contiguous.

    The buffer holds NaN between the weights, or after an expanded one. So dx is NaN in odd channels, or in all but the
    first, and in channel 2k it is the dx for the weight of channel k, to the accuracy of the data.
    """
    assert failure.got is not None and failure.expected is not None
    gamma = np.asarray(failure.inputs["gamma"], np.float64)
    shape = [1] * failure.got.ndim
    shape[failure.settings["channel_axis"]] = -1
    channels = np.arange(gamma.size)
    between = channels > 0 if "zero_stride" in failure.note else channels % 2 == 1
    odd, read = between.reshape(shape), gamma[channels // 2].reshape(shape)
    own = gamma.reshape(shape)
    with np.errstate(all="ignore"):
        error = np.abs(failure.got * own - failure.expected * read)
        size = np.nanmax(np.abs(failure.expected / np.where(own == 0, np.nan, own)), initial=0.0)
        near = error <= 1e-4 * np.abs(own * read) * (size + 1)
    return np.where(odd, np.isnan(failure.got), near)


#: A strided weight is misread if x has the channels-last layout; x with one position per channel has it too.
_MISREAD: dict[str, Any] = {
    "requirement": "CM-V3",
    "reason": "on the CPU the backward pass reads a strided weight as if it were contiguous, and past an expanded one",
    "links": (_LINK,),
    "outputs": ("dx",),
    "dtypes": ("float32", "float64"),
    "devices": ("cpu",),
    "predicts": _of_the_buffer,
}


def _moved(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether the channels are not axis 1, so that the layer gets a view of x."""
    return settings["channel_axis"] % inputs["x"].ndim != 1


# Strided data of 16 bits ---------------------------------------------------------------------------------


#: For each format: the unit roundoff, half the smallest number, and the smallest value that is rounded to infinity.
_FLOAT16, _BFLOAT16 = (ROUNDOFF, UNDERFLOW, OVERFLOW), (2.0**-8, 2.0**-134, (2 - 2.0**-8) * 2.0**127)


class _Channels:
    """
    The exact values of a call in float64, as rows, one per channel.

    They are compared with a call that rounds every step to x's 16-bit format.
    """

    def __init__(self, failure: Failure) -> None:
        assert failure.g is not None
        inputs, self.training, self._axis = (
            failure.inputs,
            failure.settings["training"],
            failure.settings["channel_axis"],
        )
        #: The format's unit roundoff, half its smallest number, and the smallest value that is rounded to infinity.
        self.u, self.eta, self.overflow = _FLOAT16 if np.asarray(inputs["x"]).dtype == np.float16 else _BFLOAT16
        self.x, self.g = self.rows(inputs["x"]), self.rows(failure.g)
        weight = inputs["gamma"]
        self.w = np.abs(column(np.ones(len(self.x)) if weight is None else weight))
        self.mean = self.x.mean(axis=1, keepdims=True) if self.training else column(inputs["running_mean"])
        var = self.x.var(axis=1, keepdims=True) if self.training else column(inputs["running_var"])
        self.var, self.sum = var, var + failure.settings["eps"]
        self.r, self.n, self.d = 1 / np.sqrt(self.sum), self.x.shape[1], self.x - self.mean

    def rows(self, values: Any) -> Any:
        """An array of x's shape as rows."""
        values = np.moveaxis(np.asarray(values, np.float64), self._axis, 0)
        return values.reshape(values.shape[0], -1)

    def laid(self, rows: Any, like: Any) -> Any:
        """Rows as an array of the shape of ``like``."""
        shape = np.moveaxis(like, self._axis, 0).shape
        return np.moveaxis(np.broadcast_to(rows, self.x.shape).reshape(shape), 0, self._axis)


def _each_step_rounded(failure: Failure) -> Any:
    """Whether rounding every step to x's 16-bit format explains each element of y, dx or dgamma."""
    assert failure.got is not None and failure.expected is not None
    call = _Channels(failure)
    with np.errstate(all="ignore"):
        near = np.abs(failure.got - failure.expected) <= _off(failure, call)
        return np.where(np.isfinite(failure.got), near, _overflows(failure, call))


def _overflows(failure: Failure, call: _Channels) -> Any:
    """
    Whether x - mean, its product with the cotangent, or another step towards an element overflows.

    For dgamma and, in training, for dx one such step anywhere in the channel is enough: the sum is then infinite or
    NaN. So is everything where the variance and eps are both rounded to 0.
    """
    along = np.maximum(np.abs(call.d), np.abs(call.d * call.g))
    if failure.output == "y":
        size = np.maximum(np.abs(call.d), call.w * np.abs(call.d) * call.r)
    elif failure.output == "dgamma" or call.training:
        size = along.max(axis=1, keepdims=True, initial=0.0)
    else:
        size = np.abs(call.g) * call.r
    lost = size * (1 + 4 * call.u) >= call.overflow  # each factor has been rounded before
    lost = lost | (np.maximum(call.var, failure.settings["eps"]) <= call.eta * (1 + 4 * call.u))
    return lost.reshape(-1) if failure.output == "dgamma" else call.laid(lost, failure.got)


def _off(failure: Failure, call: _Channels) -> Any:
    """
    A bound on the error of each element if every step is rounded.

    The error of a step with result z is at most u |z| + eta; eta applies only to products and quotients. The relative
    errors of the mean and of r = 1/sqrt(var + eps) are u and 2 u. For y, the error of var + eps, at least eta, adds to
    that of r. Terms in u^2 are below one in a hundred.
    """
    assert failure.expected is not None
    u, eta, r, d, g, w = call.u, call.eta, call.r, call.d, call.g, call.w
    of_d = u * (np.abs(call.mean) + np.abs(d))
    if failure.output == "y":
        of_sum = u * call.sum + 2 * u * call.var * call.training + eta
        least = np.maximum(call.sum - of_sum, 2 * eta)  # if y is finite, var + eps was not rounded to 0
        of_r = r * (of_sum / (2 * least) + 2 * u) + eta
        off = w * (r * of_d + np.abs(d) * of_r + 2 * u * np.abs(d) * r + eta) + eta
        # Twice the bound: the y of the contiguous x may be off by as much in the other direction.
        return 2.02 * call.laid(off + u * np.abs(call.rows(failure.expected)), failure.expected)
    of_dot = (np.abs(g) * of_d + u * np.abs(d * g) + eta).sum(axis=1, keepdims=True)
    if failure.output == "dgamma":
        return 1.01 * ((r * of_dot).reshape(-1) + 3 * u * np.abs(failure.expected) + eta)
    off = (w + 1) * eta
    if call.training:
        k = (d * g).sum(axis=1, keepdims=True) * r**2 / call.n
        of_k = r**2 / call.n * of_dot + 6 * u * np.abs(k) + 3 * eta
        along, average = d * k, g.mean(axis=1, keepdims=True)
        of_along = np.abs(d) * of_k + np.abs(k) * of_d + u * np.abs(along) + eta
        of_average = 2 * u * np.abs(average) + eta
        off = off + r * w * (of_along + of_average + u * (np.abs(g - average) + np.abs(g - average - along)))
    return 1.01 * call.laid(off + 4 * u * np.abs(call.rows(failure.expected)), failure.expected)


#: The requirements that judge y, dx or dgamma of a plain call by their envelope.
_OF_A_PLAIN_CALL = ("BN-F1", "BN-I1", "BN-G1", "BN-G2", "BN-G4", "CM-P2", "CM-N8", "CM-S1")

ON_CPU = (
    KnownViolation(
        notes=("gamma strided", "gamma zero_stride"), where="x of one place a channel", cases=_one_place, **_MISREAD
    ),
    KnownViolation(notes=("gamma strided, x channels_last",), ranks=(4, 5), **_MISREAD),
    KnownViolation(
        notes=("gamma strided", "gamma zero_stride"),
        ranks=(4, 5),
        where="x whose channels come last",
        cases=_channels_come_last,
        **_MISREAD,
    ),
    *(
        KnownViolation(
            requirement,
            "where x, the cotangent or a parameter is strided, every step of both passes is rounded to 16 bits, and"
            " overflows in float16 from 65520 on; those of contiguous ones are computed in float32",
            links=(_FORWARD, _LINK) if "y" in outputs else (_LINK,),
            failures=("value", "infinite", "nan"),
            outputs=outputs,
            dtypes=("float16", "bfloat16"),
            devices=("cpu",),
            where=where,
            cases=cases,
            predicts=_each_step_rounded,
            always=False,  # the accuracy class of 16-bit data hides most of it
        )
        for requirement, outputs, where, cases in (
            ("CM-V1", ("y", "dx", "dgamma"), "", None),
            ("CM-V2", ("dx", "dgamma"), "", None),
            ("CM-V3", ("y", "dx", "dgamma"), "", None),
            *((one, ("y", "dx", "dgamma"), "x whose channels do not come second", _moved) for one in _OF_A_PLAIN_CALL),
        )
    ),
)
