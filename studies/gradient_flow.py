"""gradient-flow: how much of the gradient reaches the first layer of a deep stack, by the kind of its layers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from . import stacks, steps
from .operators import Operators
from .result import Array, Chain, Result
from .study import Curves, Fact, Facts, Findings, Judgement, Scale, Series, Source, Study, Verdict

#: Samples in a batch, and positions in a sample that attention sees.
SAMPLES, POSITIONS = 8, 8

#: A stack passes the gradient on if it is at most this many times smaller or larger at the first layer.
FACTOR = 100.0

#: The number of layers in the panel that shows every layer.
SHOWN = 64

#: The names of facts that the rule uses individually.
NEGATED = "one block, F = -identity"
BELOW = f"blocks that hand on less, {stacks.GAIN} × branch"


def measure(operators: Operators, scale: Scale) -> Findings:
    """The ratio of the gradient at the first layer to that at the last, against depth."""
    depths = [16, 128] if scale.quick else [2, 4, 8, 16, 32, 64, 128]
    x, g = scale.normal("x", SAMPLES, stacks.WIDTH), scale.normal("g", SAMPLES, stacks.WIDTH)
    panels, facts, below = [], [], None
    every: list[Series] = []
    for form in [stacks.GLOROT] if scale.quick else [stacks.GLOROT, stacks.HE]:
        layers = stacks.feed_forward_layers(scale, max(depths), form)
        lines = []
        for kind, built in stacks.KINDS.items():
            chain = Chain.of(x, [built(operators, layer) for layer in layers])
            norms = _norms(chain, depths, g)
            lines.append(_line(kind, depths, norms))
            facts.append(Fact(f"{kind}: {form.name}", norms[-1][0] / norms[-1][-1]))
            if kind.endswith("× branch") and below is None:
                below = Fact(BELOW, np.mean(norms[-1][:-1] < norms[-1][1:], axis=0))
            if form is stacks.HE:
                at = norms[depths.index(SHOWN)]
                every.append(Series(kind, np.arange(0, SHOWN + 1, 4), (at / at[-1]).T[:, ::4]))
        panels.append(_panel(f"feed-forward branches, {form.name}", lines))
    panels.append(_attention(operators, scale, facts))
    if every:
        panels.append(
            Curves(
                f"every fourth layer of {SHOWN}; feed-forward branches, ReLU", "layer",
                "gradient at the layer / at the last", every, y_log=True,
            )
        )  # fmt: skip
    negated = operators.residual(x, steps.scaled(-1.0, lambda x: Result(x, lambda g: {"x": g})))
    facts.append(Fact(NEGATED, steps.norm(negated.pull(g)["x"]) / steps.norm(g), 0.0))
    assert below is not None
    return Findings([*facts, below], panels)


def _attention(operators: Operators, scale: Scale, facts: list[Fact]) -> Curves:
    """The panel of attention branches."""
    depths = [4, 16] if scale.quick else [2, 4, 8, 16, 32, 64]
    shape = (2 if scale.quick else 4, POSITIONS, stacks.WIDTH)
    x, g = scale.normal("x of attention", *shape), scale.normal("g of attention", *shape)
    layers = stacks.attention_layers(scale, max(depths))
    lines = []
    for kind in [kind for kind in stacks.KINDS if kind not in stacks.OF_HALVES]:
        norms = _norms(Chain.of(x, [stacks.KINDS[kind](operators, layer) for layer in layers]), depths, g)
        lines.append(_line(kind, depths, norms))
        facts.append(Fact(f"{kind}: attention", norms[-1][0] / norms[-1][-1]))
    return _panel("attention branches", lines)


def _norms(chain: Chain, depths: Sequence[int], g: Array) -> list[Array]:
    """For each depth, the norm of the gradient at each layer of the stack cut to that depth: (depth + 1, seeds)."""
    return [np.stack([steps.norm(one) for one in chain.first(depth).pull(g).cotangents]) for depth in depths]


def _line(kind: str, depths: Sequence[int], norms: Sequence[Array]) -> Series:
    return Series(kind, depths, np.stack([at[0] / at[-1] for at in norms], axis=1))


def _panel(title: str, lines: Sequence[Series]) -> Curves:
    return Curves(title, "layers", "gradient at the first layer / at the last", lines, x_log=True, y_log=True)


def judge(facts: Facts) -> Judgement:
    """Decide which stacks pass the gradient on."""
    alive, lost = defaultdict(list), defaultdict(list)
    for name, fact in facts.items():
        kind, colon, branch = name.partition(": ")
        if colon and not kind.startswith("plain"):
            (alive if 1 / FACTOR <= fact.median <= FACTOR else lost)[kind].append(f"{branch} {fact.median:.2g}")
    because = f"beyond a factor of {FACTOR:g}: {_listed(lost) or 'none'}"
    because += f"; one block with F = -identity hands on {facts[NEGATED].median:.2g} of it"
    handing, losing = (sum(map(len, found.values())) for found in (alive, lost))
    if handing < losing:
        return Judgement(Verdict.DOES_NOT_HOLD, because)
    if lost or facts[NEGATED].median < 1:
        return Judgement(Verdict.UNDER_CONDITIONS, because, f"the stack is one of {_listed(alive)}")
    return Judgement(Verdict.HOLDS, because)


def _listed(found: dict[str, list[str]]) -> str:
    return "; ".join(f"{kind} ({', '.join(branches)})" for kind, branches in found.items())


STUDY = Study(
    name="gradient-flow",
    claim="With skip connections the gradient reaches the first layer, whatever the depth and the branches.",
    sources=(
        Source(
            "He, Zhang, Ren, Sun: Identity Mappings in Deep Residual Networks (2016)",
            "section 2, below eq. 5",
            "https://arxiv.org/abs/1603.05027",
        ),
        Source(
            "Srivastava, Greff, Schmidhuber: Highway Networks (2015)", "section 1", "https://arxiv.org/abs/1505.00387"
        ),
    ),
    measured=(
        "the norm of the gradient at the first layer over that at the last, at initialisation, for one random gradient"
        f" from above; width {stacks.WIDTH}, feed-forward branches of two matrices (tanh with Glorot's initialisation,"
        " ReLU with He's) in up to 128 layers, attention in up to 64; at the deepest stack in the table"
    ),
    rule=(
        f"It is handed on where the median lies between 1/{FACTOR:g} and {FACTOR:g}. The claim holds where that is so"
        " of every stack with skip connections, and no block hands on less than it gets; under conditions where it is"
        " so of half of them or more; and does not hold otherwise."
    ),
    operators=("residual", "pre_norm", "post_norm", "highway", "mhc"),
    measure=measure,
    judge=judge,
)
