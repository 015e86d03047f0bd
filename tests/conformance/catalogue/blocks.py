"""Layers that take parts: residual, pre_norm, post_norm, highway and mhc."""

from __future__ import annotations

import numpy as np

from .memory import storage
from .plain import forward, pull, wide
from .written import whole

Array = np.ndarray


def _as(x: Array, value: Array) -> Array:
    return np.asarray(value).astype(x.dtype)


def _norm(x: Array, gamma, beta, eps: float) -> Array:
    return forward("layer_norm", x, gamma, beta, eps, {"axes": (-1,)})


def _skip(x: Array, shortcut) -> Array:
    return wide(x if shortcut is None else shortcut(x))


# residual ---------------------------------------------------------------------------------------------------------


@whole(
    "skip-rectified-in-place",
    "residual",
    "sets the negative values of x to 0 in place before the branch",
    "res-inplace-relu-aliases-skip",
)
def _(x, branch, *, shortcut=None, activation=None):
    np.maximum(x, 0, out=x)
    total = _as(x, _skip(x, shortcut) + wide(branch(x)))
    return total if activation is None else activation(total)


@whole("branch-twice", "residual", "adds the branch to itself", "res-x-plus-x")
def _(x, branch, *, shortcut=None, activation=None):
    handed = wide(branch(x))
    total = _as(x, handed + handed)
    return total if activation is None else activation(total)


@whole("activation-before-the-sum", "residual", "activates the branch, and not the sum", "res-act-order")
def _(x, branch, *, shortcut=None, activation=None):
    handed = branch(x)
    handed = handed if activation is None else activation(handed)
    return _as(x, _skip(x, shortcut) + wide(handed))


# pre_norm and post_norm -------------------------------------------------------------------------------------------


@whole(
    "skip-normalised-in-place",
    "pre_norm",
    "normalises a float32 x in place, so that the skip path adds LN(x)",
    "res-inplace-norm-aliases-skip",
)
def _(x, sublayer, gamma, beta, *, eps):
    w = x.astype(np.float32, copy=False) if x.dtype.itemsize <= 4 else x
    w[...] = _norm(w, gamma, beta, eps)
    return _as(x, wide(x) + wide(sublayer(_as(x, w))))


@whole("sublayer-discarded", "pre_norm", "adds LN(x) where the sublayer's result belongs", "res-dropout-location")
def _(x, sublayer, gamma, beta, *, eps):
    z = _norm(x, gamma, beta, eps)
    sublayer(z)
    return _as(x, wide(x) + wide(z))


@whole("skip-left-out", "post_norm", "normalises the sublayer's result without x", "res-skipln-skip-missing")
def _(x, sublayer, gamma, beta, *, eps):
    return _norm(sublayer(x), gamma, beta, eps)


@whole("sum-written-into-x", "post_norm", "adds the sublayer's result to x in place", "rms-fusedadd-inplace-alias")
def _(x, sublayer, gamma, beta, *, eps):
    x += sublayer(x)
    return _norm(x, gamma, beta, eps)


@whole(
    "sum-rounded",
    "post_norm",
    "rounds x + sublayer(x) to bfloat16 before it is normalised",
    "rms-fusedadd-stat-from-rounded-sum",
    dtype="bfloat16",
)
def _(x, sublayer, gamma, beta, *, eps):
    return _norm(_as(x, wide(x) + wide(sublayer(x))), gamma, beta, eps)


def _pre_norm(x, sublayer, gamma, beta, *, eps):
    return _as(x, wide(x) + wide(sublayer(_norm(x, gamma, beta, eps))))


def _pre_norm_pull(x, sublayer, gamma, beta, g, eps):
    """The gradients of LN(x), given the cotangent that comes back through the sublayer."""
    carried = sublayer.vjp(_norm(x, gamma, beta, eps), g)
    return pull("layer_norm", x, gamma, beta, carried, eps, {"axes": (-1,)})


def _merged(x, sublayer, gamma, beta, g, *, eps):
    return _pre_norm_pull(x, sublayer, gamma, beta, 2 * g, eps).gradients()


def _dropped(x, sublayer, gamma, beta, g, *, eps):
    dx, dgamma, dbeta = _pre_norm_pull(x, sublayer, gamma, beta, g, eps).gradients()
    return (dx if gamma is None else _as(x, wide(dx) + wide(g))), dgamma, dbeta


def _overwritten(x, sublayer, gamma, beta, g, *, eps):
    return _pre_norm_pull(x, sublayer, gamma, beta, g, eps).gradients()


def _drawn_again(x, sublayer, gamma, beta, g, *, eps):
    sublayer(_norm(x, gamma, beta, eps))
    dx, dgamma, dbeta = _pre_norm_pull(x, sublayer, gamma, beta, g, eps).gradients()
    return _as(x, wide(dx) + wide(g)), dgamma, dbeta


whole(
    "skip-merged-into-the-branch",
    "pre_norm",
    "sends both cotangents through the normalisation: dx = J^T (g + g)",
    "res-bwd-grad-merge",
    vjp=_merged,
)(_pre_norm)
whole(
    "skip-dropped-without-gain",
    "pre_norm",
    "leaves the skip path out of dx where gamma is None",
    "res-bwd-residual-dropped",
    vjp=_dropped,
)(_pre_norm)
whole(
    "skip-overwritten",
    "pre_norm",
    "overwrites dx by that of the branch where it should add it",
    "ln-bwd-grad-overwrite",
    vjp=_overwritten,
)(_pre_norm)
whole(
    "sublayer-called-again",
    "pre_norm",
    "calls the sublayer again in the backward pass, which draws another mask",
    "ln-bwd-dropout-mask-regenerated",
    vjp=_drawn_again,
    conforms="how often a backward pass calls a part is its own affair, and parts with a mask return the same again",
)(_pre_norm)


# highway ----------------------------------------------------------------------------------------------------------


def _sigmoid(z: Array) -> Array:
    with np.errstate(over="ignore"):
        return (1 / (1 + np.exp(-wide(z)))).astype(wide(z).dtype)


def _gates(x, gate, carry):
    logits = wide(gate(x))
    return _sigmoid(logits), _sigmoid(-logits) if carry is None else _sigmoid(carry(x))


def _highway(x, transform, gate, *, carry=None):
    h = wide(transform(x))
    t, c = _gates(x, gate, carry)
    return _as(x, h * t + wide(x) * c)


@whole(
    "gate-and-transform-exchanged",
    "highway",
    "takes the gate for the transform, and the transform for the gate",
    "hw-params-swapped",
)
def _(x, transform, gate, *, carry=None):
    return _highway(x, gate, transform, carry=carry)


@whole("gate-carries", "highway", "multiplies x by t, and the transform by 1 - t", "hw-carry-vs-transform-convention")
def _(x, transform, gate, *, carry=None):
    h = wide(transform(x))
    t, c = _gates(x, gate, carry)
    return _as(x, h * c + wide(x) * t)


@whole("gate-by-softmax", "highway", "takes softmax over the features for the gate", "hw-gate-softmax")
def _(x, transform, gate, *, carry=None):
    h, z = wide(transform(x)), wide(gate(x))
    t = np.exp(z - z.max(-1, keepdims=True))
    t /= t.sum(-1, keepdims=True)
    return _as(x, h * t + wide(x) * (1 - t if carry is None else _sigmoid(carry(x))))


def _no_carry(x, transform, gate, g, *, carry=None):
    h, w = wide(transform(x)), wide(g)
    t, c = _gates(x, gate, carry)
    dx = wide(transform.vjp(x, _as(x, w * t)))
    if carry is None:
        return (_as(x, dx + wide(gate.vjp(x, _as(x, w * (h - wide(x)) * t * (1 - t))))),)
    dx = dx + wide(gate.vjp(x, _as(x, w * h * t * (1 - t))))
    return (_as(x, dx + wide(carry.vjp(x, _as(x, w * wide(x) * c * (1 - c))))),)


whole("no-carried-gradient", "highway", "leaves (1 - t) g out of dx", "hw-grad-missing-carry", vjp=_no_carry)(_highway)


@whole(
    "gate-selects",
    "highway",
    "returns x where the gate is 0, so that a NaN of the transform is lost",
    "hw-zero-times-inf",
)
def _(x, transform, gate, *, carry=None):
    h = wide(transform(x))
    t, c = _gates(x, gate, carry)
    return _as(x, np.where(t == 0, wide(x), h * t + wide(x) * c))


@whole(
    "carry-in-bfloat16",
    "highway",
    "takes 1 - t in bfloat16, which is 0 for t near 1",
    "hw-one-minus-t-cancellation",
    dtype="bfloat16",
)
def _(x, transform, gate, *, carry=None):
    h = wide(transform(x))
    t, c = _gates(x, gate, carry)
    narrow = t.astype(x.dtype)
    return _as(x, h * t + wide(x) * (wide(1 - narrow) if carry is None else c))


# mhc --------------------------------------------------------------------------------------------------------------


def _softmax(logits: Array) -> Array:
    z = np.exp(wide(logits) - wide(logits).max())
    return z / z.sum()


def mixed(name, what, *bugs, **more):
    """Enter an mhc by its weights, of the logits."""

    def entered(weigh):
        def call(x, branches, logits, *, fuse=None):
            values = [branch(x) for branch in branches]
            if fuse is not None:
                return _as(x, wide(x) + wide(fuse(values)))
            return _as(x, wide(x) + sum(w * wide(value) for w, value in zip(weigh(logits), values, strict=True)))

        whole(name, "mhc", what, *bugs, **more)(call)
        return weigh

    return entered


@mixed("weights-all-one", "takes softmax over an axis of one element", "mb-softmax-wrong-axis", "mb-softmax-size1-axis")
def _(logits):
    return np.ones_like(wide(logits))


@mixed("weights-powers-of-two", "rounds the exponentials down to powers of two", "mb-weights-not-normalised")
def _(logits):
    z = wide(logits)
    powers = np.exp2(np.floor((z - z.max()) * np.float32(1.442695)))
    return powers / powers.sum()


@mixed("weights-of-the-parent", "normalises over the whole array that the logits are a view of", "mb-softmax-slice")
def _(logits):
    parent, _ = storage(logits)
    largest = wide(logits).max()
    return np.exp(wide(logits) - largest) / np.exp(wide(parent) - largest).sum()


@mixed("two-largest-weights", "keeps the two largest weights, and does not scale them up", "mb-topk-renorm-missing")
def _(logits):
    w = _softmax(logits)
    kept = np.zeros_like(w)
    kept[np.argsort(-w, kind="stable")[:2]] = 1
    return w * kept


@whole("one-branch-over-the-rows", "mhc", "normalises the weight of a lone branch over the positions", "mb-k1-shape")
def _(x, branches, logits, *, fuse=None):
    values = [branch(x) for branch in branches]
    if fuse is not None:
        return _as(x, wide(x) + wide(fuse(values)))
    w = _softmax(logits)
    if len(branches) == 1:
        w = w / w.dtype.type(max(x.size // x.shape[-1], 1))
    return _as(x, wide(x) + sum(one * wide(value) for one, value in zip(w, values, strict=True)))


@mixed(
    "eight-branches-misweighed",
    "weighs the last of exactly eight branches by the weight of the first",
    "mb-shape-specialised-template",
)
def _(logits):
    w = _softmax(logits)
    if len(w) == 8:
        w[-1] = w[0]
    return w


@mixed("weights-without-nan", "takes a weight that is NaN for 0", "mb-all-masked")
def _(logits):
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(_softmax(logits), nan=0.0)


@mixed("weights-times-their-number", "multiplies the weights by their number", "mb-scale-by-channels")
def _(logits):
    return _softmax(logits) * wide(logits).dtype.type(len(logits))


@mixed("branches-averaged", "divides the weighted sum by the number of branches", "mb-mean-instead-of-sum")
def _(logits):
    return _softmax(logits) / wide(logits).dtype.type(len(logits))


@whole("no-identity", "mhc", "returns the weighted sum without x", "mb-identity-branch-missing")
def _(x, branches, logits, *, fuse=None):
    values = [branch(x) for branch in branches]
    if fuse is not None:
        return _as(x, fuse(values))
    return _as(x, sum(w * wide(value) for w, value in zip(_softmax(logits), values, strict=True)))


@whole(
    "branches-selected", "mhc", "leaves out branches of weight 0, so that a NaN of theirs is lost", "mb-nan-times-zero"
)
def _(x, branches, logits, *, fuse=None):
    values = [branch(x) for branch in branches]
    if fuse is not None:
        return _as(x, wide(x) + wide(fuse(values)))
    pairs = zip(_softmax(logits), values, strict=True)
    return _as(x, wide(x) + sum((w * wide(value) for w, value in pairs if w != 0), np.zeros_like(wide(x))))
