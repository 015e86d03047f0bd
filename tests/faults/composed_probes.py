"""Probes of the composed operators: what is seen of an implementation in many small situations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

import numpy as np

from normspec.conformance.sound import Implementation
from normspec.spec.operators import OPERATORS
from normspec.spec.parts import Part

from .probes import DTYPES, normal, same
from .situations import Composition, composition, leaf, linear, tanh_linear

Probe = Callable[[Implementation, str, Any], Iterator[Any]]

#: The role of each operator's main part, mhc apart.
MAIN = {"residual": "branch", "pre_norm": "sublayer", "post_norm": "sublayer", "highway": "transform"}


def with_part(
    operator: str, dtype: Any, part: Part, inputs: dict[str, Any] | None = None, **changes: Any
) -> Composition:
    """The plain situation with one part replaced: the first branch, or the operator's main one."""
    if operator == "mhc":
        others = composition(operator, dtype, **changes).parts["branches"][1:]
        return composition(operator, dtype, parts={"branches": (part, *others)}, inputs=inputs or {}, **changes)
    return composition(operator, dtype, parts={MAIN[operator]: part}, inputs=inputs or {}, **changes)


def variations(operator: str, dtype: Any) -> Iterator[Composition]:
    """The operator with every kind of part that it takes."""
    yield composition(operator, dtype)
    yield composition(operator, dtype, shape=(2, 5, 6))
    yield composition(operator, dtype, shape=(6,))
    h, z, w = normal(5, 6, seed=31), normal(5, 6, seed=32) * 2, normal(6, 6, seed=33) / 6
    half = np.where(np.indices((5, 6)).sum(axis=0) % 2, 2.0, 0.0)
    dropped = Part("dropout", ("free.mask",), inner=(leaf("free.h"),))
    yield with_part(operator, dtype, leaf("free.h"), {"free.h": h})
    yield with_part(operator, dtype, dropped, {"free.h": h, "free.mask": half})
    for kind in ("zero", "negated", "identity", "view", "square"):
        yield with_part(operator, dtype, Part(kind))
        yield with_part(operator, dtype, Part(kind), {"x": normal(5, 6) * 4})
    if operator == "residual":
        for activation in ("relu", "tanh"):
            yield composition(operator, dtype, parts={"activation": Part(activation)})
            parts = {"activation": Part(activation), "shortcut": linear("shortcut.w")}
            yield composition(operator, dtype, parts=parts, inputs={"shortcut.w": w})
    elif operator == "highway":
        for logits in (z, z * 50, np.where(z > 0, np.inf, -np.inf), np.full_like(z, -np.inf), np.full_like(z, 1e4)):
            inputs = {"free.h": h, "free.z": logits, "free.c": np.roll(logits, 1, axis=-1)}
            parts = {"transform": leaf("free.h"), "gate": leaf("free.z")}
            yield composition(operator, dtype, parts=parts, inputs=inputs)
            yield composition(operator, dtype, parts={**parts, "carry": leaf("free.c")}, inputs=inputs)
        yield composition(operator, dtype, parts={"carry": tanh_linear("carry.w")}, inputs={"carry.w": w})
    elif operator == "mhc":
        for count in (1, 2, 12):
            yield composition(operator, dtype, count=count)
        same_parts = tuple(leaf("free.h") for _ in range(3))
        for logits in ((1.0, 1.0, 0.0), (0.0, 4.0, -4.0), (100.0, 0.0, 50.0), (1e4, 0.0, -1e4), (-np.inf, 0.0, 1.0)):
            yield composition(operator, dtype, inputs={"logits": np.array(logits)})
        yield composition(operator, dtype, parts={"branches": same_parts}, inputs={"free.h": h})
        for fuse in ("fuse_sum", "fuse_coupled", "fuse_product"):
            yield composition(operator, dtype, parts={"fuse": Part(fuse)})
        yield composition(
            operator, dtype, parts={"fuse": Part("fuse_weighted", ("fuse.a",))}, inputs={"fuse.a": normal(3, 6)}
        )
    else:
        for changes in ({"gamma": None}, {"beta": None}, {"gamma": None, "beta": None}):
            yield composition(operator, dtype, inputs=changes)
        for eps in (1e-12, 1e-6, 1e-5, 0.1):
            yield composition(operator, dtype, inputs={"x": normal(5, 6) * np.sqrt(eps)}, eps=eps)
        yield composition(operator, dtype, inputs={"x": np.full((5, 6), 3.0)})
        yield with_part(operator, dtype, Part("zero"), {"x": np.full((5, 6), 3.0)})
        yield composition(operator, dtype, inputs={"x": 1000 + normal(5, 6)})


def values(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """y."""
    for s in variations(op, d):
        yield s.call(i)


def gradients(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """Gradients, those of leaves included."""
    for s in variations(op, d):
        yield s.vjp(i)


def seconds(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """Second-order gradients."""
    for s in variations(op, d):
        yield s.vjp_vjp(i, s.directions(4))


def tangents(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """Tangents."""
    for s in variations(op, d):
        yield s.jvp(i, s.directions(3))


def parts_that_behave(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """Parts that count, own a buffer, return the wrong shape, raise, or share a leaf; and what becomes of memory."""
    plain = composition(op, d, shape=(2, 5, 6))
    for kind in ("counted", "buffered", "misshapen", "broadcasting", "raising"):
        for role in OPERATORS[op].roles:
            part = plain.parts.get(role)
            if part is None:
                continue
            several = part if isinstance(part, tuple) else (part,)
            wrapped = tuple(Part(kind, inner=(one,)) for one in several)
            s = composition(op, d, shape=(2, 5, 6), parts={role: wrapped if isinstance(part, tuple) else wrapped[0]})
            yield s.call(i)
            given, keywords = s.arguments()
            held = None
            if kind == "buffered":
                held = i.call(*given, **keywords)
                other = composition(op, d, shape=(2, 5, 6), parts=s.parts, seed=5)
                other.memory = s.memory
                other.call(i)
            yield held
    order: list[str] = []
    seen: list[Any] = []

    def watching(made: Any, name: str) -> Any:
        def called(x: Any) -> Any:
            order.append(name)
            seen.append([np.array(one) for one in x] if isinstance(x, list) else np.array(x))
            result = made(x)
            # As they are when everything is over.
            seen.extend((x, result))
            return result

        return called

    for s in (plain, *watched_too(op, d)):
        given, keywords = s.arguments()
        watched = [watching_all(g, str(k), watching) for k, g in enumerate(given)]
        i.call(*watched, **{k: watching_all(v, k, watching) for k, v in keywords.items()})
    yield list(order)
    yield seen


def watching_all(given: Any, name: str, watching: Callable[[Any, str], Any]) -> Any:
    """An argument, watched where it is a part, or each of a list of parts."""
    if isinstance(given, list):
        return [watching(one, f"{name}.{k}") for k, one in enumerate(given)]
    return watching(given, name) if callable(given) else given


def watched_too(op: str, d: Any) -> list[Composition]:
    """Situations beside the plain one in which the calls of parts are watched."""
    w = normal(6, 6, seed=34) / 6
    if op == "residual":
        return [composition(op, d, parts={"shortcut": linear("shortcut.w")}, inputs={"shortcut.w": w})]
    if op == "mhc":
        closed = np.array([0.0, -np.inf, 1.0])
        return [composition(op, d, parts={"fuse": Part("fuse_sum")}), composition(op, d, inputs={"logits": closed})]
    return []


def shared_leaves(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """Parts that share a leaf."""
    w = {"shared.w": normal(6, 6, seed=35) / 6}
    one, other = linear("shared.w"), tanh_linear("shared.w")
    parts = {
        "residual": {"branch": one, "shortcut": other},
        "highway": {"transform": one, "gate": other},
        "mhc": {"branches": (one, other, one)},
    }.get(op)
    if parts:
        yield composition(op, d, parts=parts, inputs=w).vjp(i)


def handed_in(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """The inputs as they are after the calls."""
    for kind in (None, "identity", "view"):
        s = composition(op, d) if kind is None else with_part(op, d, Part(kind))
        s.both(i)
        yield [a for a in (*s.inputs.values(), s.g) if a is not None]


def laid_out(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """Inputs, parameters and cotangents that are not contiguous."""
    for name in ("x", "gamma", "logits", "g"):
        s = composition(op, d, shape=(3, 4))
        if name != "g" and s.inputs.get(name) is None:
            continue
        a = s.g if name == "g" else s.inputs[name]
        for view in (np.ascontiguousarray(a.T).T, np.repeat(a, 2, axis=-1)[..., ::2]):
            if name == "g":
                s.g = view
            else:
                s.inputs[name] = view
            yield s.both(i)


def non_finite(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """A NaN and an Inf in x, with parts that keep it where it is."""
    for bad in (np.nan, np.inf):
        x = normal(5, 6)
        x[1, 2] = bad
        yield with_part(op, d, leaf("free.h"), {"x": x, "free.h": normal(5, 6, seed=36)}).both(i)
        yield with_part(op, d, Part("zero"), {"x": x}).both(i)
    h = normal(5, 6, seed=36)
    h[1, 2] = np.nan
    yield with_part(op, d, leaf("free.h"), {"free.h": h}).both(i)
    for name in ("gamma", "beta", "logits", "g"):
        s = composition(op, d)
        spoilt = s.g if name == "g" else s.inputs.get(name)
        if spoilt is not None:
            spoilt[..., 2] = np.nan
            yield s.both(i)


def calls(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """Results read again after other calls, gradients after other calls, repetitions, and blocks in cascade."""
    first, second = (composition(op, d, seed=seed, g=normal(5, 6, seed=seed + 60)) for seed in (1, 2))
    if op == "residual":
        for s in (first, second):
            s.parts["activation"] = Part("tanh")
    (given, keywords), (pulled, _) = first.arguments(), first.arguments(notes={})
    held = i.call(*given, **keywords), *i.vjp(*pulled, first.g, **keywords)
    second.both(i)
    yield [None if a is None else np.array(a) for a in held]
    first.call(i)
    second.call(i)
    yield first.vjp(i)
    for _ in range(13):
        yield first.call(i)
    again = composition(op, d, seed=2)
    again.inputs["x"] = first.call(i) if isinstance(first.call(i), np.ndarray) else again.inputs["x"]
    yield again.call(i)


def mixed(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """16-bit data with float32 parameters, and a part that returns float64."""
    yield composition(op, d, parameters=np.float32).both(i)
    wider = with_part(op, d, leaf("free.h"), {"free.h": normal(5, 6, seed=36)})
    wider.inputs["free.h"] = normal(5, 6, seed=36)
    yield wider.call(i)


def bad_arguments(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """Calls that must be refused."""
    if op == "mhc":
        yield composition(op, d, inputs={"logits": np.ones(5)}).call(i)
    yield composition(op, d, inputs={name: np.ones(1) for name in ("gamma", "beta")}).call(i)
    yield composition(op, d, eps=-0.5).call(i)


def sizes(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """No rows, many rows, long rows."""
    for shape in ((0, 4), (3, 70), (66000, 2), (2, 1100)):
        yield with_part(op, d, Part("scaled", number=2.0), shape=shape).both(i)


PROBES: tuple[Probe, ...] = (
    values,
    gradients,
    tangents,
    seconds,
    parts_that_behave,
    shared_leaves,
    handed_in,
    laid_out,
    non_finite,
    mixed,
    bad_arguments,
    calls,
    sizes,
)


def first_difference(
    one: Callable[[], Implementation], other: Callable[[], Implementation], operator: str, dtype: str
) -> str | None:
    """The name of the first probe in which two implementations differ, None if there is none."""
    for probe in PROBES:
        seen = zip_longest(*(probe(build(), operator, DTYPES[dtype]) for build in (one, other)))
        if not all(same(left, right) for left, right in seen):
            return probe.__name__
    return None
