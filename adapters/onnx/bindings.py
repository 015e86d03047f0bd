"""
ONNX's normalisations in the canonical signatures, for any evaluator of models.

All of them need a scale, so a gamma of None becomes a scale of ones. They need a bias too, so a beta of None becomes
zeros; only LayerNormalization may leave the bias out, and RMSNormalization has none. The channels are axis 1: x's
channel axis is moved there, and y's back. No ONNX operator takes a callable, so the composed operators are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TensorProto

from ...spec.layout import Layout
from ..binding import Binding
from ..departures import Departures
from ..known import Failure, KnownViolation, momentum_in_float32
from .models import Node, described


@dataclass(frozen=True)
class Evaluator:
    """Runs models; with the conventions and known violations of its operators."""

    #: The prefix of the bindings' names: "onnxruntime", "onnx.reference".
    name: str
    #: run(node, arrays by name) -> the outputs.
    run: Callable[[Node, Mapping[str, np.ndarray]], Sequence[np.ndarray]]
    #: For each operator: how it departs from the specification, besides what ONNX itself does.
    departures: Mapping[str, Departures] = field(default_factory=dict)


_SPEC = "https://onnx.ai/onnx/operators/onnx__"

#: The ONNX name of each operator.
_NAMES: Mapping[str, str] = {
    "layer_norm": "LayerNormalization",
    "batch_norm": "BatchNormalization",
    "rms_norm": "RMSNormalization",
    "group_norm": "GroupNormalization",
    "instance_norm": "InstanceNormalization",
}

#: Why eps is held in float32, in all operators.
_EPS = "epsilon is an attribute of type float, which is a float32; " + _SPEC

#: The function that defines GroupNormalization in ONNX; both evaluators run it.
_BODY = "https://github.com/onnx/onnx/blob/main/onnx/defs/nn/defs.cc (GroupNormalization)"

#: The conventions that ONNX's text gives. It rounds to 16 bits before the gain in places; ONNX Runtime does not.
_FOLLOWS: Mapping[str, Mapping[str, str]] = {
    "batch_norm": {
        "momentum=old": (
            "running_mean = input_mean * momentum + current_mean * (1 - momentum); " + _SPEC + "BatchNormalization.html"
        ),
    },
    "group_norm": {
        "variance_algorithm=one-pass": "the function that defines it has Var = Sub(MeanOfSquare, SquareOfMean); "
        + _BODY,
    },
}

#: A violation of every evaluator: the attribute is rounded before any evaluator gets it.
_MOMENTUM = (
    "momentum is an attribute of type float, so that the weights of the moving average are float32 numbers, also where"
    " the statistics are float64"
)


def _lost_variance(failure: Failure) -> Any:
    """The elements for which the root of a negative number may have been taken."""
    x = failure.inputs["x"]
    assert x is not None
    layout = Layout.of("group_norm", x.shape, failure.settings)
    rows = layout.rows(np.asarray(x, np.float64))
    unit, n = (2.0**-53 if x.dtype == np.float64 else 2.0**-24), layout.size
    # Each of the two terms has n roundings, for its sum and its division; the squares and the difference round too.
    lost = (2 * n + 4) * unit * (rows**2).mean(axis=1)
    return layout.back(np.broadcast_to((rows.var(axis=1) + failure.settings["eps"] <= lost)[:, None], rows.shape))


_KNOWN_VIOLATIONS: Mapping[str, tuple[KnownViolation, ...]] = {
    "batch_norm": tuple(
        momentum_in_float32(requirement, _MOMENTUM, f"{_SPEC}BatchNormalization.html")
        for requirement in ("BN-S1", "BN-S2", "BN-S3")
    ),
    "group_norm": (
        KnownViolation(
            "CM-S2",
            "the function that defines it reshapes to (N, C, -1), and without elements -1 stands for no size",
            links=(_BODY,),
            failures=("raises",),
        ),
        KnownViolation(
            "GN-F1",
            "the variance is the difference of two means, which is not clamped: where it comes out below -eps, its root"
            " is NaN",
            links=(_BODY,),
            failures=("nan",),
            outputs=("y",),
            where="a group whose var + eps is no larger than what the roundings of mean(x^2) - mean(x)^2 add up to",
            predicts=_lost_variance,
            always=False,
        ),
    ),
}


def _layer_norm(evaluator: Evaluator) -> Callable[..., Any]:
    def layer_norm(x, gamma, beta, *, eps, axes):
        given = {"X": x, "Scale": _filled(gamma, x.shape[x.ndim - len(axes) :], x.dtype, 1)}
        if beta is not None:
            given["B"] = beta
        attributes = (("axis", -len(axes)), ("epsilon", eps), ("stash_type", 1))
        return _run(evaluator, "LayerNormalization", given, {"Y": x}, attributes)[0]

    return layer_norm


def _rms_norm(evaluator: Evaluator) -> Callable[..., Any]:
    def rms_norm(x, gamma, *, eps, axes):
        given = {"X": x, "scale": _filled(gamma, x.shape[x.ndim - len(axes) :], x.dtype, 1)}
        # Y has the scale's dtype.
        attributes = (("axis", -len(axes)), ("epsilon", eps), ("stash_type", 1))
        return _run(evaluator, "RMSNormalization", given, {"Y": given["scale"]}, attributes)[0]

    return rms_norm


def _group_norm(evaluator: Evaluator) -> Callable[..., Any]:
    def group_norm(x, gamma, beta, *, eps, groups, channel_axis):
        # The dtype of the first stage: not narrower than x's.
        stash = TensorProto.DOUBLE if x.dtype == np.float64 else TensorProto.FLOAT
        attributes = (("epsilon", eps), ("num_groups", groups), ("stash_type", stash))
        return _of_samples(evaluator, "GroupNormalization", "bias", (x, gamma, beta), channel_axis, attributes)

    return group_norm


def _instance_norm(evaluator: Evaluator) -> Callable[..., Any]:
    def instance_norm(x, gamma, beta, *, eps, channel_axis):
        attributes = (("epsilon", eps),)
        return _of_samples(evaluator, "InstanceNormalization", "B", (x, gamma, beta), channel_axis, attributes)

    return instance_norm


def _of_samples(
    evaluator: Evaluator,
    operator: str,
    bias: str,
    tensors: tuple[Any, Any, Any],
    channel_axis: int,
    attributes: tuple[tuple[str, Any], ...],
) -> np.ndarray:
    x, gamma, beta = tensors
    channels = (x.shape[channel_axis],)
    given = {
        "X": np.moveaxis(x, channel_axis, 1),
        "scale": _filled(gamma, channels, x.dtype, 1),
        bias: _filled(beta, channels, x.dtype, 0),
    }
    return np.moveaxis(_run(evaluator, operator, given, {"Y": x}, attributes)[0], 1, channel_axis)


def _batch_norm(evaluator: Evaluator) -> Callable[..., Any]:
    def batch_norm(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
        channels = running_mean.shape
        given = {
            "X": np.moveaxis(x, channel_axis, 1),
            "scale": _filled(gamma, channels, running_mean.dtype, 1),
            "B": _filled(beta, channels, running_mean.dtype, 0),
            "input_mean": running_mean,
            "input_var": running_var,
        }
        made = {"Y": x, "running_mean": running_mean, "running_var": running_var} if training else {"Y": x}
        attributes = (("epsilon", eps), ("momentum", momentum), ("training_mode", int(training)))
        y, *statistics = _run(evaluator, "BatchNormalization", given, made, attributes)
        mean, variance = statistics if training else (running_mean.copy(), running_var.copy())
        return np.moveaxis(y, 1, channel_axis), mean, variance

    return batch_norm


def _filled(given: np.ndarray | None, shape: tuple[int, ...], dtype: Any, value: int) -> np.ndarray:
    """A parameter, or an array of ``value`` if it is None."""
    return np.full(shape, value, dtype) if given is None else given


def _run(
    evaluator: Evaluator,
    operator: str,
    given: Mapping[str, np.ndarray],
    made: Mapping[str, np.ndarray],
    attributes: tuple[tuple[str, Any], ...],
) -> Sequence[np.ndarray]:
    """Run the operator; ``made`` names its outputs, each with an array that has its dtype and rank."""
    inputs = tuple(described(name, array) for name, array in given.items())
    outputs = tuple(described(name, like) for name, like in made.items())
    return evaluator.run(Node(operator, inputs, outputs, attributes), given)


def _accepts(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
    """The ``accepts`` of BatchNormalization: x needs a batch axis and a channel axis."""
    return None if len(shape) >= 2 else f"BatchNormalization takes rank 2 or more, not {len(shape)}"


def _accepts_positions(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
    """The ``accepts`` of InstanceNormalization: x is (N, C, D1, ..., Dn)."""
    return None if len(shape) >= 3 else f"InstanceNormalization takes rank 3 or more, not {len(shape)}"


def bindings_of(evaluator: Evaluator) -> tuple[Binding, ...]:
    """The bindings of one evaluator."""

    def binding(operator: str, call: Callable[..., Any], **more: Any) -> Binding:
        name, own = _NAMES[operator], evaluator.departures.get(operator, Departures())
        departures = Departures(
            {"eps_dtype=float32": f"{_EPS}{name}.html", **_FOLLOWS.get(operator, {}), **own.follows},
            (*_KNOWN_VIOLATIONS.get(operator, ()), *own.known_violations),
        )
        return departures.binding(operator, f"{evaluator.name} {name}", call, **more)

    return (
        binding("layer_norm", _layer_norm(evaluator)),
        binding("batch_norm", _batch_norm(evaluator), accepts=_accepts),
        binding("rms_norm", _rms_norm(evaluator)),
        binding("group_norm", _group_norm(evaluator)),
        binding("instance_norm", _instance_norm(evaluator), accepts=_accepts_positions),
    )
