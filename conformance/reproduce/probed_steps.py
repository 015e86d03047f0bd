"""The steps of a script, with what a probe of them saw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from ..judging.verdicts import Counterexample
from .probe import StepOutcome, VariableContent
from .step import Step
from .truths import Judge


@attrs.frozen
class ProbedSteps:
    """The steps that show a counterexample, and what each of them did each time that it ran."""

    found: Counterexample
    steps: Sequence[Step]
    happened: Sequence[Sequence[StepOutcome]]
    judge: Judge

    @property
    def last(self) -> int:
        """The place of the last step."""
        return len(self.steps) - 1

    @property
    def last_step(self) -> Step:
        """The last step."""
        return self.steps[self.last]

    def all(self, place: int, name: str) -> list[VariableContent]:
        """The values of a variable, one for each time the step ran."""
        return [one.seen[name] for one in self.happened[place] if name in one.seen]

    def received(self, place: int) -> Iterator[float]:
        """The values of the counterexample's element, one for each time that its result was returned."""
        for one in self.all(place, self.found.output):
            if one.values is not None and len(self.found.index) == one.values.ndim:
                yield float(one.values[self.found.index])

    def _same_calls(self) -> Iterator[tuple[int, int]]:
        """
        Pairs of steps that ask the same, the earlier one first; a step that runs several times is paired with itself.
        """
        for place, step in enumerate(self.steps):
            if step.again is not None:
                continue
            if step.call.times > 1:
                yield place, place
            for earlier in range(place):
                other = self.steps[earlier]
                if other.again is None and _asks_the_same(other, step):
                    yield earlier, place

    def differing(self) -> tuple[int, int, str] | None:
        """Two steps that ask the same and have results with different bits, and the name of the result."""
        for earlier, place in self._same_calls():
            for name in self.steps[place].results:
                seen = [*self.all(earlier, name), *self.all(place, name)]
                values = [one.values for one in seen if one.values is not None]
                if any(not alike(values[0], other) for other in values[1:]):
                    return earlier, place, name
        return None


def alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether a result in float64 has the numbers of another array."""
    return one.shape == other.shape and np.array_equal(one, np.asarray(other).astype(np.float64), equal_nan=True)


def _asks_the_same(one: Step, other: Step) -> bool:
    a, b = one.call, other.call
    same = a.does == b.does and a.settings == b.settings and a.parts == b.parts and a.layouts == b.layouts
    if not same or a.inputs.keys() != b.inputs.keys() or a.mode != b.mode:
        return False
    pairs = [(a.inputs[name], b.inputs[name]) for name in a.inputs] + [(a.g, b.g)]
    return all((p is None and q is None) or (p is not None and q is not None and alike(np.asarray(p, np.float64), q))
               for p, q in pairs)  # fmt: skip
