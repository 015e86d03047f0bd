"""depth-dynamics: how activations and gradients grow with depth, with and without a skip connection and a norm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from . import stacks, steps
from .operators import Operators
from .result import Array, Chain, Step
from .study import Curves, Fact, Facts, Findings, Judgement, Scale, Series, Source, Study, Verdict

#: Samples in a batch.
SAMPLES = 8

#: At width n the logarithm of a mean square falls by (5 + 2) / 2n in a layer with one matrix before a ReLU and one
#: without (Hanin and Nica 2020, "Products of Many Large Random Matrices and Gradients in Deep Neural Networks",
#: arXiv:1812.05994, theorem 1): 5/n and 2/n are the variances of the squared norm's ratio in that theorem.
SHRINKS = 3.5 / stacks.WIDTH

#: The same for x + F(x), whose ratio has the variance (7 + 4) / 4n: 4/n from the product of x and F(x).
SHRINKS_RESIDUAL = 11 / 8 / stacks.WIDTH

#: Theory assumes infinite width. At this width the measurement may fall short by this much.
TOLERANCE = SHRINKS

PLAIN, NORM, RESIDUAL, PRE, POST = "plain", "norm alone", "residual", "pre-norm", "post-norm"

#: Facts about exponents of depth; the theorem gives those of the last weights' gradient.
STREAM = "pre-norm: activations, exponent"
LAST = {
    PRE: ("pre-norm: last weights, exponent", -0.5),
    POST: ("post-norm: last weights, exponent", 0.0),
}


def _corners(operators: Operators) -> Mapping[str, Callable[[stacks.Layer], Step]]:
    """With and without a skip connection, and with and without a norm; both together are possible in two ways."""

    def normed(x: Array):
        return operators.layer_norm(x, eps=stacks.EPS)

    return {
        PLAIN: lambda layer: layer.branch,
        NORM: lambda layer: steps.joined(layer.branch, normed),
        RESIDUAL: lambda layer: stacks.KINDS["residual"](operators, layer),
        PRE: lambda layer: stacks.KINDS["pre-norm"](operators, layer),
        POST: lambda layer: stacks.KINDS["post-norm"](operators, layer),
    }


#: The factor by which a layer multiplies the mean square in theory, for activations and for gradients. The stream of
#: pre-norm grows by a power, not by a factor.
_FACTORS = {
    PLAIN: (np.exp(-SHRINKS), np.exp(-SHRINKS)),
    NORM: (1.0, 1.0),
    RESIDUAL: (2 * np.exp(-SHRINKS_RESIDUAL), 2 * np.exp(-SHRINKS_RESIDUAL)),
    POST: (1.0, 1.0),
}


def measure(operators: Operators, scale: Scale) -> Findings:
    """Mean squares by layer, and the gradient of the last weights by depth."""
    depths = [4, 8, 16, 32] if scale.quick else [4, 8, 16, 32, 64, 128]
    deepest = depths[-1]
    x, g = scale.normal("x", SAMPLES, stacks.WIDTH), scale.normal("g", SAMPLES, stacks.WIDTH)
    layers = stacks.feed_forward_layers(scale, deepest, stacks.HE)
    facts, forward, backward, stream, last = [], [], [], [], []
    for name, corner in _corners(operators).items():
        chain = Chain.of(x, [corner(layer) for layer in layers])
        there, back = _squares(chain.values), _squares(chain.pull(g).cotangents)
        there, back = there / there[:, :1], back / back[:, -1:]
        forward.append(Series(name, np.arange(deepest + 1), there))
        backward.append(Series(name, np.arange(deepest + 1), back))
        if name in _FACTORS:
            of_activations, of_gradients = _FACTORS[name]
            facts.append(Fact(f"{name}: activations, × a layer", there[:, -1] ** (1 / deepest), of_activations))
            facts.append(Fact(f"{name}: gradients, × a layer", back[:, 0] ** (1 / deepest), of_gradients))
        else:
            facts.append(Fact(STREAM, _slope(depths, there[:, depths]), 1.0))
            stream.append(Series(name, depths, there[:, depths]))
        if name in LAST:
            label, expected = LAST[name]
            norms = _last(operators, chain, depths, g)
            last.append(Series(name, depths, norms))
            facts.append(Fact(label, _slope(depths, norms), expected))
    by_depth = {"x_log": True, "y_log": True}
    guides = [_guide("∝ 1/√(1 + depth)", depths, float(np.median(last[0].values[:, 0])), -0.5)]
    panels = [
        _panel("activations", "mean square / that of the input", forward),
        _panel("gradients", "mean square / that at the last layer", backward),
        Curves(
            "the stream of pre-norm", "layer", "mean square / that of the input",
            [*stream, _guide("∝ 1 + depth", depths, float(np.median(stream[0].values[:, 0])), 1.0)], **by_depth,
        ),
        Curves("below a last LayerNorm", "layers", "gradient of the last weights, norm", [*last, *guides], **by_depth),
    ]  # fmt: skip
    return Findings(facts, panels)


def _squares(values: Sequence[Array]) -> Array:
    """The sum of squares of each array, by seed: (seeds, arrays)."""
    return np.stack([np.square(steps.norm(value)) for value in values], axis=1)


def _last(operators: Operators, chain: Chain, depths: Sequence[int], g: Array) -> Array:
    """The norm of the gradient of the last layer's second matrix, below a last LayerNorm, at each depth."""
    found = []
    for depth in depths:
        last = operators.layer_norm(chain.values[depth], eps=stacks.EPS)
        gradients = chain.results[depth - 1].pull(last.pull(g)["x"])
        found.append(steps.norm(gradients["sublayer.w2"]))
    return np.stack(found, axis=1)


def _slope(depths: Sequence[int], values: Array) -> Array:
    """The exponent of a power law in 1 + depth, fitted to each seed's points by least squares of the logarithms."""
    logs = np.log1p(depths)
    across = logs - logs.mean()
    return np.log(values) @ across / (across @ across)


def _panel(title: str, label: str, lines: Sequence[Series]) -> Curves:
    every = max(1, len(lines[0].x) // 32)
    thinned = [Series(one.label, one.x[::every], one.values[:, ::every]) for one in lines]
    return Curves(title, "layer", label, thinned, y_log=True)


def _guide(label: str, x: Sequence[int], first: float, exponent: float) -> Series:
    at = np.array(x, float)
    return Series(label, at, first * ((1 + at) / (1 + at[0])) ** exponent, guide=True)


def judge(facts: Facts) -> Judgement:
    """Decide which laws hold."""
    theory = {name: fact.expected for name, fact in facts.items() if fact.expected is not None}
    # A NaN is off too.
    off = {name: facts[name] for name, one in theory.items() if not abs(facts[name].median - one) <= TOLERANCE}
    met = [name for name in facts if name not in off]
    told = "; ".join(f"{name} {fact.median:.2f} in place of {fact.expected:.2f}" for name, fact in off.items())
    if not off:
        return Judgement(Verdict.HOLDS, f"every number is within {TOLERANCE:.2f} of theory")
    if any(name in off for name, _ in LAST.values()):
        return Judgement(Verdict.DOES_NOT_HOLD, told)
    return Judgement(Verdict.UNDER_CONDITIONS, told, f"one speaks of these: {'; '.join(met)}")


STUDY = Study(
    name="depth-dynamics",
    claim=(
        "Without a norm a stack of residual layers doubles the mean square in every layer; pre-norm makes it grow in"
        " proportion to depth, and the gradient of the last weights falls as 1/√depth, while post-norm keeps both."
    ),
    sources=(
        Source(
            "Xiong et al.: On Layer Normalization in the Transformer Architecture (2020)",
            "section 3.3, lemma 2 and theorem 1",
            "https://arxiv.org/abs/2002.04745",
        ),
        Source(
            "Zhang, Dauphin, Ma: Fixup Initialization (2019)",
            "section 2, on exponential growth",
            "https://arxiv.org/abs/1901.09321",
        ),
        Source(
            "Hanin, Nica: Products of Many Large Random Matrices and Gradients in Deep Neural Networks (2018)",
            "theorem 1, for the plain stack",
            "https://arxiv.org/abs/1812.05994",
        ),
    ),
    measured=(
        f"mean squares of activations and gradients at initialisation, width {stacks.WIDTH}, two matrices a layer with"
        " ReLU and He's initialisation; the factor a layer over the whole stack, and exponents of 1 + depth by least"
        " squares, depths from 4 on; above the last weights lies a LayerNorm, and a random gradient comes from there"
    ),
    rule=(
        f"A number is met where its median lies within 3.5/width = {TOLERANCE:.2f} of theory, which is of infinite"
        " width: so large the first correction is for the plain stack. The claim holds where all are met, under"
        " conditions where the two exponents of the last weights' gradient are, and does not hold otherwise."
    ),
    operators=("layer_norm", "residual", "pre_norm", "post_norm"),
    measure=measure,
    judge=judge,
)
