"""Backward passes: the values are right, and gradients are not."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from normspec.adapters.numpy.operators import IMPLEMENTATIONS

from .memory import as_if_contiguous
from .plain import batch, finished, lines, mean, pull, returned, var, wide
from .written import gradients, made, right_call, right_vjp, whole


def _beside_the_deviation(x, gamma, beta, *, eps, axes):
    rows = lines("layer_norm", x, {"axes": axes}).rows
    xhat = (rows - mean(rows)) / (np.sqrt(var(rows)) + rows.dtype.type(eps))
    return finished("layer_norm", x, xhat, gamma, beta, {"axes": axes})


def _of_the_bare_root(x, gamma, beta, g, *, eps, axes):
    p = pull("layer_norm", x, gamma, beta, g, eps, {"axes": axes})
    d, deviation = p.lines.rows - p.mean, np.sqrt(var(p.lines.rows))
    r = 1 / (deviation + p.eps)
    return p.gradients(r * (p.h - mean(p.h)) - d * r**2 * mean(p.h * d) / deviation, p.total(p.g * d * r))


whole(
    "gradient-of-the-bare-root",
    "layer_norm",
    "divides by sqrt(var) + eps, and takes the derivative of the root, infinite where the variance is 0",
    "ln-eps-on-std-nan-grad",
    vjp=_of_the_bare_root,
)(_beside_the_deviation)


@gradients("gain-off-by-one", "layer_norm", "reads the stored gamma - 1 for gamma in dx", "ln-zero-centred-gamma-bwd")
def _(p):
    return p.gradients(p.dx(p.g * (p.gain - (p.gamma is not None))))


def nothing(p):
    """No gradient at all."""
    return (None,) * (2 if p.operator == "rms_norm" else 3)


gradients("no-gradient", "layer_norm", "returns None for every gradient", "ln-bwd-silently-none")(nothing)
gradients("rms-no-gradient", "rms_norm", "returns None for every gradient", "rms-bwd-fast-path-cuts-graph")(nothing)


@gradients("group-no-gradient-of-parameters", "group_norm", "returns None for dgamma and dbeta", "gn-bwd-tape-severed")
def _(p):
    return p.gradients()[0], None, None


@gradients("rms-no-gradient-of-the-gain", "rms_norm", "returns None for dgamma", "rms-bwd-dw-none")
def _(p):
    return p.gradients()[0], None


@gradients(
    "gradient-of-two-axes",
    "layer_norm",
    "takes all axes but the first for a group in the backward pass",
    "ln-bwd-assumes-2d",
)
def _(p):
    rows = p.h.reshape(p.x.shape[0], -1) if p.x.ndim > 1 else p.h
    xhat = p.xhat.reshape(rows.shape)
    dx = rows - mean(rows) - xhat * mean(rows * xhat)
    return p.gradients(dx.reshape(p.h.shape) * p.r)


@gradients(
    "tail-rows-dropped", "layer_norm", "sums dgamma and dbeta over whole blocks of 8 groups alone", "ln-bwd-tail-rows"
)
def _(p):
    whole_blocks = (np.arange(len(p.g)) < len(p.g) // 8 * 8)[:, None]
    return p.gradients(None, p.total(p.g * p.xhat * whole_blocks), p.total(p.g * whole_blocks))


@gradients("gain-by-row", "layer_norm", "reads gamma by the number of the group in dx", "ln-bwd-wrong-param-index")
def _(p):
    gain = np.broadcast_to(p.gain, p.g.shape)
    return p.gradients(p.dx(p.g * gain[0, np.arange(len(p.g)) % gain.shape[1]][:, None]))


@gradients("gain-clamped", "layer_norm", "keeps |gamma| from falling below eps in dx", "ln-bwd-gamma-clamped")
def _(p):
    return p.gradients(p.dx(p.g * np.where(np.abs(p.gain) < 0.01, 0.01, p.gain)))


@gradients(
    "gain-after-the-means",
    "layer_norm",
    "multiplies dx by gamma after the means are taken off",
    "ln-bwd-gamma-after-reduction",
)
def _(p):
    return p.gradients(p.gain * p.dx(p.g))


@gradients("statistics-constant", "layer_norm", "takes mean and variance for constants in dx", "ln-bwd-stats-detached")
def _(p):
    return p.gradients(p.r * p.h)


@gradients("rms-root-constant", "rms_norm", "takes the root for a constant in dx", "rms-bwd-projection-missing")
def _(p):
    return p.gradients(p.r * p.h)


@gradients("rms-no-gain-in-dx", "rms_norm", "leaves gamma out of dx", "rms-bwd-gain-missing")
def _(p):
    return p.gradients(p.dx(p.g))


@gradients(
    "statistics-saved-in-bfloat16",
    "layer_norm",
    "saves mean and reciprocal root in bfloat16 for the backward pass",
    "ln-bwd-saved-stats-low-precision",
    dtype="bfloat16",
)
def _(p):
    centre, r = (value.astype(p.x.dtype).astype(np.float32) for value in (p.mean, p.r))
    xhat = (p.lines.rows - centre) * r
    return p.gradients(p.dx(r=r, xhat=xhat), p.total(p.g * xhat))


@gradients(
    "rms-root-saved-in-bfloat16",
    "rms_norm",
    "saves the reciprocal root in bfloat16 for the backward pass",
    "rms-bwd-saved-rstd-low-precision",
    dtype="bfloat16",
)
def _(p):
    r = p.r.astype(p.x.dtype).astype(np.float32)
    xhat = p.lines.rows * r
    return p.gradients(p.dx(r=r, xhat=xhat), p.total(p.g * xhat))


@gradients(
    "sums-of-raw-x",
    "layer_norm",
    "takes the sum of h xhat for r (sum of h x - mean times the sum of h), which cancels",
    "ln-bwd-n2-gpu",
    conforms="it loses no more digits than the rounding of the mean does, which the envelope has",
)
def _(p):
    along = p.r * (mean(p.h * p.lines.rows) - p.mean * mean(p.h))
    return p.gradients(p.r * (p.h - mean(p.h) - p.xhat * along))


@gradients(
    "gradient-of-no-beta",
    "layer_norm",
    "returns an array for dbeta where beta is None",
    "ln-vjp-none-bias-shape",
    conforms="nothing is asked of the gradient of what is not given",
)
def _(p):
    dx, dgamma, dbeta = p.gradients()
    return dx, dgamma, np.zeros_like(p.gamma) if p.beta is None and p.gamma is not None else dbeta


@gradients(
    "dx-into-the-cotangent",
    "layer_norm",
    "writes dx into the cotangent before dbeta is summed",
    "ln-vjp-donated-buffer",
)
def _(p):
    dx = p.gradients()[0]
    p.cotangent[...] = dx
    return p.gradients(None, None, p.total(lines("layer_norm", p.cotangent, p.settings).rows))


@gradients(
    "rms-dx-into-the-cotangent",
    "rms_norm",
    "writes dx into the cotangent before dgamma is summed",
    "rms-bwd-dx-overwrites-dy",
    "rms-bwd-inplace-aliasing-scheduler",
)
def _(p):
    dx = p.gradients()[0]
    p.cotangent[...] = dx
    return p.gradients(None, p.total(lines("rms_norm", p.cotangent, p.settings).rows * p.xhat))


@made(
    "garbage-for-a-vector",
    "layer_norm",
    "returns what lay in memory for dgamma where x has one axis",
    "ln-1d-input-garbage-grad",
)
def _():
    calls = [0]

    def vjp(x, gamma, beta, g, *, eps, axes):

        p = pull("layer_norm", x, gamma, beta, g, eps, {"axes": axes})
        calls[0] += 1
        garbage = None if gamma is None or x.ndim > 1 else np.sin(np.arange(gamma.size) + calls[0]).reshape(gamma.shape)
        return p.gradients(None, garbage)

    return right_call("layer_norm"), {"vjp": vjp}


@gradients(
    "parameters-of-the-local-rows",
    "layer_norm",
    "sums dgamma and dbeta over the first half of the groups",
    "ln-distributed-dgamma-split",
)
def _(p):
    local = (np.arange(len(p.g)) < (len(p.g) + 1) // 2)[:, None]
    return p.gradients(None, p.total(p.g * p.xhat * local), p.total(p.g * local))


@gradients(
    "reduced-under-a-batch",
    "layer_norm",
    "takes the means of dx over all groups where x has several axes",
    "ln-vmap-backward-rule",
)
def _(p):
    if p.x.ndim < 3:
        return p.gradients()
    dx = p.r * (p.h - p.h.mean() - p.xhat * (p.h * p.xhat).mean())
    return p.gradients(dx)


# Second order ------------------------------------------------------------------------------------------------------


def nested(**changed):
    """The NumPy target's layer_norm with some of its derivatives changed: each gets the right one first."""
    right = IMPLEMENTATIONS["layer_norm"]().implementation()
    names = ("vjp", "jvp", "vjp_vjp", "jvp_vjp", "vjp_jvp", "jvp_jvp")
    derivatives = {name: getattr(right, name) for name in names}
    for name, change in changed.items():
        derivatives[name] = change(derivatives[name])
    return right.call, derivatives


@made(
    "second-order-without-gain",
    "layer_norm",
    "leaves gamma out where the gradient is differentiated",
    "ln-dblbwd-gamma",
)
def _():
    def change(right):
        def vjp_vjp(x, gamma, *rest, **settings):
            return right(x, None if gamma is None else np.ones_like(gamma), *rest, **settings)

        return vjp_vjp

    return nested(vjp_vjp=change)


@made(
    "second-tangent-negated",
    "layer_norm",
    "returns the second derivative in forward mode with the wrong sign",
    "ln-2nd-order-jvp",
)
def _():
    return nested(jvp_jvp=lambda right: lambda *tensors, **settings: -right(*tensors, **settings))


# group_norm and instance_norm ---------------------------------------------------------------------------------------


@gradients(
    "group-statistics-of-another",
    "group_norm",
    "reads the statistics of group c mod G for channel c in dgamma",
    "gn-bwd-group-index",
)
def _(p):
    channels = p.x.shape[p.settings["channel_axis"]]
    groups, samples = p.settings["groups"], p.x.shape[0]
    rows = np.moveaxis(p.lines.back(p.lines.rows), p.settings["channel_axis"], 1).reshape(samples, channels, -1)
    which = np.arange(channels) % groups
    centre, r = (value.reshape(samples, groups)[:, which, None] for value in (p.mean, p.r))
    xhat = ((rows - centre) * r).reshape(p.g.shape)
    return p.gradients(None, p.total(p.g * xhat))


@gradients(
    "group-gradient-of-the-last-axis", "group_norm", "sums dgamma and dbeta over one row of the last axis", "gn-bwd-4d"
)
def _(p):
    if p.x.ndim < 4:
        return p.gradients()
    mask = np.zeros(np.moveaxis(p.x, p.settings["channel_axis"], 1).shape, p.g.dtype)
    mask[:, :, 0] = 1
    kept = lines("group_norm", np.moveaxis(mask, 1, p.settings["channel_axis"]), p.settings).rows
    return p.gradients(None, p.total(p.g * p.xhat * kept), p.total(p.g * kept))


@gradients(
    "group-two-columns-added",
    "group_norm",
    "adds the sums of two channels where there are more than 128 samples",
    "gn-bwd-warp64",
)
def _(p):
    dgamma, dbeta = p.total(p.g * p.xhat), p.total(p.g)
    if len(p.x) > 128:
        dgamma, dbeta = (value + np.roll(value, 1) for value in (dgamma, dbeta))
    return p.gradients(None, dgamma, dbeta)


@gradients(
    "group-inside-float16",
    "group_norm",
    "rounds the factors of dx to float16",
    "gn-bwd-missing-acc-cast",
    dtype="float16",
)
def _(p):
    def rounded(value):
        return value.astype(np.float16).astype(np.float32)

    along, centre = rounded(p.r * mean(p.h * p.xhat)), rounded(p.r * mean(p.h))
    return p.gradients(rounded(p.r) * p.h - centre - p.xhat * along)


@gradients(
    "group-through-bfloat16",
    "group_norm",
    "rounds gradients to bfloat16 before they are stored in float16",
    "gn-bwd-fp16-through-bf16",
    dtype="float16",
)
def _(p):
    def rounded(value):
        return value.astype(ml_dtypes.bfloat16).astype(np.float32)

    return p.gradients(rounded(p.dx()), rounded(p.total(p.g * p.xhat)), rounded(p.total(p.g)))


@gradients(
    "group-frozen-parameters", "group_norm", "raises in the backward pass where gamma is None", "gn-bwd-frozen-params"
)
def _(p):
    if p.gamma is None:
        raise RuntimeError("dgamma: no buffer")
    return p.gradients()


@gradients(
    "group-gain-of-channels-last",
    "group_norm",
    "doubles dgamma of the first group where x lies with its channels last",
    "gn-compile-channels-last-dgamma",
)
def _(p):
    dgamma = p.total(p.g * p.xhat)
    if p.settings["channel_axis"] % p.x.ndim == p.x.ndim - 1:
        dgamma[: len(dgamma) // p.settings["groups"]] *= 2
    return p.gradients(None, dgamma)


@gradients(
    "group-cotangent-as-x",
    "group_norm",
    "reads the cotangent as if it were contiguous",
    "gn-bwd-memory-format",
    "gn-noncontiguous-assumed",
)
def _(p):
    read = as_if_contiguous(p.cotangent)
    return pull("group_norm", p.x, p.gamma, p.beta, read, float(p.eps), p.settings).gradients()


# batch_norm -------------------------------------------------------------------------------------------------------


def batch_gradients(change):
    """A right batch_norm and gradients of the steps of its backward pass."""

    def vjp(x, gamma, beta, running_mean, running_var, g, **settings):
        one = batch(x, gamma, beta, running_mean, running_var, settings)
        own = (one.mean, one.var) if one.training else (wide(running_mean), wide(running_var))
        r = 1 / np.sqrt(own[1] + one.eps)
        xhat = (one.x - own[0]) * r
        h = lines("batch_norm", wide(g), settings).rows.T
        gain = 1 if gamma is None else wide(gamma)
        dx, dgamma, dbeta = change(one, xhat, r, h, gain)
        at = lines("batch_norm", x, settings)
        return (
            np.ascontiguousarray(at.back(np.ascontiguousarray(dx.T)).astype(x.dtype)),
            None if gamma is None else np.asarray(dgamma).astype(gamma.dtype),
            None if beta is None else np.asarray(dbeta).astype(beta.dtype),
        )

    return vjp


def right_batch(one, xhat, r, g, gain):
    """dx, dgamma and dbeta of a batch_norm."""
    h = g * gain
    dx = r * (h - h.mean(0) - xhat * (h * xhat).mean(0)) if one.training else r * h
    return dx, (g * xhat).sum(0), g.sum(0)


def batch_call(x, gamma, beta, running_mean, running_var, **settings):
    """A right batch_norm."""

    one = batch(x, gamma, beta, running_mean, running_var, settings)
    return returned(one, one.results())


def _entered(name, what, *bugs, **more):
    def entered(change):
        whole(name, "batch_norm", what, *bugs, vjp=batch_gradients(change), **more)(batch_call)
        return change

    return entered


@_entered("batch-gradient-of-inference", "returns the gradients of inference in training", "td-wrong-mode-tested")
def _(one, xhat, r, g, gain):
    return (r * g * gain, *right_batch(one, xhat, r, g, gain)[1:])


@_entered(
    "batch-uneven-workers",
    "averages the means of two workers with unequal shares as if these were equal",
    "bn-sync-dgrad",
)
def _(one, xhat, r, g, gain):
    if not one.training or len(g) < 3:
        return right_batch(one, xhat, r, g, gain)
    h, cut = g * gain, len(g) // 3
    centre, along = ((part[:cut].mean(0) + part[cut:].mean(0)) / 2 for part in (h, h * xhat))
    return (r * (h - centre - xhat * along), *right_batch(one, xhat, r, g, gain)[1:])


@_entered("batch-gain-in-bfloat16", "adds up dgamma in bfloat16", "bn-bwd-bf16-mixed", dtype="bfloat16")
def _(one, xhat, r, g, gain):
    dx, _, dbeta = right_batch(one, xhat, r, g, gain)
    total = np.zeros(xhat.shape[1], one.given.dtype)
    for row in g * xhat:
        total = (total + row.astype(total.dtype)).astype(total.dtype)
    return dx, total, dbeta


@made("batch-gain-fixed", "batch_norm", "takes 1 for gamma, and 0 for its gradient", "bn-fix-gamma-default")
def _():
    def call(x, gamma, beta, running_mean, running_var, **settings):
        return batch_call(x, None, beta, running_mean, running_var, **settings)

    def fixed(one, xhat, r, g, gain):
        dx, dgamma, dbeta = right_batch(one, xhat, r, g, 1)
        return dx, np.zeros_like(dgamma), dbeta

    return call, {"vjp": batch_gradients(fixed)}


@made(
    "batch-sums-in-another-order",
    "batch_norm",
    "adds up dgamma in another order in every second call",
    "bn-nondeterminism",
    conforms="the same bits each time are advice (CM-P3), unless --require deterministic is asked for",
)
def _():
    calls = [0]

    def change(one, xhat, r, g, gain):
        dx, _, dbeta = right_batch(one, xhat, r, g, gain)
        calls[0] += 1
        order = slice(None, None, -1 if calls[0] % 2 else 1)
        return dx, np.cumsum((g * xhat)[order], 0)[-1] if len(g) else g.sum(0), dbeta

    return batch_call, {"vjp": batch_gradients(change)}


@made("empty-backward", "rms_norm", "raises in the backward pass where there are no groups", "rms-bwd-empty-batch")
def _():

    right = right_vjp("rms_norm")

    def vjp(x, gamma, g, *, eps, axes):
        if not x.size:
            raise ValueError("cannot reshape an array of size 0 into shape (0, -1)")
        return right(x, gamma, g, eps=eps, axes=axes)

    return right_call("rms_norm"), {"vjp": vjp}
