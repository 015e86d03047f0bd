"""Terms: what may be added to a result, too often or too rarely, by operator and result."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from ....spec.operators import OPERATORS
from .facts import logistic
from .numbers import written
from .observing import Seen
from .relation import Made, Relation, right, said

Array = np.ndarray
_Term = tuple[str, Callable[[Seen], Array]]


def plus(words: str) -> Callable[[float], str]:
    """Words for the right value and a multiple of something."""

    def told(number: float) -> str:
        if number == -1:
            return f"the right value without {words}"
        times = "" if abs(number) == 1 else f"{written(abs(number))} times "
        return f"the right value {'plus' if number > 0 else 'minus'} {times}{words}"

    return told


def term_relations(operator: str, name: str) -> Iterator[Relation]:
    """The right value plus a multiple of a term of the formula."""
    record = OPERATORS[operator]
    if record.composed:
        terms = _OF_PARTS.get(operator, ()) if name == "y" else ()
    else:
        terms = _OF_NORMS.get(name, ())
    if record.composed and record.normalises and name == "y":
        terms = (*terms, *_OF_BLOCKS)
    for words, term in terms:
        yield Relation(plus(words), right, _present(term))
    if record.composed and name == "dx":
        yield Relation(_beside_g, lambda one: np.zeros(one.got.shape), lambda one: one.expected - one.facts.g, np.inf)
    if name == "y":
        for words, made in _OTHERWISE.get(operator, ()):
            yield Relation(said(f"what the formula gives with {words}"), made)
    if name == "y" and record.normalises and not record.normalises_handed:
        yield Relation(said("what the formula gives, normalised once more without gamma and beta"), _normalised_again)
    for role, handed in _PART_OF_SUM.get(operator, ()) if name == "y" else ():
        for words, change in _CHANGES:
            told = f"the right value with {words.format(role)} in place of {role}"
            yield Relation(said(told), _with_changed(handed, change))
    if record.composed:
        for (old, one), (new, other) in itertools.permutations(terms, 2):
            yield Relation(said(f"the right value with {new} in place of {old}"), _exchanged(one, other))


def _beside_g(number: float) -> str:
    times = "" if number == 1 else f"{written(number)} times "
    return f"{times}what the right value has beside g"


def clipped_relations() -> Iterator[Relation]:
    """y with xhat limited in size."""
    yield Relation(
        lambda number: f"beta + {written(number)} gamma, with the sign of xhat",
        lambda one: one.facts.beta,
        lambda one: one.facts.gamma * np.sign(one.facts.xhat),
        np.inf,
    )


def _normalised_again(one: Seen) -> Array:
    facts = one.facts
    rows = facts.rows(facts.normalised)
    centred = rows - (rows.mean(axis=1, keepdims=True) if one.case.record.centred else 0.0)
    return facts.back(centred / np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + facts.eps))


def _with_changed(part: Callable[[Seen], Array], change: Callable[[Array], Array]) -> Made:
    return lambda one: one.expected + (change(part(one)) - part(one))


def _exchanged(old: Callable[[Seen], Array], new: Callable[[Seen], Array]) -> Made:
    return lambda one: one.expected - old(one) + new(one)


def _present(term: Callable[[Seen], Array]) -> Made:
    def made(one: Seen) -> Array | None:
        value = term(one)
        return np.where(np.isfinite(value), value, np.nan)

    return made


def _h(one: Seen) -> Array:
    return one.facts.gamma * one.facts.g


def _given(one: Seen, name: str) -> Array:
    return np.full(one.got.shape, float(one.facts.given(name) is not None))


def _mean(one: Seen, values: Array) -> Array:
    rows = one.facts.rows(values)
    return one.facts.back(rows.mean(axis=1, keepdims=True))


def _r(one: Seen) -> Array:
    return one.facts.back(one.facts.r)


_OF_NORMS: dict[str, tuple[_Term, ...]] = {
    "y": (
        ("beta", lambda one: one.facts.beta),
        ("gamma", lambda one: one.facts.gamma),
        ("xhat", lambda one: one.facts.xhat),
        ("gamma xhat", lambda one: one.facts.gamma * one.facts.xhat),
        ("xhat where gamma is given", lambda one: _given(one, "gamma") * one.facts.xhat),
        ("1 where beta is given", lambda one: _given(one, "beta")),
        ("x", lambda one: one.facts.x),
        ("gamma beta", lambda one: one.facts.gamma * one.facts.beta),
        ("the mean of the group", lambda one: one.facts.back(one.facts.mean)),
        ("gamma mean / sqrt(var + eps)", lambda one: one.facts.gamma * one.facts.back(one.facts.mean * one.facts.r)),
        ("gamma / sqrt(var + eps)", lambda one: one.facts.gamma * _r(one)),
        ("eps", lambda one: np.full(one.got.shape, one.facts.eps)),
        ("xhat^2", lambda one: one.facts.xhat**2),
        ("gamma^2 xhat", lambda one: one.facts.gamma**2 * one.facts.xhat),
        ("beta^2", lambda one: one.facts.beta**2),
        ("1 / sqrt(var + eps)", _r),
        ("the variance of the group", lambda one: one.facts.back(one.facts.variance)),
    ),
    "dx": (
        ("mean(gamma g) / sqrt(var + eps)", lambda one: _r(one) * _mean(one, _h(one))),
        (
            "xhat mean(gamma g xhat) / sqrt(var + eps)",
            lambda one: _r(one) * one.facts.xhat * _mean(one, _h(one) * one.facts.xhat),
        ),
        ("gamma g / sqrt(var + eps)", lambda one: _r(one) * _h(one)),
        ("g", lambda one: one.facts.g),
        ("gamma g", _h),
        ("g / sqrt(var + eps)", lambda one: _r(one) * one.facts.g),
        ("mean(g) / sqrt(var + eps)", lambda one: _r(one) * _mean(one, one.facts.g)),
        ("x", lambda one: one.facts.x),
        ("xhat", lambda one: one.facts.xhat),
    ),
    "dgamma": (
        ("the sum of g", lambda one: one.facts.total(one.facts.g)),
        ("the sum of g x", lambda one: one.facts.total(one.facts.g * one.facts.x)),
        ("the sum of g y", lambda one: one.facts.total(one.facts.g * one.facts.normalised)),
        ("gamma", lambda one: one.facts.given("gamma")),  # type: ignore[return-value]
        ("the sum of xhat", lambda one: one.facts.total(one.facts.xhat)),
        ("the number of terms in its sum", lambda one: np.full(one.got.shape, one.case.x.size / max(one.got.size, 1))),
    ),
    "dbeta": (
        ("the sum of g xhat", lambda one: one.facts.total(one.facts.g * one.facts.xhat)),
        ("the sum of gamma g", lambda one: one.facts.total(_h(one))),
        ("beta", lambda one: one.facts.given("beta")),  # type: ignore[return-value]
        ("the number of terms in its sum", lambda one: np.full(one.got.shape, one.case.x.size / max(one.got.size, 1))),
    ),
}

#: Terms in the sum of a layer with parts.
_OF_PARTS: dict[str, tuple[_Term, ...]] = {
    "residual": (
        ("x", lambda one: one.facts.x),
        ("branch(x)", lambda one: one.facts.part("branch", one.facts.x)),
        ("shortcut(x)", lambda one: one.facts.part("shortcut", one.facts.x)),
        ("x branch(x)", lambda one: one.facts.x * one.facts.part("branch", one.facts.x)),
    ),
    "pre_norm": (
        ("x", lambda one: one.facts.x),
        ("LN(x)", lambda one: one.facts.normalised),
        ("sublayer(LN(x))", lambda one: one.facts.part("sublayer", one.facts.normalised)),
        ("sublayer(x)", lambda one: one.facts.part("sublayer", one.facts.x)),
    ),
    "post_norm": (
        ("x", lambda one: one.facts.x),
        ("sublayer(x)", lambda one: one.facts.part("sublayer", one.facts.x)),
    ),
    "highway": (
        ("x", lambda one: one.facts.x),
        ("transform(x)", lambda one: _transformed(one)),
        ("t transform(x)", lambda one: one.facts.gate * _transformed(one)),
        ("c x", lambda one: one.facts.carry * one.facts.x),
        ("t x", lambda one: one.facts.gate * one.facts.x),
        ("c transform(x)", lambda one: one.facts.carry * _transformed(one)),
        ("t c transform(x)", lambda one: one.facts.gate * one.facts.carry * _transformed(one)),
        ("t^2 transform(x)", lambda one: one.facts.gate**2 * _transformed(one)),
        ("t", lambda one: one.facts.gate),
    ),
    "mhc": (
        ("x", lambda one: one.facts.x),
        ("the sum of the branches", lambda one: np.sum(one.facts.branches, axis=0)),
        ("the mean of the branches", lambda one: np.mean(one.facts.branches, axis=0)),
        ("the first branch", lambda one: one.facts.branches[0]),
        ("the last branch", lambda one: one.facts.branches[-1]),
        ("the weighted sum of the branches", lambda one: one.expected - one.facts.x),
    ),
}


#: Terms in the sum of a layer that are the result of a part, each with what may replace it.
_PART_OF_SUM: dict[str, tuple[_Term, ...]] = {
    "residual": (
        ("branch(x)", lambda one: one.facts.part("branch", one.facts.x)),
        ("shortcut(x)", lambda one: one.facts.part("shortcut", one.facts.x)),
    ),
    "pre_norm": (("sublayer(LN(x))", lambda one: one.facts.part("sublayer", one.facts.normalised)),),
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


def _transformed(one: Seen) -> Array:
    return one.facts.part("transform", one.facts.x)


def _gated(change: Callable[[Array], Array]) -> Made:
    """A highway layer whose transform gate is another function of its logits."""

    def made(one: Seen) -> Array:
        t = change(one.facts.part("gate", one.facts.x))
        c = 1 - t if one.case.parts.get("carry") is None else one.facts.carry
        return t * _transformed(one) + c * one.facts.x

    return made


def _exchanged_parts(one: Seen) -> Array:
    t = logistic(_transformed(one))
    c = 1 - t if one.case.parts.get("carry") is None else one.facts.carry
    return t * one.facts.part("gate", one.facts.x) + c * one.facts.x


def _softmax(z: Array, axis: int | None = -1) -> Array:
    with np.errstate(all="ignore"):
        shifted = np.exp(z - z.max(axis=axis, keepdims=True))
        return shifted / shifted.sum(axis=axis, keepdims=True)


def _weighed(change: Callable[[Array], Array]) -> Made:
    """An mhc layer whose weights are another function of the logits; not for one with fuse, which has no weights."""

    def made(one: Seen) -> Array:
        logits = one.facts.given("logits")
        if logits is None or one.case.parts.get("fuse") is not None:
            return one.expected
        pairs = zip(change(logits), one.facts.branches, strict=True)
        return one.facts.x + sum(weight * value for weight, value in pairs)

    return made


def _powers(z: Array) -> Array:
    powers = np.exp2(np.floor((z - z.max()) / np.log(2)))
    return powers / powers.sum()


def _two_largest(z: Array) -> Array:
    kept = np.zeros_like(z)
    kept[np.argsort(-z, kind="stable")[:2]] = 1
    return _softmax(z, None) * kept


#: Other things that a layer may do with its parts.
_OTHERWISE: dict[str, tuple[tuple[str, Made], ...]] = {
    "residual": (("the activation applied twice", lambda one: one.facts.part("activation", one.expected)),),
    "highway": (
        ("transform and gate exchanged", _exchanged_parts),
        ("softmax over the last axis in place of the gate's logistic function", _gated(_softmax)),
        ("tanh in place of the gate's logistic function", _gated(np.tanh)),
        ("the gate's logits in place of their logistic function", _gated(lambda z: z)),
        ("twice the gate's logits", _gated(lambda z: logistic(2 * z))),
        ("half the gate's logits", _gated(lambda z: logistic(z / 2))),
    ),
    "mhc": (
        ("exponentials rounded down to powers of two", _weighed(_powers)),
        ("the two largest weights alone, as they are", _weighed(_two_largest)),
        ("twice the logits", _weighed(lambda z: _softmax(2 * z, None))),
        ("half the logits", _weighed(lambda z: _softmax(z / 2, None))),
        ("minus the logits", _weighed(lambda z: _softmax(-z, None))),
        ("the logits themselves for weights", _weighed(lambda z: z)),
        ("the exponentials of the logits for weights", _weighed(np.exp)),
        (
            "the powers of 2 in place of the exponentials of the logits",
            _weighed(lambda z: _softmax(z * np.log(2), None)),
        ),
    ),
}

#: Terms that a block may add beside its parts.
_OF_BLOCKS: tuple[_Term, ...] = (
    ("beta", lambda one: one.facts.beta),
    ("gamma", lambda one: one.facts.gamma),
    ("xhat", lambda one: one.facts.xhat),
    ("gamma xhat", lambda one: one.facts.gamma * one.facts.xhat),
)
