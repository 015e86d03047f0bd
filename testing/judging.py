"""Judging y and dx, block by block."""

from __future__ import annotations

import attrs
import numpy as np

from ..reference.envelope_rows import Array
from .call import Call
from .deciding import decided_ratios
from .judgement import Envelope, Judgement, Worst
from .values import Block


@attrs.define(eq=False)
class Tally:
    """What the blocks judged so far come to."""

    call: Call
    judged: int = 0
    outside: int = 0
    worst: Worst | None = None
    looked_at: int = 0
    groups_outside: list[np.ndarray] = attrs.field(factory=list)
    places: np.ndarray = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.places = np.zeros(self.call.layout.size, bool)

    def add(self, block: Block, name: str, got: np.ndarray) -> None:
        """Judge a block: the rows of a result as they were returned."""
        ratio, expected, bound = _ratios(block, name, got)
        self.looked_at += len(block.groups)
        self.judged += int(np.count_nonzero(ratio >= 0))
        row, position = (int(i) for i in np.unravel_index(int(np.argmax(ratio)), ratio.shape))
        if ratio[row, position] > (-1.0 if self.worst is None else self.worst.ratio):
            if ratio[row, position] > 1 and block.call.wide:
                expected[row] = block.exactly(name, np.array([row])).hi[0]
            self.worst = Worst(
                self.call.place(int(block.groups[row]), position),
                float(expected[row, position]),
                float(got[row, position]),
                float(bound[row, position]),
                float(ratio[row, position]),
            )
        if ratio[row, position] > 1:
            outside = ratio > 1
            self.outside += int(np.count_nonzero(outside))
            self.groups_outside.append(block.groups[outside.any(axis=1)])
            self.places |= outside.any(axis=0)

    def judgement(self, name: str, seed: int) -> Judgement:
        """The whole."""
        call = self.call
        groups = np.concatenate(self.groups_outside) if self.groups_outside else np.zeros(0, int)
        return Judgement(
            call.operator, name, call.x.shape, self.judged, self.outside, self.worst,
            self.looked_at, call.layout.count, seed, groups, np.flatnonzero(self.places),
        )  # fmt: skip


def judge(
    call: Call, results: dict[str, np.ndarray], g: np.ndarray | None, groups: np.ndarray | None, seed: int
) -> dict[str, Judgement]:
    """Judge "y" or "dx" in all groups, or in some."""
    tallies = {name: Tally(call) for name in results}
    with np.errstate(all="ignore"):
        for chosen in call.blocks(groups):
            block = Block(call, chosen, g)
            for name, got in results.items():
                tallies[name].add(block, name, call.rows(got, chosen))
    return {name: tally.judgement(name, seed) for name, tally in tallies.items()}


def envelope(call: Call, name: str, g: np.ndarray | None = None) -> Envelope:
    """The exact "y" or "dx", and its envelope, in x's shape."""
    exact, bound = np.zeros(call.x.shape), np.zeros(call.x.shape)
    with np.errstate(all="ignore"):
        for chosen in call.blocks():
            block = Block(call, chosen, g)
            every = np.arange(len(chosen))
            call.put(exact, chosen, block.exactly(name, every).hi if call.wide else block.nearly(name)[0])
            call.put(bound, chosen, block.bound(name))
    return Envelope(exact, bound)


def _ratios(block: Block, name: str, got: np.ndarray) -> tuple[Array, Array, Array]:
    """|got - exact| / bound of every element, -1 where it is not judged; the exact values, and the bounds."""
    bound = block.bound(name)
    value, error = block.nearly(name)
    ratio = decided_ratios(got, value, error, bound, lambda rows: block.exactly(name, rows))
    if name == "y":
        ratio[block.shows() & np.isfinite(got)] = np.inf
    return ratio, value, bound
