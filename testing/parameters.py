"""dgamma, dbeta and running statistics, of which there is one value a parameter."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import attrs
import numpy as np

from ..reference.double_double import DD
from ..reference.envelope_results import ParameterSums
from ..reference.envelope_rows import Array
from ..reference.rows import ONE
from ..reference.scaled import Scaled
from ..spec.layout import Layout
from .call import Call
from .certified import SECOND, U, height, total
from .deciding import decided_ratios
from .judgement import Envelope, Judgement, Worst
from .values import Block


@attrs.frozen(eq=False)
class Known:
    """Values, one a parameter, in float64; how far they may be from the exact ones; and their envelope."""

    value: Array
    #: None: the envelope covers it.
    error: Array | None
    bound: Array
    #: Those of some places in double-double.
    exactly: Callable[[np.ndarray], DD]

    def envelope(self, shape: tuple[int, ...]) -> Envelope:
        """The exact values and their envelope."""
        exact = self.value if self.error is None else self.exactly(np.arange(len(self.value))).hi
        return Envelope(exact.reshape(shape), self.bound.reshape(shape))

    def judge(self, call: Call, name: str, got: np.ndarray, seed: int, looked_at: np.ndarray | None) -> Judgement:
        """Judge what was returned for them; ``looked_at``: the channels that are a sample, in which alone they are."""
        flat = got.reshape(-1) if looked_at is None else got.reshape(-1)[looked_at]
        value, bound = self.value.copy(), self.bound
        with np.errstate(all="ignore"):
            ratio = decided_ratios(flat, value, self.error, bound, self.exactly)
        worst, outside = None, np.flatnonzero(ratio > 1)
        if ratio.size:
            at = int(np.argmax(ratio))
            place = at if looked_at is None else int(looked_at[at])
            index = tuple(int(i) for i in np.unravel_index(place, got.shape))
            worst = Worst(index, float(value[at]), float(flat[at]), float(bound[at]), float(ratio[at]))
        groups = call.layout.count if looked_at is None else len(looked_at)
        return Judgement(
            call.operator, name, got.shape, int(np.count_nonzero(ratio >= 0)), len(outside), worst,
            groups, call.layout.count, seed, places_outside=outside if looked_at is None else looked_at[outside],
        )  # fmt: skip


@attrs.frozen(eq=False)
class _Sum:
    """A sum over groups in float64, and how far it may be from the exact one."""

    value: Array
    error: Array

    def __add__(self, other: _Sum) -> _Sum:
        value = self.value + other.value
        return _Sum(value, SECOND * (self.error + other.error + U * np.abs(value)))

    @classmethod
    def of(cls, layout: Layout, terms: Array, errors: Array | float) -> _Sum:
        """The sum of terms that are off by these."""

        def added(z: Array) -> Array:
            return total(z)[:, 0] if layout.along_columns else layout.total(z)

        steps = height(layout.sharing) if layout.along_columns else layout.sharing - 1
        errors = np.broadcast_to(errors, terms.shape)
        return cls(added(terms), SECOND * (added(errors) + U * steps * added(np.abs(terms))))


@attrs.frozen(eq=False)
class _Part:
    """What one block adds to the gradients of parameters."""

    sums: ParameterSums
    #: Where every value that shares the parameter is in range.
    inside: np.ndarray
    dgamma: _Sum
    dbeta: _Sum

    def __add__(self, other: _Part) -> _Part:
        both = self.inside & other.inside
        return _Part(self.sums + other.sums, both, self.dgamma + other.dgamma, self.dbeta + other.dbeta)

    @classmethod
    def of(cls, block: Block) -> _Part:
        """The part of a block."""
        forward, g = block.envelope.forward, block.cotangent
        layout = forward.layout
        return cls(
            forward.parameter_sums(g, block.call.layout.sharing),
            np.asarray(layout.stretches(block.envelope.in_range()).all(axis=(0, 2))),
            _Sum.of(layout, *block.certified.terms(g)),
            _Sum.of(layout, g, 0.0),
        )

    def bound(self, name: str) -> Array:
        """The envelope; infinite outside the range rules, which dbeta has none of."""
        if name == "dbeta":
            return self.sums.dbeta_bound()
        found = self.sums.dgamma_bound()
        return np.where(self.inside & (found < self.sums.arithmetic.largest / 4), found, np.inf)


def gradients(call: Call, g: np.ndarray, names: tuple[str, ...], groups: np.ndarray | None) -> dict[str, Known]:
    """What "dgamma" and "dbeta" must be; of a sample of groups only where each group has a parameter of its own."""
    with np.errstate(all="ignore"):
        parts = [_Part.of(Block(call, chosen, g)) for chosen in call.blocks(groups)]
        if not call.layout.along_columns:
            parts = [reduce(_Part.__add__, parts)]
        found = {}
        for name in names:
            sums = [getattr(one, name) for one in parts]
            value, error = (np.concatenate([getattr(one, which) for one in sums]) for which in ("value", "error"))
            bound = np.concatenate([one.bound(name) for one in parts])
            found[name] = Known(value, error if call.wide else None, bound, _exact_gradient(call, g, name, groups))
    return found


def _exact_gradient(call: Call, g: np.ndarray, name: str, groups: np.ndarray | None) -> Callable[[np.ndarray], DD]:
    def exactly(places: np.ndarray) -> DD:
        if call.layout.along_columns:
            return _exact_sum(Block(call, places if groups is None else groups[places], g), name).to_dd()
        sums = (_exact_sum(Block(call, chosen, g), name) for chosen in call.blocks())
        return DD(*(word[places] for word in reduce(Scaled.__add__, sums).to_dd()))

    return exactly


def _exact_sum(block: Block, name: str) -> Scaled:
    g = Scaled.of(block.cotangent)
    return block.envelope.forward.layout.total(g * block.normalised().xhat if name == "dgamma" else g)


def statistics(call: Call, bessel: bool, groups: np.ndarray | None) -> dict[str, Known]:
    """What "new_running_mean" and "new_running_var" must be."""
    channels = np.arange(call.layout.count) if groups is None else groups
    found = {}
    for name in call.record.statistics:
        if call.constant or not call.layout.size:  # they are returned as given
            value, error, bound = call.statistic(name, channels)[:, 0], None, np.zeros(len(channels))
        else:
            with np.errstate(all="ignore"):
                parts = [_statistic(Block(call, chosen), name, bessel) for chosen in call.blocks(groups)]
            value, error, bound = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        found[f"new_{name}"] = Known(
            value, error if call.wide else None, bound, _exact_statistic(call, channels, name, bessel)
        )
    return found


def _statistic(block: Block, name: str, bessel: bool) -> tuple[Array, Array, Array]:
    """A running statistic of the channels of a block, how far it may be from the exact one, and its envelope."""
    call, forward, certified = block.call, block.envelope.forward, block.certified
    momentum, of_variance = call.settings["momentum"], name == "running_var"
    old = call.statistic(name, block.groups)[:, 0]
    bound = forward.running(old, momentum, variance=of_variance, bessel=bessel)
    inside = block.envelope.in_range().all(axis=1)
    bound = np.where(inside & (bound < call.arithmetic.largest / 4), bound, np.inf)
    new, error = certified.variance() if of_variance else certified.mean()
    factor = _bessel(forward.rows.n) if of_variance and bessel else 1.0
    new, error = factor * new[:, 0], factor * error[:, 0]
    value = (1 - momentum) * old + momentum * new
    # Each of: the factor and its product, 1 - momentum, the two products, and the sum.
    sizes = 2 * np.abs((1 - momentum) * old) + 4 * np.abs(momentum * new) + np.abs(value)
    return value, SECOND * (momentum * error + U * sizes), bound


def _bessel(n: int) -> float:
    return n / (n - 1) if n > 1 else 1.0


def _exact_statistic(call: Call, channels: np.ndarray, name: str, bessel: bool) -> Callable[[np.ndarray], DD]:
    def exactly(places: np.ndarray) -> DD:
        chosen = channels[places]
        old, weight = Scaled.of(call.statistic(name, chosen)), Scaled.of(call.settings["momentum"])
        rows, n = Block(call, chosen).normalised(), call.layout.size
        new = rows.variance if name == "running_var" else rows.mean
        if name == "running_var" and bessel and n > 1:
            new = new * Scaled.of(float(n)) / Scaled.of(float(n - 1))
        return DD(*(word[:, 0] for word in ((ONE - weight) * old + weight * new).to_dd()))

    return exactly
