"""Running statistics: how they move, and which of them a mode takes."""

from __future__ import annotations

import numpy as np

from .plain import affine, batch, returned, wide
from .written import batch_norm, made


@batch_norm(
    "batch-running-variance-biased",
    "moves the running variance by the biased one, and declares Bessel's correction",
    "bn-running-var-biased",
    conventions={"running_variance": "bessel"},
)
def _(b):
    return b.results()


def bessel(b):
    """The running variance moves by n/(n - 1) of the batch's."""
    n = b.x.dtype.type(len(b.x))
    return b.results(running_var=b.moved(b.running_var, b.var * n / (n - 1)) if b.training else None)


batch_norm(
    "batch-running-variance-corrected",
    "moves the running variance by that over n - 1",
    "bn-onnx-population-variance",
)(bessel)
batch_norm(
    "batch-correction-of-one-value",
    "corrects by n/(n - 1), which is infinite for one value, and declares the correction",
    "bn-bessel-n1-nan",
    conventions={"running_variance": "bessel"},
)(bessel)
batch_norm(
    "batch-two-paths", "corrects the running variance by n/(n - 1) where x has four axes", "bn-fused-vs-unfused-bessel"
)(lambda b: bessel(b) if b.given.ndim == 4 else b.results())


@batch_norm(
    "batch-momentum-the-other-way",
    "weighs the old statistics by momentum",
    "bn-momentum-convention",
    "bn-onnx-momentum-export",
)
def _(b):
    if not b.training:
        return b.results()
    weight = 1 - b.momentum
    return b.results(None, b.moved(b.running_mean, b.mean, weight), b.moved(b.running_var, b.var, weight))


@batch_norm("batch-never-updated", "returns the running statistics as they were", "bn-stats-never-updated")
def _(b):
    return b.results(None, b.running_mean, b.running_var)


@made(
    "batch-first-step",
    "batch_norm",
    "puts the statistics of the first batch of each shape in the place of the running ones",
    "bn-first-step-policy",
)
def _():
    met: set[object] = set()

    def call(x, gamma, beta, running_mean, running_var, **settings):
        one = batch(x, gamma, beta, running_mean, running_var, settings)
        if not one.training or x.shape in met:
            return returned(one, one.results())
        met.add(x.shape)
        return returned(one, one.results(None, one.mean, one.var))

    return call


@made(
    "batch-cumulative",
    "batch_norm",
    "weighs a batch by 1 / (number of calls), whatever momentum is",
    "bn-cumulative-average",
)
def _():
    calls = [0]

    def call(x, gamma, beta, running_mean, running_var, **settings):
        one = batch(x, gamma, beta, running_mean, running_var, settings)
        if not one.training:
            return returned(one, one.results())
        calls[0] += 1
        moved = one.moved(running_mean, one.mean, 1 / calls[0]), one.moved(running_var, one.var, 1 / calls[0])
        return returned(one, one.results(None, *moved))

    return call


@batch_norm(
    "batch-mode-ignored",
    "normalises by the batch, and moves the running statistics, in inference too",
    "bn-frozen-still-updates",
    "bn-export-ignores-training-flag",
)
def _(b):
    y = b.y(centre=b.mean, spread=b.var)
    return y, b.moved(b.running_mean, b.mean), b.moved(b.running_var, b.var)


@batch_norm(
    "batch-variance-less-eps", "stores the running variance without eps, which it never held", "bn-var-stored-minus-eps"
)
def _(b):
    return b.results(running_var=b.moved(b.running_var, b.var) - b.eps if b.training else None)


@batch_norm(
    "batch-signed-steps",
    "moves the running variance by a step of momentum towards the batch's",
    "bn-running-var-negative-by-averaging",
)
def _(b):
    old = wide(b.running_var)
    return b.results(running_var=old + b.momentum * np.sign(b.var - old) if b.training else None)


@batch_norm(
    "batch-updated-in-place", "moves the running statistics that it was handed, in place", "bn-update-before-use"
)
def _(b):
    results = b.results()
    if b.training:
        b.running_mean[...], b.running_var[...] = results[1], results[2]
    return results


@batch_norm("batch-updated-twice", "moves the running mean twice", "bn-running-stats-race")
def _(b):
    moved = b.moved(b.moved(b.running_mean, b.mean), b.mean) if b.training else None
    return b.results(running_mean=moved)


@batch_norm("batch-running-mean-ignored", "leaves the running mean out in inference", "bn-eval-fresh-vacuous")
def _(b):
    return b.results(b.y(centre=None if b.training else 0))


@batch_norm(
    "batch-variance-as-deviation",
    "divides by the running variance in inference, as if it were a deviation",
    "bn-eval-fresh-vacuous",
)
def _(b):
    if b.training:
        return b.results()
    return b.results(affine((b.x - b.running_mean) / (wide(b.running_var) + b.eps), b.gamma, b.beta))
