"""Sound algorithms for the composed operators, on floating-point tapes, and how near to the envelope each comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from normspec.reference.accuracy import AccuracyClass
from normspec.reference.composed import Value

from . import float_tape
from .composed_data import Call
from .envelope_judge import NORMATIVE, ratio
from .envelope_moments import CENTRED, Moments
from .float_tape import Node, gradients

Array = np.ndarray


def part(p: Any, x: Any, leaves: Mapping[str, Node]) -> Node:
    """A part, each step in the dtype of its tensors."""
    own = [leaves[name] for name in p.leaves]
    if p.kind == "cascade":
        for inner in p.inner:
            x = part(inner, x, leaves)
        return x
    if p.kind in ("convolution", "causal"):
        last = 2 if p.kind == "causal" else 1
        terms = [own[0].element(j) * x.shifted((j - last) * int(p.number)) for j in range(3)]
        return terms[0] + terms[1] + terms[2]
    if p.kind.startswith("fuse"):
        terms = list(x)
        if p.kind == "fuse_weighted":
            terms = [own[0].element(k) * y for k, y in enumerate(x)]
        if p.kind == "fuse_coupled":
            terms += [before.tanh() * y for before, y in pairwise(x)]
        total = terms[0]
        for term in terms[1:]:
            total = total * term if p.kind == "fuse_product" else total + term
        return total
    return {
        "identity": lambda: x,
        "leaf": lambda: own[0],
        "negated": lambda: -x,
        "scaled": lambda: x * x.like(p.number),
        "linear": lambda: x.linear(own[0]),
        "tanh_linear": lambda: x.linear(own[0]).tanh(),
        "square": lambda: x * x,
        "tanh": lambda: x.tanh(),
        "dropout": lambda: part(p.inner[0], x, leaves) * own[0],
    }[p.kind]()


def two_pass(x: Node, eps: float) -> Node:
    """xhat by primitive operations."""
    d = x - x.mean()
    return d * ((d * d).mean() + x.like(eps)).reciprocal_root()


def divided(x: Node, eps: float) -> Node:
    """xhat = d / sqrt(v + eps), by primitive operations, 1/n formed first."""
    share = x.like(1) / x.like(x.shape[-1])
    d = x - x.sum(-1) * share
    r = ((d * d).sum(-1) * share + x.like(eps)).reciprocal_root()
    return d / (x.like(1) / r)


def folded(x: Node, eps: float) -> Node:
    """xhat = x r - mean r."""
    mean = x.mean()
    d = x - mean
    r = ((d * d).mean() + x.like(eps)).reciprocal_root()
    return x * r - mean * r


XHat = Callable[[Node, float], Node]


def fused(moments: Moments) -> XHat:
    """xhat from statistics of any algorithm, with the closed formula for its gradient."""

    def xhat(x: Node, eps: float) -> Node:
        n = x.shape[-1]
        with np.errstate(all="ignore"):
            mean, variance = moments(x.value.reshape(-1, n))
        column = (*x.shape[:-1], 1)
        r = (Node(variance.reshape(column)) + x.like(eps)).reciprocal_root()
        r = Node(r.value)
        result = Node((x.value - mean.reshape(column)) * r.value)
        result.parents = ((x, lambda g: r * (g - g.mean() - result * (g * result).mean())),)
        r.parents = ((x, lambda g: -(g * r * r * result) / x.like(n)),)
        return result

    return xhat


XHATS: dict[str, XHat] = {
    "two-pass": two_pass,
    "divided": divided,
    "folded": folded,
    "fused": fused(CENTRED["two-pass pairs"]),
    "welford": fused(CENTRED["welford"]),
}

SIGMOIDS: dict[str, Callable[[Node], Node]] = {
    "own": lambda z: z.sigmoid(),
    "tanh": lambda z: z.like(0.5) + z.like(0.5) * (z.like(0.5) * z).tanh(),
}

MIXES: dict[str, Callable[[Node, Node, Node, Node], Node]] = {
    "h t + x (1 - t)": lambda x, h, t, _: h * t + x * (t.like(1) - t),
    "x + t (h - x)": lambda x, h, t, _: x + t * (h - x),
    "h t + x c": lambda x, h, t, c: h * t + x * c,
    "h t - x t + x": lambda x, h, t, _: (h * t - x * t) + x,
}


def exponentials(w: Node) -> Node:
    """exp(w - max) / sum."""
    e = (w - w.like(w.value.max())).exp()
    return e / e.sum(0)


def log_softmax(w: Node) -> Node:
    """exp((w - max) - log(sum))."""
    shifted = w - w.like(w.value.max())
    return (shifted - shifted.exp().sum(0).log()).exp()


def jacobian(w: Node) -> Node:
    """The weights with the gradient w (g - sum w g)."""
    result = Node(exponentials(w).value)
    result.parents = ((w, lambda g: result * (g - (result * g).sum(0))),)
    return result


WEIGHTS = {"exp": exponentials, "log": log_softmax, "jacobian": jacobian}


def variants(
    call: Call, xhats: Mapping[str, XHat] = XHATS
) -> Iterator[tuple[str, Callable[[Mapping[str, Node], Any], Node]]]:
    """Every way to compute y from the tensors by name, with the dtype computed in."""
    parts = call.parts

    def inside(node: Node, leaves: Mapping[str, Node], dtype: Any, role: str) -> Node:
        """A part's result: argument and result are in the data's dtype."""
        return part(parts[role], node.cast(call.g.dtype), leaves).cast(dtype)

    if call.operator == "residual":

        def residual(leaves: Mapping[str, Node], dtype: Any) -> Node:
            x = leaves["x"]
            kept = x if parts["shortcut"] is None else part(parts["shortcut"], x, leaves)
            total = (kept.cast(dtype) + inside(x, leaves, dtype, "branch")).cast(call.g.dtype)
            return total if parts["activation"] is None else part(parts["activation"], total, leaves)

        yield "plain", residual
    elif call.operator in ("pre_norm", "post_norm"):
        for name, xhat in xhats.items():

            def block(leaves: Mapping[str, Node], dtype: Any, xhat: Any = xhat) -> Node:
                def norm(s: Node) -> Node:
                    y = xhat(s, call.settings["eps"])
                    y = y * leaves["gamma"].cast(dtype) if "gamma" in leaves else y
                    return y + leaves["beta"].cast(dtype) if "beta" in leaves else y

                x = leaves["x"].cast(dtype)
                if call.operator == "pre_norm":
                    return x + inside(norm(x), leaves, dtype, "sublayer")
                return norm(x + inside(leaves["x"], leaves, dtype, "sublayer"))

            yield name, block
    elif call.operator == "highway":
        for mix, combine in MIXES.items():
            for name, sigmoid in SIGMOIDS.items():
                if parts["carry"] is not None and mix != "h t + x c":
                    continue

                def gated(
                    leaves: Mapping[str, Node], dtype: Any, combine: Any = combine, sigmoid: Any = sigmoid
                ) -> Node:
                    x = leaves["x"]
                    z, h = inside(x, leaves, dtype, "gate"), inside(x, leaves, dtype, "transform")
                    c = sigmoid(-z) if parts["carry"] is None else sigmoid(inside(x, leaves, dtype, "carry"))
                    return combine(x.cast(dtype), h, sigmoid(z), c)

                yield f"{mix}, {name}", gated
    else:
        for name, softmax in WEIGHTS.items():
            for first in (True, False):

                def connection(
                    leaves: Mapping[str, Node], dtype: Any, softmax: Any = softmax, first: bool = first
                ) -> Node:
                    x = leaves["x"]
                    ys = [part(branch, x, leaves) for branch in parts["branches"]]
                    if parts["fuse"] is not None:
                        return x.cast(dtype) + part(parts["fuse"], ys, leaves).cast(dtype)
                    w = softmax(leaves["logits"].cast(dtype))
                    terms = [w.element(k) * y.cast(dtype) for k, y in enumerate(ys)]
                    terms = [x.cast(dtype), *terms] if first else [*terms, x.cast(dtype)]
                    total = terms[0]
                    for term in terms[1:]:
                        total = total + term
                    return total

                yield f"{name}, x {'first' if first else 'last'}", connection


def ratios(
    call: Call, accuracy: AccuracyClass = NORMATIVE, *, second: bool = True, xhats: Mapping[str, XHat] = XHATS
) -> Iterator[tuple[str, str, float]]:
    """(result, variant, largest ratio) of every variant and result; `call` has the dtype of its tensors."""
    data = call.g.dtype
    dtype = np.dtype(np.float32) if data.itemsize == 2 and accuracy.storage == "H0" else data
    composed = call.composed(call.arithmetic(accuracy))
    truth: dict[str, Value] = {"y": composed.y()}
    truth |= {f"d{k}": v for k, v in composed.gradients(call.g).items()}
    if second:
        truth["ty"] = composed.jvp(call.second)
        truth |= {f"{k}_bar": v for k, v in composed.vjp_vjp(call.g, call.second).items()}
    given = {name: value.dtype for name, value in call.inputs.items() if value is not None}
    formats = {f"d{name}": dtype for name, dtype in given.items()}
    formats |= {f"{name}_bar": dtype for name, dtype in given.items()}
    for name, compute_y in variants(call, xhats):
        for order in ("forwards", "backwards", "pairs"):
            float_tape.ORDER[0] = order
            with np.errstate(all="ignore"):
                for result, got in computed(call, compute_y, dtype, second=second):
                    value = truth[result]
                    stored = np.broadcast_to(got.value.astype(formats.get(result, data)), value.error.shape)
                    reached = ratio(stored, value.exact, value.error)
                    yield result, f"{name}, {order}", float(np.max(reached, initial=0.0))


def computed(call: Call, compute_y: Any, dtype: Any, *, second: bool) -> Iterator[tuple[str, Node]]:
    """Each result of one variant."""
    leaves = {name: Node(value) for name, value in call.inputs.items() if value is not None}
    names = [name for name in leaves if not name.endswith("mask")]
    inputs = [leaves[name] for name in names]
    y, g = compute_y(leaves, dtype).cast(call.g.dtype), Node(call.g)
    yield "y", y
    first = gradients([(y, g)], inputs)
    yield from ((f"d{name}", gradient) for name, gradient in zip(names, first, strict=True))
    if second:
        seeds = [(gradient, Node(call.second[name])) for name, gradient in zip(names, first, strict=True)]
        bars = gradients(seeds, [*inputs, g])
        yield from ((f"{name}_bar", bar) for name, bar in zip((*names, "g"), bars, strict=True))
        yield "ty", bars[-1]
