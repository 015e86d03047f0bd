"""Stacks of layers that differ only in how a layer is put together, with equal numbers of equal weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import numpy as np

from . import steps
from .operators import Operators
from .result import Array, Result, Step
from .study import Scale

#: The width of every layer.
WIDTH = 32
EPS = 1e-5

#: The gain of the scaled-down branch: LayerScale's initial value in up to 18 layers (Touvron et al. 2021, "Going deeper
#: with Image Transformers", arXiv:2103.17239, section 2).
GAIN = 0.1

#: The bias of a gate, with which most of x passes at first (Srivastava, Greff, Schmidhuber 2015, "Highway Networks",
#: arXiv:1505.00387, section 2.2: "-1, -3 etc.").
GATE = -2.0


@attrs.frozen
class Initialisation:
    """An activation, and the variance of the weights before it with which values keep their size."""

    name: str
    activation: steps.Activation
    #: The variance of the first matrix's weights, times the width; the second matrix's is 1.
    gain: float


#: Glorot and Bengio 2010, eq. 12, and He et al. 2015, "Delving Deep into Rectifiers", eq. 10.
GLOROT = Initialisation("tanh", steps.tanh, 1.0)
HE = Initialisation("ReLU", steps.relu, 2.0)


@attrs.frozen(eq=False)
class Layer:
    """The components of one layer: its branch and, for a feed-forward branch, its two halves."""

    branch: Step
    halves: tuple[Step, Step] | None = None
    #: The second half without an activation.
    second: Step | None = None


def feed_forward_layers(scale: Scale, depth: int, initialisation: Initialisation) -> list[Layer]:
    """Layers whose branch is activation(x w1) w2, w1 and w2 of shape (width, width)."""
    first = scale.normal("w1", depth, WIDTH, WIDTH) * np.sqrt(initialisation.gain / WIDTH)
    second = scale.normal("w2", depth, WIDTH, WIDTH) / np.sqrt(WIDTH)
    act = steps.activated(initialisation.activation)
    found = []
    for k in range(depth):
        w1, w2 = first[:, k], second[:, k]
        again = w2 * np.sqrt(initialisation.gain)
        found.append(
            Layer(
                steps.feed_forward(w1, w2, initialisation.activation),
                (steps.joined(steps.linear(w1, "w1"), act), steps.joined(steps.linear(again, "w2"), act)),
                steps.linear(w2, "w2"),
            )
        )
    return found


def attention_layers(scale: Scale, depth: int) -> list[Layer]:
    """Layers whose branch is self-attention with one head; its four matrices have variance 1 / width."""
    drawn = [scale.normal(name, depth, WIDTH, WIDTH) / np.sqrt(WIDTH) for name in ("wq", "wk", "wv", "wo")]
    return [Layer(steps.attention(*(w[:, k] for w in drawn))) for k in range(depth)]


def _highway(operators: Operators, layer: Layer) -> Step:
    """A highway layer: the transform is the first half; the gate is the second without activation, less a constant."""
    assert layer.halves is not None and layer.second is not None
    transform, inner = layer.halves[0], layer.second

    def gate(x: Array) -> Result:
        result = inner(x)
        return Result(result.y + GATE, result.pull)

    return lambda x: operators.highway(x, transform, gate)


def _mhc(operators: Operators, layer: Layer) -> Step:
    """The two halves as branches of equal weight."""
    assert layer.halves is not None
    halves = layer.halves
    return lambda x: operators.mhc(x, halves, np.zeros(2, x.dtype))


#: The ways to put a layer together, by their names in figures.
KINDS: Mapping[str, Callable[[Operators, Layer], Step]] = {
    "plain": lambda operators, layer: layer.branch,
    "residual": lambda operators, layer: lambda x: operators.residual(x, layer.branch),
    f"residual, {GAIN} × branch": lambda operators, layer: (
        lambda x: operators.residual(x, steps.scaled(GAIN, layer.branch))
    ),
    "pre-norm": lambda operators, layer: lambda x: operators.pre_norm(x, layer.branch, eps=EPS),
    "post-norm": lambda operators, layer: lambda x: operators.post_norm(x, layer.branch, eps=EPS),
    "highway": _highway,
    "MHC, 2 branches": _mhc,
}

#: The kinds that need the two halves of a branch, which attention does not have.
OF_HALVES = ("highway", "MHC, 2 branches")
