"""Judges results block by block, so that a block's envelope is computed once for all of them."""

from __future__ import annotations

from functools import cached_property, partial

import attrs
import numpy as np

from ..reference.envelope_rows import Array
from .call import Call, copied
from .deciding import decided_ratios
from .judgement import Envelope, Judgement, Worst
from .options import JudgementOptions
from .parameters import ParameterResults
from .quick_accept import surely_within
from .values import Block

#: The results that have x's shape.
X_SHAPED = ("y", "dx")


@attrs.define(eq=False)
class Tally:
    """The sum of the blocks judged so far, for one result."""

    call: Call
    judged: int = 0
    outside: int = 0
    worst: Worst | None = None
    group_count: int = 0
    groups_outside: list[np.ndarray] = attrs.field(factory=list)
    places: np.ndarray = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.places = np.zeros(self.call.layout.size, bool)

    def add(self, block: Block, name: str, got: np.ndarray) -> None:
        """Judge a block: these rows of a result."""
        ratio, expected, bound = _ratios(block, name, got)
        self.group_count += len(block.groups)
        self.judged += int(np.count_nonzero(ratio >= 0))
        row, position = divmod(int(ratio.argmax()), ratio.shape[1])
        if ratio[row, position] > (-1.0 if self.worst is None else self.worst.ratio):
            if ratio[row, position] > 1 and block.call.has_float64:
                expected[row] = block.exact_rows(name, np.array([row])).hi[0]
            self.worst = Worst(
                self.call.index_of(int(block.groups[row]), position),
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
        """The judgement of all blocks."""
        call = self.call
        groups = np.concatenate(self.groups_outside) if self.groups_outside else np.zeros(0, int)
        return Judgement(
            call.operator, name, call.x.shape, self.judged, self.outside, self.worst,
            self.group_count, call.layout.count, seed, groups, np.flatnonzero(self.places),
        )  # fmt: skip


@attrs.frozen(eq=False, slots=False)
class DeferredJudgements:
    """Results that are within their envelope, with copies of all data from which the distance can be computed later."""

    call: Call
    results: dict[str, np.ndarray]
    g: np.ndarray | None
    options: JudgementOptions

    @classmethod
    def of(
        cls, call: Call, results: dict[str, np.ndarray], g: np.ndarray | None, options: JudgementOptions
    ) -> DeferredJudgements:
        """Copies the arrays, because the caller may write to them."""
        kept = {name: value.copy() for name, value in results.items()}
        return cls(call.copied(), kept, copied(g), options)

    @cached_property
    def judged(self) -> dict[str, Judgement]:
        """The full judgements."""
        return _judged(self.call, self.results, self.g, None, self.options)

    def _worst_of(self, name: str) -> Worst | None:
        return self.judged[name].worst

    def judgement(self, name: str) -> Judgement:
        """The judgement of one result."""
        got, count = self.results[name], self.call.layout.count
        return Judgement(
            self.call.operator, name, got.shape, got.size, 0, partial(self._worst_of, name),
            count, count, self.options.seed,
        )  # fmt: skip


def judge(
    call: Call,
    results: dict[str, np.ndarray],
    g: np.ndarray | None,
    groups: np.ndarray | None,
    options: JudgementOptions,
) -> dict[str, Judgement]:
    """Judge named results in all groups, or in some; results of x's shape come first."""
    if groups is None and surely_within(call, results, g):
        deferred = DeferredJudgements.of(call, results, g, options)
        return {name: deferred.judgement(name) for name in results}
    return _judged(call, results, g, groups, options)


def _judged(
    call: Call,
    results: dict[str, np.ndarray],
    g: np.ndarray | None,
    groups: np.ndarray | None,
    options: JudgementOptions,
) -> dict[str, Judgement]:
    tallies = {name: Tally(call) for name in results if name in X_SHAPED}
    per_parameter = _per_parameter(call, tuple(results), g, groups, options)
    with np.errstate(all="ignore"):
        for chosen in call.blocks(groups):
            block = Block(call, chosen, g)
            for name, tally in tallies.items():
                tally.add(block, name, call.rows(results[name], chosen))
            if per_parameter.names:
                per_parameter.add(block)
        found = {name: tally.judgement(name, options.seed) for name, tally in tallies.items()}
        for name, values in per_parameter.values().items():
            found[name] = values.judge(call, name, results[name], options.seed, groups)
    return found


def envelopes(
    call: Call, names: tuple[str, ...], g: np.ndarray | None, options: JudgementOptions
) -> dict[str, Envelope]:
    """The exact values of results and their envelopes, by name."""
    found = {name: Envelope(np.zeros(call.x.shape), np.zeros(call.x.shape)) for name in names if name in X_SHAPED}
    per_parameter = _per_parameter(call, names, g, None, options)
    with np.errstate(all="ignore"):
        for chosen in call.blocks():
            block, every = Block(call, chosen, g), np.arange(len(chosen))
            for name, one in found.items():
                call.put(
                    one.exact,
                    chosen,
                    block.exact_rows(name, every).hi if call.has_float64 else block.approximate(name)[0],
                )
                call.put(one.bound, chosen, block.bound(name))
            if per_parameter.names:
                per_parameter.add(block)
        return found | {name: one.envelope(call.layout.parameter_shape) for name, one in per_parameter.values().items()}


def _per_parameter(
    call: Call, names: tuple[str, ...], g: np.ndarray | None, groups: np.ndarray | None, options: JudgementOptions
) -> ParameterResults:
    """The results with one value per parameter."""
    per_parameter = tuple(name for name in names if name not in X_SHAPED)
    return ParameterResults(call, per_parameter, g, options.running_variance == "bessel", groups)


def _ratios(block: Block, name: str, got: np.ndarray) -> tuple[Array, Array, Array]:
    """|got - exact| / bound of every element, -1 where it is not judged; the exact values, and the bounds."""
    bound = block.bound(name)
    value, error = block.approximate(name)
    finite = bool(np.isfinite(value).all())
    ratio = decided_ratios(got, value, error, bound, lambda rows: block.exact_rows(name, rows))
    # Where y must be NaN or infinite, its exact value is not finite.
    if name == "y" and not finite:
        ratio[block.cannot_be_finite() & np.isfinite(got)] = np.inf
    return ratio, value, bound
