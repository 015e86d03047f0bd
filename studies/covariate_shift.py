"""covariate-shift: whether BatchNorm trains better because the inputs of each layer drift less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import attrs
import numpy as np

from . import over_seeds, steps
from .classification import CLASSES, INPUTS, cross_entropy, points
from .operators import Operators
from .over_seeds import Norm
from .result import Array, Chain, Result, Step
from .study import AGREE, SEEDS, Curves, Fact, Facts, Findings, Judgement, Scale, Series, Source, Study, Verdict, agree

#: Units of a layer, points in a batch, and points in all.
WIDTH, BATCH, POINTS = 32, 64, 1024
EPS = 1e-5
#: A run's loss is the mean over this many steps at its end; moments are measured every so many steps.
LAST_STEPS, EVERY = 20, 5
#: The noise of Santurkar et al., appendix A. In each step each unit has its own mean and deviation, drawn from
#: [-0.5, 0.5] and [1, 1.25]; in each sample it has a shift and a factor about these, 0.1 wide.
SHIFT, FACTOR, WITHIN = 0.5, 0.25, 0.1

NONE, BATCH_NORM, NOISY, LAYER_NORM = "no norm", "BatchNorm", "BatchNorm and noise", "LayerNorm"
_NORMS: Mapping[str, Norm] = {
    BATCH_NORM: over_seeds.BATCH_NORM,
    NOISY: over_seeds.BATCH_NORM,
    LAYER_NORM: over_seeds.LAYER_NORM,
}


def sigmoid(x: Array) -> tuple[Array, Array]:
    """1 / (1 + exp(-x)), computed by tanh, which does not overflow."""
    y = (1 + np.tanh(x / 2)) / 2
    return y, y * (1 - y)


@attrs.frozen
class Setting:
    """A comparison of nets: activation, hidden layers, and rates of gradient descent; each net uses its best rate."""

    name: str
    activation: steps.Activation
    #: The variance of a hidden weight, times the width.
    gain: float
    depth: int
    rates: Sequence[float]


SETTINGS = (
    Setting("3 layers of sigmoid", sigmoid, 1.0, 3, (0.5, 2.0)),
    Setting("4 layers of ReLU", steps.relu, 2.0, 4, (0.1, 0.2)),
)


@attrs.frozen(eq=False)
class Run:
    """One net in training: for each seed the loss before each step, and at some steps the drift."""

    #: (seeds, steps)
    losses: Array
    #: (seeds, some steps)
    drift: Array

    @property
    def final(self) -> Array:
        """The mean loss at the end, by seed; infinite where training broke down."""
        found = self.losses[:, -LAST_STEPS:].mean(axis=1)
        return np.where(np.isfinite(found), found, np.inf)


def _normalised(operators: Operators, norm: Norm) -> Step:
    """The norm as a step on arrays of (seeds, samples, units)."""

    def step(x: Array) -> Result:
        result = norm(operators, x[..., None], EPS)
        return Result(result.y[..., 0], lambda g: {"x": result.pull(g[..., None])["x"][..., 0]})

    return step


@lru_cache(maxsize=4)  # the probe of the step before uses the same noise
def _noise(scale: Scale, number: int, depth: int) -> list[Step]:
    """The noise after each norm in one step: factors and shifts for each unit, and for each sample around these."""

    def uniform(name: str, *shape: int) -> Array:
        return scale.integers(f"{name} {number}", 2**16, depth, *shape) / 2.0**16

    def noisy(factor: Array, shift: Array) -> Step:
        return lambda x: Result(x * factor + shift, lambda g: {"x": g * factor})

    shift = SHIFT * (2 * uniform("shift", 1, WIDTH) - 1) + WITHIN * (2 * uniform("shifts", BATCH, WIDTH) - 1)
    factor = 1 + FACTOR * uniform("factor", 1, WIDTH) + WITHIN * scale.normal(f"factors {number}", depth, BATCH, WIDTH)
    return [noisy(factor[:, layer], shift[:, layer]) for layer in range(depth)]


@attrs.frozen(eq=False)
class Net:
    """Layers of weights, norm, noise and activation, and a read-out. It has no biases, gamma or beta."""

    operators: Operators
    scale: Scale
    setting: Setting
    kind: str
    weights: list[Array]

    @classmethod
    def drawn(cls, operators: Operators, scale: Scale, setting: Setting, kind: str) -> Net:
        """A new net; the weights are the same for all kinds."""
        sizes = [INPUTS, *[WIDTH] * setting.depth, CLASSES]
        weights = [
            scale.normal(f"layer {k}", a, b) * np.sqrt((setting.gain if k else 1.0) / a)
            for k, (a, b) in enumerate(pairwise(sizes))
        ]
        return cls(operators, scale, setting, kind, weights)

    def run(self, x: Array, number: int) -> tuple[Chain, list[Array]]:
        """Run the net on x in a training step; return it and the inputs of all layers but the first."""
        chain, inputs = [], []
        noise = _noise(self.scale, number, self.setting.depth) if self.kind == NOISY else []
        for layer, w in enumerate(self.weights[:-1]):
            chain.append(steps.linear(w, f"{layer}"))
            if self.kind in _NORMS:
                chain.append(_normalised(self.operators, _NORMS[self.kind]))
            chain += noise[layer : layer + 1]
            chain.append(steps.activated(self.setting.activation))
            inputs.append(len(chain))
        found = Chain.of(x, [*chain, steps.linear(self.weights[-1], f"{self.setting.depth}")])
        return found, [found.values[place] for place in inputs]


def trained(net: Net, count: int, rate: float) -> Run:
    """Train by gradient descent for `count` steps."""
    all_points = points(net.scale, POINTS)
    probe = all_points.x[:, :BATCH]
    batches = net.scale.integers("batches", POINTS, count, BATCH)
    losses, drift = [], []
    for number in range(count):
        some = all_points.some(batches[:, number])
        chain, _ = net.run(some.x, number)
        value, g = cross_entropy(chain.y, some.label)
        losses.append(value)
        look = number % EVERY == 0
        before = net.run(probe, number)[1] if look else []
        for gradients in chain.pull(g).parameters:
            for name, gradient in gradients.items():
                net.weights[int(name)] = net.weights[int(name)] - rate * gradient
        if look:
            drift.append(_drift(before, net.run(probe, number + 1)[1]))
    return Run(np.stack(losses, axis=1), np.stack(drift, axis=1))


def _drift(before: Sequence[Array], after: Sequence[Array]) -> Array:
    """How far the units' mean and deviation move in a step, relative to their deviation; mean over layers, by seed."""
    found = []
    for old, new in zip(before, after, strict=True):
        moved = np.square(new.mean(axis=1) - old.mean(axis=1)) + np.square(new.std(axis=1) - old.std(axis=1))
        found.append(np.sqrt(moved.sum(axis=1) / np.square(old.std(axis=1)).sum(axis=1)))
    return np.mean(found, axis=0)


def measure(operators: Operators, scale: Scale) -> Findings:
    """Loss and drift of four nets in two settings."""
    count = 20 if scale.quick else 120
    settings = [attrs.evolve(SETTINGS[0], rates=SETTINGS[0].rates[:1])] if scale.quick else SETTINGS
    facts, panels = [], []
    for setting in settings:
        best = {kind: _best(operators, scale, setting, kind, count) for kind in (NONE, BATCH_NORM, NOISY, LAYER_NORM)}
        for kind, (run, rate) in best.items():
            facts.append(Fact(f"{setting.name}, {kind} (rate {rate:g}): {_LOSS}", run.final))
            facts.append(Fact(f"{setting.name}, {kind} (rate {rate:g}): {_DRIFT}", np.median(run.drift, axis=1)))
        runs = {kind: run for kind, (run, _) in best.items()}
        panels += [_losses(setting, runs, count), _drifts(setting, runs, count)]
    return Findings(facts, panels)


#: The quantities of the facts.
_LOSS, _DRIFT = "loss", "drift"


def _best(operators: Operators, scale: Scale, setting: Setting, kind: str, count: int) -> tuple[Run, float]:
    """The run at the rate that ends with the lowest median loss, and that rate."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # a rate that is too large
        found = [(trained(Net.drawn(operators, scale, setting, kind), count, rate), rate) for rate in setting.rates]
    return min(found, key=lambda one: float(np.median(one[0].final)))


def _losses(setting: Setting, runs: Mapping[str, Run], count: int) -> Curves:
    at = np.arange(EVERY, count + 1, EVERY)
    lines = [Series(name, at, run.losses.reshape(-1, len(at), EVERY).mean(axis=2)) for name, run in runs.items()]
    return Curves(f"{setting.name}: loss", "step", f"mean loss of {EVERY} steps", lines, y_log=True)


def _drifts(setting: Setting, runs: Mapping[str, Run], count: int) -> Curves:
    at = np.arange(0, count, EVERY) + 1
    label = "mean and deviation move by, in deviations"
    lines = [Series(name, at, np.maximum(run.drift, 1e-6)) for name, run in runs.items()]
    return Curves(f"{setting.name}: drift of layer inputs", "step", label, lines, y_log=True)


def judge(facts: Facts) -> Judgement:
    """Apply the rule."""
    told, against, supporting = [], False, False
    for setting in SETTINGS:
        loss, drift = (_by_kind(facts, setting, what) for what in (_LOSS, _DRIFT))
        if not loss:
            continue
        if agree(loss[BATCH_NORM] < loss[NONE]):
            steadier = agree(drift[BATCH_NORM] < drift[NONE])
            more, no_worse = agree(drift[NOISY] > drift[NONE]), agree(loss[NOISY] < loss[NONE])
            against |= not steadier or (more and no_worse)
            supporting |= steadier and more and not no_worse
            noise = f"with noise it drifts {np.median(drift[NOISY] / drift[NONE]):.2g} times as much as without norm"
            told.append(
                f"{setting.name}: BatchNorm ends at a loss of {np.median(loss[BATCH_NORM]):.2g} in place of"
                f" {np.median(loss[NONE]):.2g}; {noise}, and ends at {np.median(loss[NOISY]):.2g}"
            )
        else:
            told.append(f"{setting.name}: BatchNorm trains no better than no norm, so there is nothing to explain")
    because = "; ".join(told)
    if against or not supporting:
        return Judgement(Verdict.DOES_NOT_HOLD, because)
    return Judgement(Verdict.HOLDS, because)


def _by_kind(facts: Facts, setting: Setting, what: str) -> dict[str, Array]:
    found = {}
    for name, fact in facts.items():
        if name.startswith(f"{setting.name}, ") and name.endswith(f": {what}"):
            found[name.removeprefix(f"{setting.name}, ").partition(" (")[0]] = fact.values
    return found


STUDY = Study(
    name="covariate-shift",
    claim="BatchNorm trains better because the distribution of each layer's inputs drifts less.",
    sources=(
        Source(
            "Ioffe, Szegedy: Batch Normalization (2015)", "abstract and section 2", "https://arxiv.org/abs/1502.03167"
        ),
        Source(
            "Santurkar, Tsipras, Ilyas, Madry: How Does Batch Normalization Help Optimization? (2018)",
            "section 2.1 and appendix A, for the noise that contradicts it",
            "https://arxiv.org/abs/1805.11604",
        ),
    ),
    measured=(
        f"the loss of nets of {WIDTH} units a layer in gradient descent on generated classes, each at the better of two"
        " rates, and how far mean and deviation of the layers' inputs move in a step, over their deviation: without"
        " norm, with BatchNorm, with BatchNorm and noise behind it that is drawn anew in each step, and with LayerNorm"
    ),
    rule=(
        f"Where BatchNorm ends with a lower loss than no norm in {AGREE} of {SEEDS} seeds (a sign test at 5 %), it has"
        " to drift less, and with noise that makes it drift more than no norm it must not end lower. The claim holds"
        " where that is so, and does not where it is not, or where nothing has to be explained."
    ),
    operators=("batch_norm", "layer_norm"),
    measure=measure,
    judge=judge,
)
