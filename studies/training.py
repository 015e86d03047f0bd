"""Trains small transformers on generated data, all seeds at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs
import numpy as np

from . import stacks, steps
from .operators import Operators
from .result import Array, Chain, Step
from .study import Scale

#: Symbols, places in a sequence, and the width of every layer, which is smaller than elsewhere for speed.
SYMBOLS, PLACES, WIDTH = 4, 4, 16

#: Adam's decay rates and its epsilon (Kingma and Ba 2015, algorithm 1).
BETA1, BETA2, TINY = 0.9, 0.999, 1e-8


@attrs.frozen(eq=False)
class Batch:
    """Sequences of symbols, each with the symbol to predict."""

    #: One-hot code of symbol and place: (seeds, samples, PLACES, SYMBOLS + PLACES).
    x: Array
    #: (seeds, samples)
    label: Array


@functools.lru_cache(maxsize=256)  # all models of a comparison train on the same batches
def batch(scale: Scale, number: int, samples: int) -> Batch:
    """Sequences that begin with the number of a place; the label is the symbol at that place."""
    symbols = scale.integers(f"batch {number}", SYMBOLS, samples, PLACES)
    place = np.broadcast_to(np.eye(PLACES), (*symbols.shape, PLACES))
    x = np.concatenate([np.eye(SYMBOLS)[symbols], place], axis=-1)
    asked = np.take_along_axis(symbols, symbols[..., :1], axis=-1)[..., 0]
    return Batch(x, asked)


#: Puts a sublayer, attention or feed-forward, into a block of one kind.
Placed = Callable[[Operators, stacks.Layer], Step]


@attrs.frozen(eq=False)
class Transformer:
    """Blocks of attention and feed-forward sublayers between an embedding and a read-out, and their weights."""

    operators: Operators
    placed: Placed
    #: Whether a LayerNorm precedes the read-out.
    last_norm: bool
    weights: dict[str, Array]

    @classmethod
    def drawn(cls, operators: Operators, scale: Scale, blocks: int, placed: Placed, *, last_norm: bool) -> Transformer:
        """A new model: variance 1/width throughout, 2/width before a ReLU; equal for all kinds of blocks."""
        n = WIDTH
        weights = {
            "embedding": scale.normal("embedding", SYMBOLS + PLACES, n) / np.sqrt(2),
            "out": scale.normal("out", n, SYMBOLS) / np.sqrt(n),
        }
        for name in ("wq", "wk", "wv", "wo", "w1", "w2"):
            drawn = scale.normal(name, blocks, n, n) * np.sqrt((2.0 if name == "w1" else 1.0) / n)
            sublayer = 0 if name in ("wq", "wk", "wv", "wo") else 1
            for k in range(blocks):
                weights[f"{2 * k + sublayer}.{name}"] = drawn[:, k]
        return cls(operators, placed, last_norm, weights)

    @property
    def sublayers(self) -> int:
        """The number of sublayers: two per block."""
        return 1 + max(int(name.partition(".")[0]) for name in self.weights if "." in name)

    def layer(self, k: int) -> stacks.Layer:
        """Sublayer k: attention if k is even, feed-forward if it is odd."""
        if k % 2:
            return stacks.Layer(steps.feed_forward(self.weights[f"{k}.w1"], self.weights[f"{k}.w2"], steps.relu))
        return stacks.Layer(steps.attention(*(self.weights[f"{k}.{name}"] for name in ("wq", "wk", "wv", "wo"))))

    def run(self, x: Array, without: Sequence[int] = ()) -> Chain:
        """Run the embedding, each sublayer, the last norm if there is one, and the read-out at each place."""
        chain = [steps.linear(self.weights["embedding"], "embedding")]
        chain += [self.placed(self.operators, self.layer(k)) for k in range(self.sublayers) if k not in without]
        if self.last_norm:
            chain.append(lambda x: self.operators.layer_norm(x, eps=stacks.EPS))
        chain.append(steps.linear(self.weights["out"], "out"))
        return Chain.of(x, chain)

    def gradients(self, chain: Chain, g: Array) -> tuple[list[Array], dict[str, Array]]:
        """The gradients with respect to each value of the chain, and to each weight."""
        back = chain.pull(g)
        found = {}
        for place, parameters in enumerate(back.parameters):
            for name, gradient in parameters.items():
                last = name.rpartition(".")[2]
                found[last if last in self.weights else f"{place - 1}.{last}"] = gradient
        return back.cotangents, found


def loss(logits: Array, label: Array) -> tuple[Array, Array]:
    """The mean cross-entropy at the first place, by seed, and the gradient of its sum over seeds."""
    first = logits[:, :, 0] - logits[:, :, 0].max(axis=-1, keepdims=True)
    logs = first - np.log(np.exp(first).sum(axis=-1, keepdims=True))
    hot = np.eye(SYMBOLS)[label]
    g = np.zeros_like(logits)
    g[:, :, 0] = (np.exp(logs) - hot) / label.shape[1]
    return -(logs * hot).sum(axis=-1).mean(axis=-1), g


@attrs.frozen(eq=False)
class Adam:
    """Adam without weight decay; it changes the weights in place."""

    weights: dict[str, Array]
    _mean: dict[str, Array] = attrs.field(factory=dict)
    _square: dict[str, Array] = attrs.field(factory=dict)

    def step(self, gradients: Mapping[str, Array], number: int, rate: float) -> None:
        """Take step ``number``, counted from 1."""
        for name, gradient in gradients.items():
            m = self._mean[name] = BETA1 * self._mean.get(name, 0.0) + (1 - BETA1) * gradient
            v = self._square[name] = BETA2 * self._square.get(name, 0.0) + (1 - BETA2) * gradient**2
            away = m / (1 - BETA1**number) / (np.sqrt(v / (1 - BETA2**number)) + TINY)
            self.weights[name] = self.weights[name] - rate * away


@attrs.frozen(eq=False)
class Training:
    """A model in training; it can be examined between any two steps."""

    model: Transformer
    scale: Scale
    samples: int
    #: The learning rate at each step, counted from 1.
    rate: Callable[[int], float]
    _adam: Adam = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_adam", Adam(self.model.weights))

    def steps(self, numbers: Iterable[int]) -> Array:
        """Train through these steps, each with its own batch; return the losses before each, (seeds, steps)."""
        losses = []
        for number in numbers:
            drawn = batch(self.scale, number, self.samples)
            chain = self.model.run(drawn.x)
            value, g = loss(chain.y, drawn.label)
            losses.append(value)
            self._adam.step(self.model.gradients(chain, g)[1], number, self.rate(number))
        return np.stack(losses, axis=1)
