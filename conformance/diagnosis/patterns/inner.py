"""
Inner values: steps of a layer on the way to y, where its parts are so simple that y shows them.

If a sublayer returns a multiple of its input, y shows that input. If the terms of a gated sum are known, y shows the
gate. If the branches of a weighted sum are known, y shows the weights. A mistake there is plain where y is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import attrs
import numpy as np

from ....spec.parts import Part
from ..answers import Values
from .axes import axes_relations
from .formula_steps import Array, logistic, softmax
from .observing import ObservedResult
from .parameters import parameter_relations
from .pattern import WrongResult
from .relation import EXTRA_ROUNDINGS, LinearRelation, plain_relations
from .spreads import spread_relations
from .terms import clipped_relations, term_relations

#: An inner value is known if the envelope leaves it unsure by no more than this part of the largest value.
_MOST_UNSURE = 2.0**-6
#: A logit may be unsure by no more than this, which is a tenth of the gate, relative, at most.
_MOST_UNSURE_LOGIT = 0.1


@attrs.frozen(eq=False)
class InnerValue:
    """One value inside a layer."""

    #: The words that a sentence begins with, before "is".
    name: str
    #: Recipes whose parts let y show it. ``others`` are further recipes whose y it has to explain.
    recipes: tuple[str, ...]
    #: The value that y shows, with the right one; None if this y does not show it.
    values_in: Callable[[ObservedResult], Values | None]
    #: The relations that it may have to the right one, given what was seen of it.
    relations: Callable[[Sequence[ObservedResult]], Iterable[LinearRelation]]
    other_recipes: tuple[str, ...] = ()
    #: Computes y from the inner value, for the other recipes.
    y_from: Callable[[ObservedResult, Array], Array] | None = None
    #: Whether it has x's shape, and so has groups and places in them.
    has_x_shape: bool = False

    def observed(self, one: ObservedResult) -> ObservedResult | None:
        """The inner value that y shows."""
        values = self.values_in(one)
        name = "y" if self.has_x_shape else self.name
        return None if values is None else ObservedResult(one.case, name, values, one.largest)

    def explains(self, wrong: WrongResult, seen: Sequence[ObservedResult]) -> bool:
        """Whether y of the other recipes follows from what is wrong with the inner value."""
        if self.y_from is None or wrong.relation is None or wrong.place is None:
            return self.y_from is None
        for one in seen:
            shown = self.observed(one)
            mask = None if shown is None else wrong.place.mask(shown)
            wanted = None if shown is None else wrong.relation.value(wrong.number, shown)
            if shown is None or mask is None or wanted is None:
                return False
            inside = np.where(mask, wanted, shown.expected)
            y, unsure = self.y_from(one, inside), wrong.relation.slack(shown)
            # A step after the inner value may enlarge its roundings: an activation where its slope is largest.
            carried = [np.abs(self.y_from(one, inside + step) - y) for step in (unsure, -unsure)]
            slack = one.slack + EXTRA_ROUNDINGS * one.values.unit * np.abs(y) + np.maximum(*carried)
            if (np.abs(one.got - y) > slack)[one.judged].any():
                return False
        return True


def inner_values(operator: str) -> tuple[InnerValue, ...]:
    """The inner values of a layer with parts; none for other operators."""
    return _INNER.get(operator, ())


def _known(one: ObservedResult, numerator: Array, denominator: Array, expected: Array) -> Values:
    """numerator / denominator, where the envelope of y leaves little doubt about it."""
    unsure = one.values.envelope / np.abs(denominator)
    known = np.isfinite(numerator) & (unsure <= _MOST_UNSURE * np.abs(expected).max(initial=0.0))
    got = np.where(known, numerator / denominator, expected)
    return Values(got, expected, np.where(known, unsure, np.inf), one.values.unit)


# A block's sublayer ---------------------------------------------------------------------------------------------


def _handed(one: ObservedResult) -> Values | None:
    """The input of a sublayer that multiplies it by a number."""
    part = one.case.parts.get("sublayer")
    if not isinstance(part, Part):
        return None
    factor = {"scaled": part.number, "negated": -1.0}.get(part.kind, 1.0)
    return _known(one, one.got - one.steps.x, np.full(one.got.shape, factor), one.steps.normalised)


def _ratio(one: ObservedResult) -> Values | None:
    """The factor of x, relative to that of the sublayer's result, in the sum that is normalised; one for each group."""
    steps = one.steps
    xhat = steps.rows((one.got - steps.beta) / steps.gamma)
    parts = [steps.rows(value) for value in (steps.x, steps.part("sublayer", steps.x))]
    if steps.n < _MIN_VALUES or not np.isfinite(xhat).all() or not one.judged.all():
        return None
    slack = steps.rows(one.slack / np.abs(steps.gamma))
    found = [ratio for rows in zip(xhat, *parts, slack, strict=True) if (ratio := _ratio_of(*rows)) is not None]
    if len(found) < len(xhat):  # something else is wrong with y
        return None
    got, unsure = (np.array(each) for each in zip(*found, strict=True))
    known = unsure <= _MOST_UNSURE
    return Values(np.where(known, got, 1.0), np.ones(got.shape), np.where(known, unsure, np.inf), one.values.unit)


#: With fewer values in a group than this, the two parts of the sum cannot be told apart.
_MIN_VALUES = 4


def _ratio_of(xhat: Array, x: Array, f: Array, slack: Array) -> tuple[float, float] | None:
    """The factor of x relative to that of f, and how unsure it is; None if xhat is no sum of both plus a constant."""
    columns = np.stack([x - x.mean(), f - f.mean()], axis=1)
    if not columns.any(axis=0).all() or np.linalg.matrix_rank(columns) < 2:
        return 1.0, np.inf
    inverse = np.linalg.pinv(columns)
    (a, b), (da, db) = inverse @ (xhat - xhat.mean()), np.abs(inverse) @ (2 * slack)
    left = np.abs(columns @ (a, b) - (xhat - xhat.mean())) > 2 * slack + np.abs(columns) @ (da, db)
    return None if left.any() else (a / b, (da + abs(a / b) * db) / abs(b))


def _of_layer_norm(seen: Sequence[ObservedResult]) -> Iterator[LinearRelation]:
    yield from plain_relations("y")
    yield from term_relations("layer_norm", "y")
    yield from parameter_relations()
    yield from axes_relations("layer_norm")
    yield from clipped_relations()
    yield from spread_relations(seen)


# A residual sum ---------------------------------------------------------------------------------------------------


def _sum(one: ObservedResult) -> Values:
    steps = one.steps
    both = steps.part("shortcut", steps.x) + steps.part("branch", steps.x)
    return Values(one.got, both, one.values.envelope, one.values.unit)


def _activated(one: ObservedResult, total: Array) -> Array:
    return one.steps.part("activation", total)


def _of_sum(seen: Sequence[ObservedResult]) -> Iterator[LinearRelation]:
    yield from plain_relations("y")
    yield from term_relations("residual", "y")


#: The words of a relation, and how it follows from logits or a gate.
_Replacements = tuple[tuple[str, Callable[[Array], Array]], ...]


def _replaced(
    name: str, replacements: _Replacements, of: Callable[[ObservedResult], Array], seen: Sequence[ObservedResult]
) -> Iterator[LinearRelation]:
    """The plain relations, and what else may have been computed from a value."""
    yield from plain_relations(name)
    for words, change in replacements:
        yield LinearRelation(words, lambda one, change=change: change(of(one)))


# Gates --------------------------------------------------------------------------------------------------------------


def _gate(one: ObservedResult) -> Values:
    x, h = one.steps.x, one.steps.part("transform", one.steps.x)
    return _known(one, one.got - x, h - x, one.steps.gate)


def _carry(one: ObservedResult) -> Values:
    x, h = one.steps.x, one.steps.part("transform", one.steps.x)
    return _known(one, one.got - h * one.steps.gate, x, one.steps.carry)


def _logits_of(gate: Callable[[ObservedResult], Values], role: str, one: ObservedResult) -> Values:
    """The logits that a gate was computed from, where it is neither fully open nor shut."""
    values, z = gate(one), one.steps.part(role, one.steps.x)
    t = values.got
    slope = t * (1 - t)
    unsure = values.envelope / slope
    lost = ~((t > 0) & (t < 1) & (unsure < _MOST_UNSURE_LOGIT) & np.isfinite(z))
    got = np.where(lost, z, np.log(t) - np.log1p(-t))
    return Values(got, z, np.where(lost, np.inf, unsure), one.values.unit)


#: Replacements for the logistic function of logits.
_SQUASHED: _Replacements = (
    ("(1 + tanh(z)) / 2, z being its logits,", lambda z: (1 + np.tanh(z)) / 2),
    ("z / 6 + 1/2 within 0 and 1, z being its logits,", lambda z: np.clip(z / 6 + 0.5, 0, 1)),
    ("z / 4 + 1/2 within 0 and 1, z being its logits,", lambda z: np.clip(z / 4 + 0.5, 0, 1)),
    ("z + 1/2 within 0 and 1, z being its logits,", lambda z: np.clip(z + 0.5, 0, 1)),
    ("1 where its logits are positive, else 0,", lambda z: np.where(z > 0, 1.0, 0.0)),
    ("the square of the logistic function of its logits", lambda z: logistic(z) ** 2),
    ("the root of the logistic function of its logits", lambda z: np.sqrt(logistic(z))),
    ("exp(-z^2), z being its logits,", lambda z: np.exp(-np.square(z))),
    ("1/2 + arctan(z) / pi, z being its logits,", lambda z: 0.5 + np.arctan(z) / np.pi),
    ("1 - exp(-max(z, 0)), z being its logits,", lambda z: -np.expm1(-np.maximum(z, 0))),
    ("the mean of its row", lambda z: np.broadcast_to(logistic(z).mean(axis=-1, keepdims=True), z.shape)),
    ("that of the mean of its row's logits", lambda z: np.broadcast_to(logistic(z.mean(-1, keepdims=True)), z.shape)),
    ("that of the last value of its row", lambda z: np.broadcast_to(logistic(z[..., -1:]), z.shape)),
)


#: Replacements for the carry gate, as functions of the transform gate.
_CARRIED: _Replacements = (
    ("1 - t^2", lambda t: 1 - t * t),
    ("(1 - t)^2", lambda t: (1 - t) ** 2),
    ("1 - t / 2", lambda t: 1 - t / 2),
    ("the root of 1 - t^2", lambda t: np.sqrt(1 - t * t)),
    ("the root of 1 - t", lambda t: np.sqrt(1 - t)),
)


def _plain(seen: Sequence[ObservedResult]) -> Iterable[LinearRelation]:
    return plain_relations("z")


# Weights of branches --------------------------------------------------------------------------------------------


def _weights(one: ObservedResult) -> Values | None:
    """The weights of branches, by least squares; None if they do not explain y, or the branches are too alike."""
    logits, branches = one.steps.given("logits"), one.steps.branches
    if logits is None or not branches or one.case.parts.get("fuse") is not None or not one.judged.all():
        return None
    columns = np.stack([branch.reshape(-1) for branch in branches], axis=1)
    beside = (one.got - one.steps.x).reshape(-1)
    if len(beside) < 2 * len(branches) or not (np.isfinite(beside).all() and np.isfinite(columns).all()):
        return None
    inverse = np.linalg.pinv(columns)
    slack = one.slack.reshape(-1)
    got, unsure = inverse @ beside, np.abs(inverse) @ slack
    if (np.abs(columns @ got - beside) > slack + np.abs(columns) @ unsure).any():
        return None
    return Values(got, softmax(logits), unsure, one.values.unit)


def _logits(one: ObservedResult) -> Values | None:
    """The logits behind the weights of branches, less their mean."""
    values, logits = _weights(one), one.steps.given("logits")
    if values is None or logits is None or (values.got <= 2 * values.envelope).any() or not np.isfinite(logits).all():
        return None
    got = np.log(values.got)
    return Values(got - got.mean(), logits - logits.mean(), 2 * values.envelope / values.got, values.unit)


#: Replacements for the weights of branches, as functions of their logits.
_WEIGHED: _Replacements = (
    ("1/K", lambda z: np.full(z.shape, 1 / z.size)),
    ("the logistic function of its logit", logistic),
    ("the square of the right one", lambda z: softmax(z) ** 2),
    ("the square of the right one, divided by their sum,", lambda z: softmax(2 * z)),
    ("the root of the right one", lambda z: np.sqrt(softmax(z))),
    ("1 for the largest logit and 0 for the others", lambda z: (np.arange(z.size) == z.argmax()).astype(float)),
    ("the right one divided by the largest", lambda z: np.exp(z - z.max())),
    ("|z| / sum |z|, z being the logits,", lambda z: np.abs(z) / np.abs(z).sum()),
    ("that of the logits divided by the root of K", lambda z: softmax(z / np.sqrt(z.size))),
    ("that of the logits divided by K", lambda z: softmax(z / z.size)),
    ("that of tanh of the logits", lambda z: softmax(np.tanh(z))),
    ("that of max(z, 0), z being the logits,", lambda z: softmax(np.maximum(z, 0))),
    ("1 - w, w being the right one,", lambda z: 1 - softmax(z)),
    ("the right one, but 1 for the first branch", lambda z: np.r_[1.0, softmax(z)[1:]]),
    ("the right one, but 1 for the last branch", lambda z: np.r_[softmax(z)[:-1], 1.0]),
    ("the right one, and 1 more for the first branch", lambda z: np.r_[1 + softmax(z)[0], softmax(z)[1:]]),
    ("that of the logits in order of size", lambda z: np.sort(softmax(z))),
)


def _of_logits(role: str) -> Callable[[Sequence[ObservedResult]], Iterator[LinearRelation]]:
    return partial(_replaced, "t", _SQUASHED, lambda one: one.steps.part(role, one.steps.x))


_OF_CARRY = partial(_replaced, "c", _CARRIED, lambda one: one.steps.gate)
_OF_WEIGHTS = partial(_replaced, "w", _WEIGHED, lambda one: np.asarray(one.steps.given("logits")))

_INNER: Mapping[str, tuple[InnerValue, ...]] = {
    "residual": (
        InnerValue(
            "the sum that an activation would be handed",
            ("leaf", "tanh_linear", "linear", "shortcut", "shared", "square"),
            _sum,
            _of_sum,
            ("activation", "post_activation", "projected"),
            _activated,
            has_x_shape=True,
        ),
    ),
    "pre_norm": (
        InnerValue(
            "what the sublayer is handed", ("scaled", "negated", "identity"), _handed, _of_layer_norm, has_x_shape=True
        ),
    ),
    "post_norm": (
        InnerValue("the weight of x in the sum, relative to the sublayer's,", ("leaf", "tanh_linear"), _ratio, _plain),
    ),
    "highway": (
        InnerValue("the transform gate", ("leaf", "linear", "square"), _gate, _of_logits("gate")),
        InnerValue(
            "the transform gate's logit", ("leaf", "linear", "square"), partial(_logits_of, _gate, "gate"), _plain
        ),
        InnerValue("the carry gate", ("leaf", "linear", "leaf_carry", "chain_carry"), _carry, _OF_CARRY),
        InnerValue("the carry gate", ("leaf_carry", "chain_carry"), _carry, _of_logits("carry")),
        InnerValue(
            "the carry gate's logit", ("leaf_carry", "chain_carry"), partial(_logits_of, _carry, "carry"), _plain
        ),
    ),
    "mhc": (
        InnerValue("the weight of each branch", ("leaf",), _weights, _OF_WEIGHTS),
        InnerValue("the logit of each branch, apart from a constant,", ("leaf",), _logits, _plain),
    ),
}
