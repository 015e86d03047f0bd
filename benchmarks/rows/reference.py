"""The cost of exactness: the reference against a minimal LayerNorm in float64, and against onnx's reference."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rows.row import Measured, NotThere, Row

EPS = 1e-5
#: (groups, features): a small call, ordinary ones, many short groups, few long ones.
SHAPES = ((8, 64), (4, 4096), (1024, 512), (70000, 8), (8, 65536))


def minimal(x: Any, gamma: Any, beta: Any, g: Any) -> Any:
    """LayerNorm's y and gradients in float64, as short as NumPy allows."""
    d = x - x.mean(-1, keepdims=True)
    r = 1 / np.sqrt((d * d).mean(-1, keepdims=True) + EPS)
    xhat, h = d * r, gamma * g
    dx = r * (h - h.mean(-1, keepdims=True) - xhat * (h * xhat).mean(-1, keepdims=True))
    return gamma * xhat + beta, dx, (g * xhat).sum(0), g.sum(0)


def forward(x: Any, gamma: Any, beta: Any) -> Any:
    """The reference's y."""
    from normspec.reference import layer_norm

    return layer_norm(x, gamma, beta, eps=EPS, axes=(-1,))


def exact(x: Any, gamma: Any, beta: Any, g: Any) -> Any:
    """The same results as `minimal`, from the reference."""
    from normspec.reference import layer_norm_vjp

    return forward(x, gamma, beta), *layer_norm_vjp(x, gamma, beta, g, eps=EPS, axes=(-1,))


def times(ours: Callable[[], object], theirs: Callable[[], object], repeats: int = 5) -> float:
    """How many times as long the first takes as the second: the median of several timings, taken in turn."""

    def seconds(call: Callable[[], object], count: int) -> float:
        started = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - started) / count

    ours()
    theirs()
    count = max(1, round(seconds(ours, 1) / seconds(theirs, 5)))
    return statistics.median(seconds(ours, 1) / seconds(theirs, count) for _ in range(repeats))


def problem(shape: tuple[int, int]) -> tuple[Any, Any, Any, Any]:
    """x, gamma, beta and the cotangent of y, in float64."""
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((2, *shape))
    gamma, beta = rng.standard_normal((2, shape[1]))
    return x, gamma, beta, g


def onnx_evaluator(features: int) -> Callable[..., Any] | None:
    """A function (x, gamma, beta) -> y of ONNX's reference evaluator, or None if onnx is missing."""
    try:
        from onnx import TensorProto, helper
        from onnx.reference import ReferenceEvaluator
    except ImportError:
        return None
    node = helper.make_node("LayerNormalization", ["x", "gamma", "beta"], ["y"], axis=-1, epsilon=EPS)
    kinds = {"x": [None, features], "gamma": [features], "beta": [features]}
    inputs = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, shape) for name, shape in kinds.items()]
    outputs = [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [None, features])]
    graph = helper.make_graph([node], "layer_norm", inputs, outputs)
    evaluator = ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    return lambda x, gamma, beta: evaluator.run(None, {"x": x, "gamma": gamma, "beta": beta})[0]


def against_numpy(_: str) -> Measured:
    """How many times as long as a minimal version the reference takes for y and the gradients, and the median ratio."""
    found = {}
    for groups, features in SHAPES:
        given = problem((groups, features))
        ratio = times(functools.partial(exact, *given), functools.partial(minimal, *given))
        found[f"{groups} x {features}, times"] = ratio
    return {"median of these, times": statistics.median(found.values()), **found}


def against_onnx(_: str) -> Measured:
    """How many times as long as onnx's reference evaluator the reference takes for y."""
    found = {}
    for groups, features in SHAPES:
        evaluate, given = onnx_evaluator(features), problem((groups, features))[:3]
        if evaluate is None:
            raise NotThere("onnx is not installed")
        ratio = times(functools.partial(forward, *given), functools.partial(evaluate, *given))
        found[f"{groups} x {features}, times"] = ratio
    return found


ROWS = (
    Row("reference", "y and gradients by the reference, against minimal float64 NumPy", against_numpy),
    Row("reference-onnx", "y by the reference, against onnx.reference", against_onnx),
)
