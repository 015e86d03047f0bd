"""What exactness costs: the reference against float64 NumPy, and against `onnx.reference`.

Run `python benchmarks/reference_cost.py`; with `--repeats N` for steadier medians. The second comparison needs
`python -m pip install onnx`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from normspec.reference import layer_norm, layer_norm_vjp

EPS = 1e-5
#: (groups, features): a small call, ordinary ones, many short groups, few long ones.
SHAPES = ((8, 64), (4, 4096), (1024, 512), (70000, 8), (8, 65536))


def minimal(x, gamma, beta, g):
    """LayerNorm's y and gradients in float64, as short as NumPy allows."""
    d = x - x.mean(-1, keepdims=True)
    r = 1 / np.sqrt((d * d).mean(-1, keepdims=True) + EPS)
    xhat, h = d * r, gamma * g
    dx = r * (h - h.mean(-1, keepdims=True) - xhat * (h * xhat).mean(-1, keepdims=True))
    return gamma * xhat + beta, dx, (g * xhat).sum(0), g.sum(0)


def forward(x, gamma, beta):
    """Return the reference's y."""
    return layer_norm(x, gamma, beta, eps=EPS, axes=(-1,))


def exact(x, gamma, beta, g):
    """Return what `minimal` returns, from the reference."""
    return forward(x, gamma, beta), *layer_norm_vjp(x, gamma, beta, g, eps=EPS, axes=(-1,))


def seconds(repeats: int, call: Callable[..., object], *arguments) -> float:
    """Return the median time of a call, after one that is not counted."""
    call(*arguments)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call(*arguments)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def onnx_evaluator(features: int):
    """Return a function (x, gamma, beta) -> y of ONNX's reference evaluator, or None where onnx is missing."""
    try:
        from onnx import TensorProto, helper
        from onnx.reference import ReferenceEvaluator
    except ImportError:
        return None
    node = helper.make_node("LayerNormalization", ["x", "gamma", "beta"], ["y"], axis=-1, epsilon=EPS)
    kinds = {"x": [None, features], "gamma": [features], "beta": [features]}
    inputs = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, shape) for name, shape in kinds.items()]
    outputs = [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [None, features])]
    model = helper.make_model(
        helper.make_graph([node], "layer_norm", inputs, outputs), opset_imports=[helper.make_opsetid("", 17)]
    )
    evaluator = ReferenceEvaluator(model)
    return lambda x, gamma, beta: evaluator.run(None, {"x": x, "gamma": gamma, "beta": beta})[0]


def row(what: str, shape: tuple[int, int], ours: float, theirs: float) -> str:
    """Return one line of the table: microseconds an element, and their ratio."""
    per_element = 1e6 / (shape[0] * shape[1])
    return f"{what:24} {shape!s:14} {ours * per_element:10.4f} {theirs * per_element:10.4f} {ours / theirs:8.1f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="timed runs of each, of which the median counts")
    repeats = parser.parse_args().repeats
    rng = np.random.default_rng(0)
    print(f"{'float64':24} {'shape':14} {'us/element':>10} {'other':>10} {'ratio':>8}")
    for shape in SHAPES:
        x, g = rng.standard_normal((2, *shape))
        gamma, beta = rng.standard_normal((2, shape[1]))
        ours = seconds(repeats, exact, x, gamma, beta, g)
        theirs = seconds(repeats, minimal, x, gamma, beta, g)
        print(row("y + vjp / NumPy", shape, ours, theirs), flush=True)
        evaluate = onnx_evaluator(shape[1])
        if evaluate is not None:
            ours = seconds(repeats, forward, x, gamma, beta)
            theirs = seconds(repeats, evaluate, x, gamma, beta)
            print(row("y / onnx.reference", shape, ours, theirs), flush=True)
    if onnx_evaluator(1) is None:
        print("onnx is not installed: run `python -m pip install onnx` to compare with onnx.reference")


if __name__ == "__main__":
    main()
