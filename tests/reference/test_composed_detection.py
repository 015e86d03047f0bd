"""Wrong formulas for the composed operators leave the envelope."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from normspec.spec.parts import Part

from .composed_data import Call
from .composed_zoo import computed, exponentials, two_pass
from .envelope_judge import ratio
from .float_tape import Node

SHAPE = (3, 4)


def call(operator: str, seed: int) -> Call:
    """A call with leaves as its parts, or the identity for parts inside the operator."""
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal
    inputs: dict[str, Any] = {"x": normal(SHAPE)}
    settings: dict[str, Any] = {}
    if operator == "highway":
        parts: dict[str, Any] = {"transform": Part("leaf", ("h",)), "gate": Part("leaf", ("z",)), "carry": None}
        inputs |= {"h": normal(SHAPE), "z": normal(SHAPE)}
    elif operator == "mhc":
        parts = {"branches": tuple(Part("leaf", (f"h{k}",)) for k in range(3)), "fuse": None}
        inputs |= {f"h{k}": normal(SHAPE) for k in range(3)} | {"logits": normal(3)}
    elif operator == "residual":
        parts = {"branch": Part("scaled", number=0.5), "shortcut": None, "activation": None}
    else:
        parts, settings = {"sublayer": Part("identity")}, {"eps": 1e-3}
        inputs |= {"x": normal(SHAPE) * 0.05, "gamma": normal(4), "beta": normal(4)}
    second = {name: normal(value.shape) for name, value in inputs.items()}
    return Call(operator, inputs, settings, parts, 0.3 + normal(SHAPE), second)


def held(node: Node) -> Node:
    """The value without its derivative."""
    return Node(node.value)


def one(node: Node) -> Node:
    """1, in a node's dtype."""
    return node.like(1)


Leaves = Mapping[str, Node]


def norm(v: Leaves, s: Node, xhat: Callable[[Node, float], Node] = two_pass, eps: float = 1e-3) -> Node:
    """gamma xhat + beta."""
    return xhat(s, eps) * v["gamma"] + v["beta"]


def deviation_plus_eps(s: Node, eps: float) -> Node:
    """(s - mean) / (sigma + eps)."""
    d = s - s.mean()
    return d / (one(s) / (d * d).mean().reciprocal_root() + s.like(eps))


def unbiased(s: Node, eps: float) -> Node:
    """The variance over n - 1."""
    d = s - s.mean()
    return d * ((d * d).sum(-1) / s.like(s.shape[-1] - 1) + s.like(eps)).reciprocal_root()


def mixed(v: Leaves, weights: Callable[[Node], Node], keep: bool = True) -> Node:
    """x and weighted branches."""
    w = weights(v["logits"])
    total = w.element(0) * v["h0"] + w.element(1) * v["h1"] + w.element(2) * v["h2"]
    return total + v["x"] if keep else total


def t_of(v: Leaves) -> Node:
    """The gate."""
    return v["z"].sigmoid()


FAULTS: dict[tuple[str, str], Callable[[Leaves], Node]] = {
    ("residual", "no skip"): lambda v: v["x"] * v["x"].like(0.5),
    ("residual", "skip without gradient"): lambda v: held(v["x"]) + v["x"] * v["x"].like(0.5),
    ("residual", "branch without gradient"): lambda v: v["x"] + held(v["x"] * v["x"].like(0.5)),
    ("residual", "mean of both"): lambda v: (v["x"] + v["x"] * v["x"].like(0.5)) * v["x"].like(0.5),
    ("pre_norm", "post_norm instead"): lambda v: norm(v, v["x"] + v["x"]),
    ("pre_norm", "normalised skip"): lambda v: norm(v, v["x"]) + norm(v, v["x"]),
    ("pre_norm", "eps outside the root"): lambda v: v["x"] + norm(v, v["x"], deviation_plus_eps),
    ("pre_norm", "eps ten times too large"): lambda v: v["x"] + norm(v, v["x"], eps=1e-2),
    ("pre_norm", "unbiased variance"): lambda v: v["x"] + norm(v, v["x"], unbiased),
    ("pre_norm", "no skip gradient"): lambda v: held(v["x"]) + norm(v, v["x"]),
    ("post_norm", "pre_norm instead"): lambda v: v["x"] + norm(v, v["x"]),
    ("post_norm", "norm of the sublayer alone"): lambda v: v["x"] + norm(v, v["x"]),
    ("post_norm", "eps outside the root"): lambda v: norm(v, v["x"] + v["x"], deviation_plus_eps),
    ("post_norm", "eps ten times too large"): lambda v: norm(v, v["x"] + v["x"], eps=1e-2),
    ("post_norm", "unbiased variance"): lambda v: norm(v, v["x"] + v["x"], unbiased),
    ("post_norm", "no gradient through the sublayer"): lambda v: norm(v, v["x"] + held(v["x"])),
    ("highway", "c = t"): lambda v: v["h"] * t_of(v) + v["x"] * t_of(v),
    ("highway", "c = 1"): lambda v: v["h"] * t_of(v) + v["x"],
    ("highway", "swapped"): lambda v: v["x"] * t_of(v) + v["h"] * (one(v["x"]) - t_of(v)),
    ("highway", "no gate term"): lambda v: v["h"] * held(t_of(v)) + v["x"] * (one(v["x"]) - held(t_of(v))),
    ("highway", "gate term of the carry missing"): lambda v: v["h"] * t_of(v) + v["x"] * (one(v["x"]) - held(t_of(v))),
    ("highway", "tanh gate"): lambda v: v["h"] * v["z"].tanh() + v["x"] * (one(v["x"]) - v["z"].tanh()),
    ("mhc", "no skip"): lambda v: mixed(v, exponentials, keep=False),
    ("mhc", "weights not normalised"): lambda v: mixed(v, lambda w: w.exp()),
    ("mhc", "sigmoid weights"): lambda v: mixed(v, lambda w: w.sigmoid()),
    ("mhc", "equal weights"): lambda v: mixed(v, lambda w: w.like(1 / 3) + (w - w)),
    ("mhc", "softmax without its mean term"): lambda v: mixed(v, lambda w: w.exp() / held(w.exp().sum(0))),
    ("mhc", "logits without gradient"): lambda v: mixed(v, lambda w: held(exponentials(w))),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("fault", FAULTS, ids=" ".join)
def test_each_fault_is_seen(fault, dtype):
    """Three random calls show the fault in y or in a first gradient, in every format."""
    seen = 0.0
    for seed in range(3):
        subject = call(fault[0], seed).cast(dtype)
        composed = subject.composed(subject.arithmetic())
        truth = {"y": composed.y()} | {f"d{k}": v for k, v in composed.gradients(subject.g).items()}
        work = subject.cast(np.float32) if subject.g.dtype.itemsize == 2 else subject
        wrong = lambda leaves, _: FAULTS[fault](leaves)  # noqa: E731
        for result, got in computed(work, wrong, work.g.dtype, second=False):
            value = truth[result]
            seen = max(seen, float(ratio(got.value.astype(dtype), value.exact, value.error).max()))
    assert seen > 2
