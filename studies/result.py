"""The result of a model's step: its value, and the way back from a cotangent to gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
import numpy as np

Array = np.ndarray


@attrs.frozen(eq=False)
class Result:
    """The value of one step, and its pullback."""

    #: The value.
    y: Array
    #: Maps a cotangent of y, with its shape and dtype, to the gradients by name: "x", and each parameter's.
    pull: Callable[[Array], dict[str, Array]]
    #: An operator's other results, by name: the new running statistics of batch_norm.
    more: Mapping[str, Array] = attrs.field(factory=dict)


#: A step of a model: from its input to its result. Its parameters are what it closes over.
Step = Callable[[Array], Result]


@attrs.frozen(eq=False)
class Backward:
    """The way back through a chain."""

    #: The gradients with respect to the chain's input and to each step's result, in this order.
    cotangents: list[Array]
    #: The gradients of each step's parameters, by name.
    parameters: list[dict[str, Array]]


@attrs.frozen(eq=False)
class Chain:
    """Steps run one after the other."""

    #: The chain's input, and each step's result, in this order.
    values: list[Array]
    results: list[Result]

    @classmethod
    def of(cls, x: Array, steps: Sequence[Step]) -> Chain:
        """Run the steps: the first on x, every other on the previous result."""
        values, results = [x], []
        for step in steps:
            results.append(step(values[-1]))
            values.append(results[-1].y)
        return cls(values, results)

    @property
    def y(self) -> Array:
        """The last step's result."""
        return self.values[-1]

    def first(self, count: int) -> Chain:
        """The chain of the first `count` steps, already run."""
        return Chain(self.values[: count + 1], self.results[:count])

    def pull(self, g: Array) -> Backward:
        """The gradients of sum(y * g), g of y's shape."""
        cotangents, parameters = [g], []
        for result in reversed(self.results):
            gradients = result.pull(cotangents[-1])
            cotangents.append(gradients.pop("x"))
            parameters.append(gradients)
        return Backward(cotangents[::-1], parameters[::-1])
