"""residual-contributions: what each branch adds to the stream, and how a model does without it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import attrs
import numpy as np

from . import stacks, steps, training
from .operators import Operators
from .result import Array, Result, Step
from .study import Curves, Fact, Facts, Findings, Judgement, Scale, Series, Source, Study, Verdict

#: Blocks, of two sublayers each; Adam's steps, its rate, and the number of steps in which the rate rises.
BLOCKS, STEPS, RATE, WARM_UP = 4, 120, 0.003, 20

#: Samples in a training batch, and in the batch for all measurements.
SAMPLES, MEASURED = 16, 64

#: The number of times contributions are measured in training.
LOOKS = 6

#: The number of a batch that is not used for training.
HELD_OUT = 1_000_000

#: The loss of a model that has learned nothing.
CHANCE = float(np.log(training.SYMBOLS))

PRE, POST, NONE = "pre-norm", "post-norm", "no skip"


def _kinds() -> Mapping[str, training.Placed]:
    """The placements of a sublayer: in either block, or below a norm with nothing added."""

    def alone(operators: Operators, layer: stacks.Layer) -> Step:
        return steps.joined(lambda x: operators.layer_norm(x, eps=stacks.EPS), layer.branch)

    return {PRE: stacks.KINDS[PRE], POST: stacks.KINDS[POST], NONE: alone}


def measure(operators: Operators, scale: Scale) -> Findings:
    """Contributions before, during and after training, and the loss without each sublayer."""
    held = training.batch(scale, HELD_OUT, MEASURED)
    blocks, count = (2, 40) if scale.quick else (BLOCKS, STEPS)
    facts, shares, during, removals = [], [], [], []
    for kind, placed in _kinds().items():
        model = training.Transformer.drawn(operators, scale, blocks, placed, last_norm=kind != POST)
        places = np.arange(1, model.sublayers + 1)
        training_of = training.Training(model, scale, SAMPLES, _rate)
        looks = np.linspace(0, count, LOOKS + 1).astype(int)
        seen = [contributions(model, held.x)]
        for before, after in itertools.pairwise(looks):
            training_of.steps(range(before + 1, after + 1))
            seen.append(contributions(model, held.x))
        if kind != NONE:
            shares += [Series(f"{kind}, at first", places, seen[0]), Series(f"{kind}, trained", places, seen[-1])]
            facts += [
                Fact(f"{kind}: last branch / stream, at first", seen[0][:, -1]),
                Fact(f"{kind}: last branch / stream, trained", seen[-1][:, -1]),
            ]
        if kind == PRE:
            over = np.stack(seen, axis=2)
            for place in (1, len(places) // 2, len(places)):
                during.append(Series(f"pre-norm, sublayer {place}", looks, over[:, place - 1]))
        whole = training.loss(model.run(held.x).y, held.label)[0]
        without = [training.loss(model.run(held.x, [k]).y, held.label)[0] for k in range(model.sublayers)]
        removals.append(Series(kind, places, np.stack(without, axis=1)))
        facts.append(Fact(f"{kind}: loss", whole))
        lost = [(one - whole) / (CHANCE - whole) for one in without]
        facts += [Fact(_removed(kind, place), of) for place, of in enumerate(lost, 1)]
    chance = Series("chance", removals[0].x, np.full(len(removals[0].x), CHANCE), guide=True)
    panels = [
        Curves("before and after training", "sublayer", "norm of the branch / of the stream", shares, y_log=True),
        Curves("in training", "step", "norm of the branch / of the stream", during, y_log=True),
        Curves("one sublayer removed", "sublayer", "loss without it, nats", [*removals, chance]),
    ]
    return Findings(facts, panels, columns=3)


def _rate(step: int) -> float:
    return RATE * min(1.0, step / WARM_UP)


def contributions(model: training.Transformer, x: Array) -> Array:
    """The norm of each branch's result relative to that of the stream before it: (seeds, sublayers)."""
    added: list[Array] = []

    def recorded(operators: Operators, layer: stacks.Layer) -> Step:
        def branch(handed: Array) -> Result:
            result = layer.branch(handed)
            added.append(steps.norm(result.y))
            return result

        return model.placed(operators, stacks.Layer(branch))

    chain = attrs.evolve(model, placed=recorded).run(x)
    return np.stack([one / steps.norm(value) for one, value in zip(added, chain.values[1:], strict=False)], axis=1)


def _removed(kind: str, place: int) -> str:
    return f"{kind}: lost without sublayer {place}"


def judge(facts: Facts) -> Judgement:
    """Decide which sublayers the model can do without."""
    lost = {
        kind: {
            int(name.rpartition(" ")[2]): fact.median
            for name, fact in facts.items()
            if name.startswith(f"{kind}: lost")
        }
        for kind in (PRE, POST, NONE)
    }
    # A NaN does not show that it can be done without.
    needed = {kind: [place for place, share in of.items() if not share <= 0.5] for kind, of in lost.items()}
    because = "; ".join(
        f"{kind}: {len(needed[kind])} of {len(of)} sublayers cannot be done without" for kind, of in lost.items()
    )
    spared = {kind: [place for place in lost[kind] if place not in needed[kind]] for kind in (PRE, POST)}
    if len(needed[NONE]) <= len(lost[NONE]) / 2 or len(needed[PRE]) >= len(lost[PRE]) / 2:
        return Judgement(Verdict.DOES_NOT_HOLD, because)
    if not needed[PRE] and not needed[POST]:
        return Judgement(Verdict.HOLDS, because)
    which = "; ".join(f"{kind}: {', '.join(map(str, places)) or 'none'}" for kind, places in spared.items())
    return Judgement(Verdict.UNDER_CONDITIONS, because, f"the sublayer removed is one of these: {which}")


STUDY = Study(
    name="residual-contributions",
    claim=(
        "Each residual block adds a little, and any one can be removed from a trained network at little cost; without"
        " skip connections none can."
    ),
    sources=(
        Source(
            "Veit, Wilber, Belongie: Residual Networks Behave Like Ensembles of Relatively Shallow Networks (2016)",
            "section 4.1",
            "https://arxiv.org/abs/1605.06431",
        ),
        Source(
            "Greff, Srivastava, Schmidhuber: Highway and Residual Networks Learn Unrolled Iterative Estimation (2017)",
            "section 3",
            "https://arxiv.org/abs/1612.07771",
        ),
    ),
    measured=(
        f"transformers of {BLOCKS} blocks of two sublayers, width {training.WIDTH}, trained for {STEPS} steps of Adam;"
        " the norm of what a branch adds over that of the stream below it; and, on a batch of its own, how much of the"
        f" way from the model's loss to that of chance, ln {training.SYMBOLS}, is lost where one sublayer is left out"
    ),
    rule=(
        "A sublayer can be done without where less than half is lost, in the median. The claim holds where that is so"
        " of every sublayer of pre-norm and post-norm, under conditions where it is so of more than half of those of"
        " pre-norm; and in both cases of at most half of those without skip connections."
    ),
    operators=("layer_norm", "pre_norm", "post_norm"),
    measure=measure,
    judge=judge,
)
