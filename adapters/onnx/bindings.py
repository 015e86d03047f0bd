"""
LayerNormalization and BatchNormalization in the canonical signatures, for any evaluator of models.

Scale is an input that neither operator can do without, and so is BatchNormalization's B: a gamma of None is a Scale of
ones here, and a beta of None a B of zeros, where LayerNormalization leaves B out. BatchNormalization knows the channels
by axis 1: x goes there and back. No operator takes a callable, so that there is nothing to make the others of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..binding import Binding
from ..known import KnownViolation, float32_momentum, near_float32_momentum
from .models import Node, described


@dataclass(frozen=True)
class Evaluator:
    """What runs models, and what its two operators are known to do."""

    #: As bindings are named: "onnxruntime", "onnx.reference".
    name: str
    #: run(node, arrays by name) -> the outputs.
    run: Callable[[Node, Mapping[str, np.ndarray]], Sequence[np.ndarray]]
    #: For each operator: the conventions that it follows beside those of ONNX, and why.
    conventions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reasons: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: For each operator: the requirements that it is known to violate beside those that ONNX itself does.
    known_violations: Mapping[str, tuple[KnownViolation, ...]] = field(default_factory=dict)


_SPEC = "https://onnx.ai/onnx/operators/onnx__"

#: Why eps is held in float32, in both operators.
_EPS = "epsilon is an attribute of type float, which is a float32; " + _SPEC

_CONVENTIONS: Mapping[str, Mapping[str, str]] = {
    "layer_norm": {"eps_dtype": "float32"},
    "batch_norm": {"eps_dtype": "float32", "momentum": "old"},
}

_REASONS: Mapping[str, Mapping[str, str]] = {
    "layer_norm": {"eps_dtype": _EPS + "LayerNormalization.html"},
    "batch_norm": {
        "eps_dtype": _EPS + "BatchNormalization.html",
        "momentum": (
            "running_mean = input_mean * momentum + current_mean * (1 - momentum); " + _SPEC + "BatchNormalization.html"
        ),
    },
}

#: What no evaluator can help: the attribute is rounded before it comes to any of them.
_MOMENTUM = (
    "momentum is an attribute of type float, so that the weights of the moving average are float32 numbers, also where"
    " the statistics are float64"
)

_KNOWN_VIOLATIONS: Mapping[str, tuple[KnownViolation, ...]] = {
    "layer_norm": (),
    "batch_norm": tuple(
        KnownViolation(
            requirement,
            _MOMENTUM,
            links=(_SPEC + "BatchNormalization.html",),
            failures=("value",),
            dtypes=("float64",),
            modes=("training",),
            where="a momentum that no float32 number is",
            cases=float32_momentum,
            predicts=near_float32_momentum,
        )
        for requirement in ("BN-S1", "BN-S2", "BN-S3")
    ),
}


def _layer_norm(evaluator: Evaluator) -> Callable[..., Any]:
    def layer_norm(x, gamma, beta, *, eps, axes):
        given = {"X": x, "Scale": np.ones(x.shape[x.ndim - len(axes) :], x.dtype) if gamma is None else gamma}
        if beta is not None:
            given["B"] = beta
        attributes = (("axis", -len(axes)), ("epsilon", eps), ("stash_type", 1))
        return _run(evaluator, "LayerNormalization", given, {"Y": x}, attributes)[0]

    return layer_norm


def _batch_norm(evaluator: Evaluator) -> Callable[..., Any]:
    def batch_norm(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
        channels = running_mean.shape
        given = {
            "X": np.moveaxis(x, channel_axis, 1),
            "scale": np.ones(channels, running_mean.dtype) if gamma is None else gamma,
            "B": np.zeros(channels, running_mean.dtype) if beta is None else beta,
            "input_mean": running_mean,
            "input_var": running_var,
        }
        made = {"Y": x, "running_mean": running_mean, "running_var": running_var} if training else {"Y": x}
        attributes = (("epsilon", eps), ("momentum", momentum), ("training_mode", int(training)))
        y, *statistics = _run(evaluator, "BatchNormalization", given, made, attributes)
        mean, variance = statistics if training else (running_mean.copy(), running_var.copy())
        return np.moveaxis(y, 1, channel_axis), mean, variance

    return batch_norm


def _run(
    evaluator: Evaluator,
    operator: str,
    given: Mapping[str, np.ndarray],
    made: Mapping[str, np.ndarray],
    attributes: tuple[tuple[str, Any], ...],
) -> Sequence[np.ndarray]:
    """The outputs, each of them declared to be of the dtype and the rank of the array beside its name."""
    inputs = tuple(described(name, array) for name, array in given.items())
    outputs = tuple(described(name, like) for name, like in made.items())
    return evaluator.run(Node(operator, inputs, outputs, attributes), given)


def _accepts(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
    """What BatchNormalization takes: x has a batch axis and a channel axis."""
    return None if len(shape) >= 2 else f"BatchNormalization takes rank 2 or more, not {len(shape)}"


def bindings_of(evaluator: Evaluator) -> tuple[Binding, ...]:
    """The two operators in one evaluator."""

    def binding(operator: str, name: str, call: Callable[..., Any], **more: Any) -> Binding:
        return Binding(
            operator=operator,
            name=f"{evaluator.name} {name}",
            call=call,
            conventions={**_CONVENTIONS[operator], **evaluator.conventions.get(operator, {})},
            reasons={**_REASONS[operator], **evaluator.reasons.get(operator, {})},
            known_violations=(*_KNOWN_VIOLATIONS[operator], *evaluator.known_violations.get(operator, ())),
            **more,
        )

    return (
        binding("layer_norm", "LayerNormalization", _layer_norm(evaluator)),
        binding("batch_norm", "BatchNormalization", _batch_norm(evaluator), accepts=_accepts),
    )
