"""Terms: what may be added to a result, too often or too rarely, by operator and result."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ....spec.operators import OPERATORS
from .formula_steps import Array, logistic, softmax
from .numbers import written
from .observing import ObservedResult
from .relation import Compute, LinearRelation, nothing, right, terms_in_sum

_Term = tuple[str, Callable[[ObservedResult], Array]]


def plus(words: str, number: float) -> str:
    """Words for the right value and a multiple of something."""
    if number == -1:
        return f"the right value without {words}"
    times = "" if abs(number) == 1 else f"{written(abs(number))} times "
    return f"the right value {'plus' if number > 0 else 'minus'} {times}{words}"


def term_relations(operator: str, name: str) -> Iterator[LinearRelation]:
    """The right value plus a multiple of a term of the formula."""
    record = OPERATORS[operator]
    if record.composed:
        terms = _OF_PARTS.get(operator, ()) if name == "y" else ()
    else:
        terms = _OF_NORMS.get(name, ())
    if record.composed and record.normalises and name == "y":
        terms = (*terms, *_OF_NORMS_AND_BLOCKS)
    for words, term in terms:
        yield LinearRelation(partial(plus, words), right, partial(_present, term))
    if record.composed and name == "dx":
        yield LinearRelation(_beside_g, nothing, lambda one: one.expected - one.steps.g, np.inf)
    if name == "y":
        for words, made in _OTHERWISE.get(operator, ()):
            yield LinearRelation(f"what the formula gives with {words}", made)
    if name == "y" and record.normalises and not record.normalises_handed:
        yield LinearRelation("what the formula gives, normalised once more without gamma and beta", _normalised_again)
    for role, handed in _PART_OF_SUM.get(operator, ()) if name == "y" else ():
        for words, change in _CHANGES:
            replaced = f"the right value with {words.format(role)} in place of {role}"
            yield LinearRelation(replaced, _with_changed(handed, change))
    if record.composed:
        for words, term in terms:  # where a term is small, how often it is added is not known, but none is plainest
            yield LinearRelation(plus(words, -1), _exchanged(term, nothing), rounded=_roundings_of(term))
        for (old, one), (new, other) in itertools.permutations(terms, 2):
            words = f"the right value with {new} in place of {old}"
            yield LinearRelation(words, _exchanged(one, other), rounded=_roundings_of(one, other))


def _beside_g(number: float) -> str:
    times = "" if number == 1 else f"{written(number)} times "
    return f"{times}the right value without g"


def clipped_relations() -> Iterator[LinearRelation]:
    """y with xhat limited in size."""
    yield LinearRelation(
        lambda number: f"beta + {written(number)} gamma, with the sign of xhat",
        lambda one: one.steps.beta,
        lambda one: one.steps.gamma * np.sign(one.steps.xhat),
        np.inf,
    )


def _normalised_again(one: ObservedResult) -> Array:
    steps = one.steps
    rows = steps.rows(steps.normalised)
    centred = rows - (rows.mean(axis=1, keepdims=True) if one.case.record.centred else 0.0)
    return steps.back(centred / np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + steps.eps))


def _with_changed(part: Callable[[ObservedResult], Array], change: Callable[[Array], Array]) -> Compute:
    return lambda one: one.expected + (change(part(one)) - part(one))


def _exchanged(old: Callable[[ObservedResult], Array], new: Callable[[ObservedResult], Array]) -> Compute:
    return lambda one: one.expected - old(one) + new(one)


def _roundings_of(*terms: Callable[[ObservedResult], Array]) -> Compute:
    """What a part rounds off and the sum leaves, where terms cancel: a unit in the last place of each."""
    return lambda one: 2 * one.values.unit * sum((np.abs(term(one)) for term in terms), np.zeros(()))


def _present(term: Callable[[ObservedResult], Array], one: ObservedResult) -> Array:
    value = term(one)
    return np.where(np.isfinite(value), value, np.nan)


def _h(one: ObservedResult) -> Array:
    return one.steps.gamma * one.steps.g


def _transformed(one: ObservedResult) -> Array:
    return one.steps.part("transform", one.steps.x)


def _given(one: ObservedResult, name: str) -> Array:
    return np.full(one.got.shape, float(one.steps.given(name) is not None))


def _mean(one: ObservedResult, values: Array) -> Array:
    rows = one.steps.rows(values)
    return one.steps.back(rows.mean(axis=1, keepdims=True))


def _r(one: ObservedResult) -> Array:
    return one.steps.back(one.steps.r)


#: Terms that a block may add in addition to its parts, too.
_OF_NORMS_AND_BLOCKS: tuple[_Term, ...] = (
    ("beta", lambda one: one.steps.beta),
    ("gamma", lambda one: one.steps.gamma),
    ("xhat", lambda one: one.steps.xhat),
    ("gamma xhat", lambda one: one.steps.gamma * one.steps.xhat),
)
_NUMBER_OF_TERMS: _Term = ("the number of terms in its sum", lambda one: np.full(one.got.shape, terms_in_sum(one)))
_OF_NORMS: dict[str, tuple[_Term, ...]] = {
    "y": (
        *_OF_NORMS_AND_BLOCKS,
        ("xhat where gamma is given", lambda one: _given(one, "gamma") * one.steps.xhat),
        ("1 where beta is given", lambda one: _given(one, "beta")),
        ("x", lambda one: one.steps.x),
        ("gamma beta", lambda one: one.steps.gamma * one.steps.beta),
        ("the mean of the group", lambda one: one.steps.back(one.steps.mean)),
        ("gamma mean / sqrt(var + eps)", lambda one: one.steps.gamma * one.steps.back(one.steps.mean * one.steps.r)),
        ("gamma / sqrt(var + eps)", lambda one: one.steps.gamma * _r(one)),
        ("eps", lambda one: np.full(one.got.shape, one.steps.eps)),
        ("xhat^2", lambda one: one.steps.xhat**2),
        ("gamma^2 xhat", lambda one: one.steps.gamma**2 * one.steps.xhat),
        ("beta^2", lambda one: one.steps.beta**2),
        ("1 / sqrt(var + eps)", _r),
        ("the variance of the group", lambda one: one.steps.back(one.steps.variance)),
    ),
    "dx": (
        ("mean(gamma g) / sqrt(var + eps)", lambda one: _r(one) * _mean(one, _h(one))),
        (
            "xhat mean(gamma g xhat) / sqrt(var + eps)",
            lambda one: _r(one) * one.steps.xhat * _mean(one, _h(one) * one.steps.xhat),
        ),
        ("gamma g / sqrt(var + eps)", lambda one: _r(one) * _h(one)),
        ("g", lambda one: one.steps.g),
        ("gamma g", _h),
        ("g / sqrt(var + eps)", lambda one: _r(one) * one.steps.g),
        ("mean(g) / sqrt(var + eps)", lambda one: _r(one) * _mean(one, one.steps.g)),
        ("x", lambda one: one.steps.x),
        ("xhat", lambda one: one.steps.xhat),
    ),
    "dgamma": (
        ("the sum of g", lambda one: one.steps.total(one.steps.g)),
        ("the sum of g x", lambda one: one.steps.total(one.steps.g * one.steps.x)),
        ("the sum of g y", lambda one: one.steps.total(one.steps.g * one.steps.normalised)),
        ("gamma", lambda one: one.steps.given("gamma")),  # type: ignore[return-value]
        ("the sum of xhat", lambda one: one.steps.total(one.steps.xhat)),
        _NUMBER_OF_TERMS,
    ),
    "dbeta": (
        ("the sum of g xhat", lambda one: one.steps.total(one.steps.g * one.steps.xhat)),
        ("the sum of gamma g", lambda one: one.steps.total(_h(one))),
        ("beta", lambda one: one.steps.given("beta")),  # type: ignore[return-value]
        _NUMBER_OF_TERMS,
    ),
}

#: Terms in the sum of a layer with parts.
_OF_PARTS: dict[str, tuple[_Term, ...]] = {
    "residual": (
        ("x", lambda one: one.steps.x),
        ("branch(x)", lambda one: one.steps.part("branch", one.steps.x)),
        ("shortcut(x)", lambda one: one.steps.part("shortcut", one.steps.x)),
        ("x branch(x)", lambda one: one.steps.x * one.steps.part("branch", one.steps.x)),
    ),
    "pre_norm": (
        ("x", lambda one: one.steps.x),
        ("LN(x)", lambda one: one.steps.normalised),
        ("sublayer(LN(x))", lambda one: one.steps.part("sublayer", one.steps.normalised)),
        ("sublayer(x)", lambda one: one.steps.part("sublayer", one.steps.x)),
    ),
    "post_norm": (
        ("x", lambda one: one.steps.x),
        ("sublayer(x)", lambda one: one.steps.part("sublayer", one.steps.x)),
    ),
    "highway": (
        ("x", lambda one: one.steps.x),
        ("transform(x)", _transformed),
        ("t transform(x)", lambda one: one.steps.gate * _transformed(one)),
        ("c x", lambda one: one.steps.carry * one.steps.x),
        ("t x", lambda one: one.steps.gate * one.steps.x),
        ("c transform(x)", lambda one: one.steps.carry * _transformed(one)),
        ("t c transform(x)", lambda one: one.steps.gate * one.steps.carry * _transformed(one)),
        ("t^2 transform(x)", lambda one: one.steps.gate**2 * _transformed(one)),
        ("t", lambda one: one.steps.gate),
    ),
    "mhc": (
        ("x", lambda one: one.steps.x),
        ("the sum of the branches", lambda one: np.sum(one.steps.branches, axis=0)),
        ("the mean of the branches", lambda one: np.mean(one.steps.branches, axis=0)),
        ("the first branch", lambda one: one.steps.branches[0]),
        ("the last branch", lambda one: one.steps.branches[-1]),
        ("the weighted sum of the branches", lambda one: one.expected - one.steps.x),
    ),
}


#: Terms in the sum of a layer that are the result of a part, each with what may replace it.
_PART_OF_SUM: dict[str, tuple[_Term, ...]] = {
    "residual": (
        ("branch(x)", lambda one: one.steps.part("branch", one.steps.x)),
        ("shortcut(x)", lambda one: one.steps.part("shortcut", one.steps.x)),
    ),
    "pre_norm": (("sublayer(LN(x))", lambda one: one.steps.part("sublayer", one.steps.normalised)),),
}
_CHANGES: tuple[tuple[str, Callable[[Array], Array]], ...] = (
    ("max({0}, 0)", lambda value: np.maximum(value, 0)),
    ("|{0}|", np.abs),
    ("({0})^2", np.square),
    ("tanh({0})", np.tanh),
    ("{0} within -1 and 1", lambda value: np.clip(value, -1, 1)),
    ("{0} of the row before", lambda value: np.roll(value, 1, axis=-2) if value.ndim > 1 else value),
    ("{0} of the feature before", lambda value: np.roll(value, 1, axis=-1)),
    ("{0} minus its mean", lambda value: value - value.mean(axis=-1, keepdims=True)),
)


def _highway(one: ObservedResult, t: Array, h: Array) -> Array:
    """y of a highway layer with this transform gate and this transformed value."""
    c = 1 - t if one.case.parts.get("carry") is None else one.steps.carry
    return t * h + c * one.steps.x


def _gated(change: Callable[[Array], Array]) -> Compute:
    """A highway layer whose transform gate is another function of its logits."""
    return lambda one: _highway(one, change(one.steps.part("gate", one.steps.x)), _transformed(one))


def _exchanged_parts(one: ObservedResult) -> Array:
    return _highway(one, logistic(_transformed(one)), one.steps.part("gate", one.steps.x))


def _weighed(change: Callable[[Array], Array], one: ObservedResult) -> Array:
    """An mhc layer whose weights are another function of the logits; not for one with fuse, which has no weights."""
    logits = one.steps.given("logits")
    if logits is None or one.case.parts.get("fuse") is not None:
        return one.expected
    pairs = zip(change(logits), one.steps.branches, strict=True)
    return one.steps.x + sum(weight * value for weight, value in pairs)


def _unfused(one: ObservedResult) -> Array:
    """An mhc layer that adds its branches up where it is given a fuse."""
    if one.case.parts.get("fuse") is None:
        return one.expected
    return one.steps.x + np.sum(one.steps.branches, axis=0)


def _powers(z: Array) -> Array:
    powers = np.exp2(np.floor((z - z.max()) / np.log(2)))
    return powers / powers.sum()


def _two_largest(z: Array) -> Array:
    kept = np.zeros_like(z)
    kept[np.argsort(-z, kind="stable")[:2]] = 1
    return softmax(z, None) * kept


#: Other things that a layer may do with its parts.
_OTHERWISE: dict[str, tuple[tuple[str, Compute], ...]] = {
    "residual": (("the activation applied twice", lambda one: one.steps.part("activation", one.expected)),),
    "highway": (
        ("transform and gate exchanged", _exchanged_parts),
        ("softmax over the last axis in place of the gate's logistic function", _gated(softmax)),
        ("tanh in place of the gate's logistic function", _gated(np.tanh)),
        ("the gate's logits in place of their logistic function", _gated(lambda z: z)),
        ("twice the gate's logits", _gated(lambda z: logistic(2 * z))),
        ("half the gate's logits", _gated(lambda z: logistic(z / 2))),
    ),
    "mhc": (
        ("the sum of the branches in place of what fuse returns", _unfused),
        ("exponentials rounded down to powers of two", partial(_weighed, _powers)),
        ("the two largest weights alone, as they are", partial(_weighed, _two_largest)),
        ("twice the logits", partial(_weighed, lambda z: softmax(2 * z, None))),
        ("half the logits", partial(_weighed, lambda z: softmax(z / 2, None))),
        ("minus the logits", partial(_weighed, lambda z: softmax(-z, None))),
        ("the logits themselves for weights", partial(_weighed, lambda z: z)),
        ("the exponentials of the logits for weights", partial(_weighed, np.exp)),
        (
            "the powers of 2 in place of the exponentials of the logits",
            partial(_weighed, lambda z: softmax(z * np.log(2), None)),
        ),
    ),
}
