"""Judges dgamma, dbeta and the running statistics, which have one value per parameter or channel."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import attrs
import numpy as np

from ..conformance.judging.truth import owner_of
from ..reference.double_double import DD
from ..reference.envelope_results import ParameterSums
from ..reference.envelope_rows import Array
from ..reference.rows import ONE
from ..reference.scaled import Scaled
from ..spec.layout import Layout
from .call import Call
from .certified import SECOND_ORDER, U, row_sum, sum_depth
from .deciding import decided_ratios
from .judgement import Envelope, Judgement, Worst
from .values import Block


@attrs.frozen(eq=False)
class ParameterValues:
    """float64 values, one per parameter; their distance from the exact values; and their envelope."""

    value: Array
    #: None: the envelope covers it.
    error: Array | None
    bound: Array
    #: The double-double values at some places.
    exact_at: Callable[[np.ndarray], DD]

    def envelope(self, shape: tuple[int, ...]) -> Envelope:
        """The exact values and their envelope."""
        exact = self.value if self.error is None else self.exact_at(np.arange(len(self.value))).hi
        return Envelope(exact.reshape(shape), self.bound.reshape(shape))

    def judge(
        self, call: Call, name: str, got: np.ndarray, seed: int, sampled_channels: np.ndarray | None
    ) -> Judgement:
        """Judge a result; ``sampled_channels``: the channels of a sample, to which alone these values belong."""
        flat = got.reshape(-1) if sampled_channels is None else got.reshape(-1)[sampled_channels]
        value, bound = self.value.copy(), self.bound
        with np.errstate(all="ignore"):
            ratio = decided_ratios(flat, value, self.error, bound, self.exact_at)
        worst, outside = None, np.flatnonzero(ratio > 1)
        if (ratio >= 0).any():
            at = int(np.argmax(ratio))
            place = at if sampled_channels is None else int(sampled_channels[at])
            index = tuple(int(i) for i in np.unravel_index(place, got.shape))
            worst = Worst(index, float(value[at]), float(flat[at]), float(bound[at]), float(ratio[at]))
        groups = call.layout.count if sampled_channels is None else len(sampled_channels)
        return Judgement(
            call.operator, name, got.shape, int(np.count_nonzero(ratio >= 0)), len(outside), worst,
            groups, call.layout.count, seed, places_outside=outside if sampled_channels is None
            else sampled_channels[outside],
        )  # fmt: skip


@attrs.frozen(eq=False)
class _BoundedValues:
    """float64 values, and a bound on their distance from the exact ones; None where the envelope covers it."""

    value: Array
    error: Array | None

    def __add__(self, other: _BoundedValues) -> _BoundedValues:
        value = self.value + other.value
        if self.error is None or other.error is None:
            return _BoundedValues(value, None)
        return _BoundedValues(value, SECOND_ORDER * (self.error + other.error + U * np.abs(value)))

    @classmethod
    def summed(cls, layout: Layout, terms: Array, errors: Array | float | None) -> _BoundedValues:
        """The sum over groups of terms with these errors."""

        def added(z: Array) -> Array:
            return row_sum(z)[:, 0] if layout.along_columns else layout.total(z)

        if errors is None:
            return cls(added(terms), None)
        steps = sum_depth(layout.sharing) if layout.along_columns else layout.sharing - 1
        errors = np.broadcast_to(errors, terms.shape)
        return cls(added(terms), SECOND_ORDER * (added(errors) + U * steps * added(np.abs(terms))))


@attrs.frozen(eq=False)
class _BlockGradients:
    """A block's contribution to the gradients of parameters."""

    sums: ParameterSums
    #: For each parameter, whether all values that share it are in range.
    inside: np.ndarray
    dgamma: _BoundedValues
    dbeta: _BoundedValues

    def __add__(self, other: _BlockGradients) -> _BlockGradients:
        both = self.inside & other.inside
        return _BlockGradients(self.sums + other.sums, both, self.dgamma + other.dgamma, self.dbeta + other.dbeta)

    @classmethod
    def of(cls, block: Block) -> _BlockGradients:
        """The contribution of a block."""
        forward, g = block.envelope.forward, block.cotangent
        layout, wide = forward.layout, block.call.has_float64
        return cls(
            forward.parameter_sums(g, block.call.layout.sharing),
            np.asarray(layout.stretches(block.envelope.in_range()).all(axis=(0, 2))),
            _BoundedValues.summed(layout, *(block.certified.terms(g) if wide else (g * forward.rows.xh, None))),
            _BoundedValues.summed(layout, g, 0.0 if wide else None),
        )

    def bound(self, name: str) -> Array:
        """The envelope; infinite outside the range rules. dbeta has no range rules."""
        if name == "dbeta":
            return self.sums.dbeta_bound()
        found = self.sums.dgamma_bound()
        return np.where(self.inside & (found < self.sums.arithmetic.largest / 4), found, np.inf)


@attrs.define(eq=False)
class ParameterResults:
    """Some of dgamma and dbeta, or of the running statistics, collected block by block."""

    call: Call
    names: tuple[str, ...]
    #: The cotangent of y; None for the running statistics.
    g: np.ndarray | None
    bessel: bool
    #: The groups that are judged; None: all.
    groups: np.ndarray | None
    _parts: list[_BlockGradients] = attrs.field(init=False, factory=list)
    _statistics: list[dict[str, _Statistic]] = attrs.field(init=False, factory=list)

    def add(self, block: Block) -> None:
        """Add a block."""
        if self.g is None:
            if not self._unchanged:
                self._statistics.append({name: _Statistic.of(block, name, self.bessel) for name in self.names})
            return
        part = _BlockGradients.of(block)
        if self._parts and not self.call.layout.along_columns:
            self._parts[0] = self._parts[0] + part
        else:
            self._parts.append(part)

    def values(self) -> dict[str, ParameterValues]:
        """The values that each result must have, from the blocks added."""
        return {name: self._statistic(name) if self.g is None else self._gradient(name) for name in self.names}

    @property
    def _unchanged(self) -> bool:
        """Whether the running statistics are returned as they were given."""
        return self.call.statistics_given or not self.call.layout.size

    def _gradient(self, name: str) -> ParameterValues:
        assert self.g is not None
        value, error = _joined([getattr(one, name) for one in self._parts])
        bound = np.concatenate([one.bound(name) for one in self._parts])
        return ParameterValues(value, error, bound, _exact_gradient(self.call, self.g, name, self.groups))

    def _statistic(self, name: str) -> ParameterValues:
        call = self.call
        channels = np.arange(call.layout.count) if self.groups is None else self.groups
        exact_at = _exact_statistic(call, channels, name, self.bessel)
        if self._unchanged:
            return ParameterValues(
                call.statistic(owner_of(name), channels)[:, 0], None, np.zeros(len(channels)), exact_at
            )
        found = [one[name] for one in self._statistics]
        value, error = _joined([one.new for one in found])
        return ParameterValues(value, error, np.concatenate([one.bound for one in found]), exact_at)


def _joined(parts: list[_BoundedValues]) -> tuple[Array, Array | None]:
    """The values of several blocks in one array, and a bound on their distance from the exact ones."""
    errors = [one.error for one in parts if one.error is not None]
    return np.concatenate([one.value for one in parts]), np.concatenate(errors) if errors else None


def _exact_gradient(call: Call, g: np.ndarray, name: str, groups: np.ndarray | None) -> Callable[[np.ndarray], DD]:
    def exact_at(places: np.ndarray) -> DD:
        if call.layout.along_columns:
            return _exact_sum(Block(call, places if groups is None else groups[places], g), name).to_dd()
        sums = (_exact_sum(Block(call, chosen, g), name) for chosen in call.blocks())
        return DD(*(word[places] for word in reduce(Scaled.__add__, sums).to_dd()))

    return exact_at


def _exact_sum(block: Block, name: str) -> Scaled:
    g = Scaled.of(block.cotangent)
    return block.envelope.forward.layout.total(g * block.normalised().xhat if name == "dgamma" else g)


@attrs.frozen(eq=False)
class _Statistic:
    """A running statistic of the channels of a block, and its envelope."""

    new: _BoundedValues
    bound: Array

    @classmethod
    def of(cls, block: Block, name: str, bessel: bool) -> _Statistic:
        """ "new_running_mean" or "new_running_var"."""
        call, forward, certified = block.call, block.envelope.forward, block.certified
        momentum, of_variance = call.settings["momentum"], name == "new_running_var"
        old = call.statistic(owner_of(name), block.groups)[:, 0]
        bound = forward.running(old, momentum, variance=of_variance, bessel=bessel)
        inside = block.envelope.in_range().all(axis=1)
        bound = np.where(inside & (bound < call.arithmetic.largest / 4), bound, np.inf)
        factor = _bessel_factor(forward.rows.n) if of_variance and bessel else 1.0
        batch = factor * (forward.rows.v if of_variance else forward.rows.mu)[:, 0]
        value, error = (1 - momentum) * old + momentum * batch, None
        if call.has_float64:
            # Twice: the factor and its product, 1 - momentum, the two products, and the sum each round.
            sizes = 2 * np.abs((1 - momentum) * old) + 4 * np.abs(momentum * batch) + np.abs(value)
            off = factor * (certified.variance_error() if of_variance else certified.mean_error())[:, 0]
            error = SECOND_ORDER * (momentum * off + U * sizes)
        return cls(_BoundedValues(value, error), bound)


def _bessel_factor(n: int) -> float:
    return n / (n - 1) if n > 1 else 1.0


def _exact_statistic(call: Call, channels: np.ndarray, name: str, bessel: bool) -> Callable[[np.ndarray], DD]:
    def exact_at(places: np.ndarray) -> DD:
        chosen = channels[places]
        old, weight = Scaled.of(call.statistic(owner_of(name), chosen)), Scaled.of(call.settings["momentum"])
        rows, n = Block(call, chosen).normalised(), call.layout.size
        new = rows.variance if name == "new_running_var" else rows.mean
        if name == "new_running_var" and bessel and n > 1:
            new = new * Scaled.of(float(n)) / Scaled.of(float(n - 1))
        return DD(*(word[:, 0] for word in ((ONE - weight) * old + weight * new).to_dd()))

    return exact_at
