"""norm-position: pre-norm against post-norm at initialisation, and in training with and without a warm-up."""

from __future__ import annotations

import math

import numpy as np

from . import stacks, steps, training
from .operators import Operators
from .result import Array
from .study import Curves, Fact, Facts, Findings, Judgement, Scale, Series, Source, Study, Verdict

KINDS = ("pre-norm", "post-norm")

#: The schedules of the learning rate.
SCHEDULES = NONE, WARM = "no warm-up", "warm-up"

#: Blocks of two sublayers, at initialisation and in training; and the samples in a batch.
DEEP, BLOCKS, SAMPLES = 12, 4, 16

#: Adam's learning rates, and the number of steps; the first half of the steps is the warm-up.
RATES, STEPS = (0.005, 0.01, 0.02), 80

#: The rate whose losses are shown step by step; --quick uses no other.
SHOWN = 0.01

#: The number of final steps over which the loss is averaged.
LAST = 10

#: A model has learned if its loss is below half that of chance.
LEARNED = np.log(training.SYMBOLS) / 2

#: A warm-up counts as needed if so many seeds learn only with it that chance, with equally good schedules, has at most
#: this probability.
CHANCE = 0.05

LARGER = "last weights' gradient, post / pre"


def measure(operators: Operators, scale: Scale) -> Findings:
    """Gradients and stream of a deep model at initialisation; losses of a smaller one in training."""
    gradients, streams, facts = _initial(operators, scale)
    rates, count = ((SHOWN,), 40) if scale.quick else (RATES, STEPS)
    shares: dict[str, list[Array]] = {}
    shown = []
    for rate in rates:
        for kind in KINDS:
            learned = {}
            for schedule in SCHEDULES:
                losses = _losses(operators, scale, kind, rate, count, warm=schedule == WARM)
                learned[schedule] = losses[:, -LAST:].mean(axis=1) < LEARNED
                shares.setdefault(f"{kind}, {schedule}", []).append(learned[schedule])
                facts.append(Fact(f"{kind} at {rate}: learned, {schedule}", learned[schedule].mean()))
                if rate == SHOWN:
                    four = losses.reshape(len(losses), -1, 4).mean(axis=-1)
                    shown.append(Series(f"{kind}, {schedule}", np.arange(0, count, 4), four))
            facts.append(Fact(_p(kind, rate), sign_test(learned[WARM], learned[NONE])))
    panels = [
        Curves(f"gradients at initialisation, {DEEP} blocks", "sublayer", "norm of its weights' gradient", gradients),
        Curves(
            f"activations at initialisation, {DEEP} blocks", "sublayer", "mean square / that of the input", streams,
            y_log=True,
        ),
        Curves(f"training {BLOCKS} blocks at rate {SHOWN}", "step", "loss, nats", shown),
    ]  # fmt: skip
    if len(rates) > 1:
        lines = [Series(label, rates, np.mean(values, axis=1)[None]) for label, values in shares.items()]
        panels.append(Curves(f"after {count} steps", "learning rate", "share of seeds that learned", lines))
    return Findings(facts, panels)


def _initial(operators: Operators, scale: Scale) -> tuple[list[Series], list[Series], list[Fact]]:
    """The gradient of each sublayer's weights and the mean square of the stream, before training."""
    gradients, streams, last = [], [], []
    drawn = training.batch(scale, 0, SAMPLES)
    for kind in KINDS:
        model = _model(operators, scale, kind, 4 if scale.quick else DEEP)
        chain = model.run(drawn.x)
        _, found = model.gradients(chain, training.loss(chain.y, drawn.label)[1])
        norms = []
        for k in range(model.sublayers):
            own = [one for name, one in found.items() if name.startswith(f"{k}.")]
            norms.append(np.sqrt(sum(np.square(steps.norm(one)) for one in own)))
        gradients.append(Series(kind, np.arange(1, model.sublayers + 1), np.stack(norms, axis=1)))
        stream = np.stack([np.square(steps.norm(value)) for value in chain.values[1 : model.sublayers + 2]], axis=1)
        streams.append(Series(kind, np.arange(model.sublayers + 1), stream / stream[:, :1]))
        last.append(norms[-1])
    facts = [
        Fact(LARGER, last[1] / last[0]),
        Fact("growth of the stream, pre-norm", streams[0].values[:, -1]),
        Fact("growth of the stream, post-norm", streams[1].values[:, -1]),
    ]
    return gradients, streams, facts


def _model(operators: Operators, scale: Scale, kind: str, blocks: int) -> training.Transformer:
    """A transformer; if the stream is not normalised, a LayerNorm precedes the read-out."""
    last_norm = kind == KINDS[0]
    return training.Transformer.drawn(operators, scale, blocks, stacks.KINDS[kind], last_norm=last_norm)


def _losses(operators: Operators, scale: Scale, kind: str, rate: float, count: int, *, warm: bool) -> Array:
    """The losses of a model in training, by seed and step."""
    model = _model(operators, scale, kind, 2 if scale.quick else BLOCKS)

    def at(step: int) -> float:
        return rate * min(1.0, step / (count // 2)) if warm else rate

    return training.Training(model, scale, SAMPLES, at).steps(range(1, count + 1))


def sign_test(better: Array, worse: Array) -> float:
    """How likely at least this many pairs would favour the first if both were equally good; ties are left out."""
    first, second = int(np.sum(better & ~worse)), int(np.sum(worse & ~better))
    count = first + second
    return sum(math.comb(count, k) for k in range(first, count + 1)) / 2**count


def _p(kind: str, rate: float) -> str:
    return f"{kind} at {rate}: p of the difference"


def judge(facts: Facts) -> Judgement:
    """Decide at which rates post-norm needs a warm-up and pre-norm does not."""
    rates = [rate for rate in RATES if _p(KINDS[0], rate) in facts]
    needs = {kind: [rate for rate in rates if facts[_p(kind, rate)].median < CHANCE] for kind in KINDS}
    meets = [rate for rate in rates if rate in needs[KINDS[1]] and rate not in needs[KINDS[0]]]
    told = "; ".join(
        f"{kind}: {', '.join(f'rate {rate}' for rate in of) if of else 'no rate'} needs it"
        for kind, of in needs.items()
    )
    because = f"{told}; post-norm's last gradient is {facts[LARGER].median:.2g} times pre-norm's"
    if not (meets and facts[LARGER].median > 1):
        return Judgement(Verdict.DOES_NOT_HOLD, because)
    if meets == rates:
        return Judgement(Verdict.HOLDS, because)
    return Judgement(Verdict.UNDER_CONDITIONS, because, f"the rate is {' or '.join(map(str, meets))}")


STUDY = Study(
    name="norm-position",
    claim=(
        "Post-norm needs a warm-up of the learning rate, since its gradients near the output are large at"
        " initialisation; pre-norm needs none."
    ),
    sources=(
        Source(
            "Xiong et al.: On Layer Normalization in the Transformer Architecture (2020)",
            "sections 3.2 to 4",
            "https://arxiv.org/abs/2002.04745",
        ),
    ),
    measured=(
        f"transformers of width {training.WIDTH} without affine parameters in their norms, of equal weights; the"
        f" gradients of {DEEP} blocks at initialisation; the loss of {BLOCKS} blocks after {STEPS} steps of Adam, the"
        f" rate constant or rising through the first half, on sequences of {training.PLACES} symbols of which the"
        " first says at which place stands the answer"
    ),
    rule=(
        f"A model has learned where its loss over the last {LAST} steps is below half of chance, ln"
        f" {training.SYMBOLS} / 2. A warm-up is needed at a rate where more seeds learn with it than without, beyond"
        f" chance: p below {CHANCE} by the sign test on pairs of equal seed. The claim holds where post-norm needs one"
        " at every rate and pre-norm at none, and post-norm's last gradient is the larger; under conditions where that"
        " is so at some rates."
    ),
    operators=("layer_norm", "pre_norm", "post_norm"),
    measure=measure,
    judge=judge,
)
