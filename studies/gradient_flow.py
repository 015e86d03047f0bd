"""gradient-flow: how much of the gradient reaches the first layer of a deep stack, by how its blocks are built."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from . import steps
from .operators import Operators
from .result import Array, Chain, Step
from .study import Curves, Fact, Facts, Findings, Judgement, Scale, Series, Source, Study, Verdict

#: The width of every layer, the samples of a batch, and the positions of a sample that attention looks at.
WIDTH, SAMPLES, POSITIONS = 32, 8, 8
EPS = 1e-5
#: The gain of the block that is scaled down: LayerScale's for up to 18 layers (Touvron et al. 2021, section 3.1).
GAIN = 0.1
#: The bias of a gate, at which it lets most of x pass (Srivastava et al. 2015, section 2.2).
GATE = -2.0

#: A gradient survives where what reaches the first layer is at most so many times smaller or larger.
FACTOR = 100.0

#: Makes the steps of one stack: for a layer's number, its step.
Maker = Callable[[int], Step]


def _makers(operators: Operators, scale: Scale, activation: steps.Activation, gain: float) -> Mapping[str, Maker]:
    """The stacks by name. Each layer has two square matrices of weights, drawn alike for all stacks."""

    def w(name: str, layer: int, factor: float = 1.0) -> Array:
        return scale.normal(f"{name} {layer}", WIDTH, WIDTH) * np.sqrt(factor / WIDTH)

    def branch(layer: int) -> Step:
        return steps.feed_forward(w("w1", layer, gain), w("w2", layer), activation)

    def half(name: str, layer: int) -> Step:
        return steps.joined(steps.linear(w(name, layer, gain)), steps.activated(activation))

    def gate(layer: int) -> Step:
        inner = steps.linear(w("w2", layer))

        def step(x: Array):
            result = inner(x)
            return steps.Result(result.y + GATE, result.pull)

        return step

    logits = np.zeros(2)
    return {
        "plain": branch,
        "residual": lambda k: lambda x: operators.residual(x, branch(k)),
        f"residual, branch × {GAIN}": lambda k: lambda x: operators.residual(x, steps.scaled(GAIN, branch(k))),
        "pre-norm": lambda k: lambda x: operators.pre_norm(x, branch(k), eps=EPS),
        "post-norm": lambda k: lambda x: operators.post_norm(x, branch(k), eps=EPS),
        "highway": lambda k: lambda x: operators.highway(x, half("w1", k), gate(k)),
        "MHC, 2 branches": lambda k: lambda x: operators.mhc(x, [half("w1", k), half("w2", k)], logits),
    }


def _depths(scale: Scale) -> list[int]:
    return [2, 4, 8, 16] if scale.quick else [2, 4, 8, 16, 32, 64, 128]


def measure(operators: Operators, scale: Scale) -> Findings:
    """The ratio of the gradient at the first layer to that at the last, against depth."""
    x = scale.normal("x", SAMPLES, WIDTH)
    g = scale.normal("g", SAMPLES, WIDTH)
    depths, panels, facts = _depths(scale), [], []
    for title, activation, gain in (("tanh, Glorot", steps.tanh, 1.0), ("ReLU, He", steps.relu, 2.0)):
        lines = []
        for label, maker in _makers(operators, scale, activation, gain).items():
            chain = Chain.of(x, [maker(layer) for layer in range(max(depths))])
            ratios = []
            for depth in depths:
                back = Chain(chain.values[: depth + 1], chain.results[:depth]).pull(g)
                ratios.append(steps.norm(back.cotangents[0]) / steps.norm(g))
            lines.append(Series(label, depths, np.stack(ratios, axis=1)))
            facts.append(Fact(f"{label}, {title}", ratios[-1]))
        panels.append(
            Curves(title, "layers", "gradient at the first layer / at the last", lines, x_log=True, y_log=True)
        )
    negated = operators.residual(x, steps.scaled(-1.0, lambda x: steps.Result(x, lambda g: {"x": g})))
    facts.append(Fact("one residual block, F = -identity", steps.norm(negated.pull(g)["x"]) / steps.norm(g), 0.0))
    return Findings(facts, panels)


def judge(facts: Facts) -> Judgement:
    """What the rule makes of them."""
    survives = {name: 1 / FACTOR <= fact.median <= FACTOR for name, fact in facts.items() if "F =" not in name}
    skips = {name: alive for name, alive in survives.items() if not name.startswith("plain")}
    alive = [name for name, one in skips.items() if one]
    if not alive:
        return Judgement(Verdict.DOES_NOT_HOLD, "no stack with skip connections hands the gradient on")
    if all(skips.values()):
        return Judgement(Verdict.HOLDS, "every stack with skip connections hands the gradient on")
    lost = ", ".join(f"{name} ({facts[name].median:.1e})" for name, one in skips.items() if not one)
    return Judgement(Verdict.UNDER_CONDITIONS, f"it is lost or explodes in {lost}", ", ".join(alive))


STUDY = Study(
    name="gradient-flow",
    claim="Skip connections keep the gradient alive through any depth.",
    sources=(
        Source(
            "He, Zhang, Ren, Sun, Identity Mappings in Deep Residual Networks (2016)",
            "section 2, eq. 5",
            "https://arxiv.org/abs/1603.05027",
        ),
    ),
    measured="norms",
    rule="rule",
    operators=("residual", "pre_norm", "post_norm", "highway", "mhc"),
    measure=measure,
    judge=judge,
)
