"""One small call of every operator in each of its forms, with the reference's results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import pairwise
from typing import Any

import attrs
import mpmath
import numpy as np
from mpmath import mpf

from normspec.reference.accuracy import Arithmetic
from normspec.reference.composed import Composed
from normspec.spec.parts import Part as Described

from .page_values import apply, array
from .page_worlds import Array, Part, World, along

ROWS, N, BRANCHES = 2, 3, 3
EPS, MOMENTUM = 0.375, 0.25

Tensors = Mapping[str, Any]


@attrs.frozen(eq=False)
class Scene:
    """A call in one form, its values float64."""

    name: str
    page: str
    world: World
    #: By the name of an input: the name of its gradient, and of its gradient of second order.
    first: Mapping[str, str]
    second: Mapping[str, str]
    #: By the name of the cotangent of second order, the gradient that it belongs to.
    cotangents: Mapping[str, str]
    #: By the name of an input, the name of its tangent.
    tangents: Mapping[str, str]
    #: The reference's results, by their names on the page.
    reference: Callable[[], Tensors]

    def pulled(self, world: World) -> Any:
        """<y, g>: the function whose gradients are the first ones."""
        return np.sum(world["y"] * self.world["g"])

    def paired(self, world: World) -> Any:
        """The sum of the products of the gradients with their cotangents: what those of second order are those of."""
        return sum(np.sum(np.asarray(world[d], dtype=object) * self.world[c]) for c, d in self.cotangents.items())

    def tangent(self, name: str) -> Any:
        """The derivative of a value along all tangents."""
        inputs = {of: self.world[of] for of in self.tangents}

        def at(step: Any) -> Any:
            moved = {of: z + step * self.world[self.tangents[of]] for of, z in inputs.items()}
            return np.asarray(self.world.moved(**moved)[name], dtype=object)

        return along(at, mpf(0), 1)


def pair(found: Any) -> Array:
    """A double-double as mpmath numbers."""
    return array(found.hi) + array(found.lo)


class Drawn:
    """Values by name, drawn once from one seed."""

    def __init__(self, seed: int) -> None:
        self.rng, self.values = np.random.default_rng(seed), {}

    def __call__(self, *names: str, shape: tuple[int, ...], scale: float = 1.0) -> None:
        for name in names:
            self.values[name] = scale * self.rng.standard_normal(shape)

    def exact(self) -> dict[str, Array]:
        """The same values in mpmath."""
        return {name: array(z) for name, z in self.values.items()}


#: Gradients, second order, cotangents and tangents of operators with x and gamma.
GAINED = (
    {"x": "dx", "gamma": "dgamma"},
    {"x": "x_bar", "gamma": "gamma_bar", "g": "g_bar"},
    {"a": "dx", "b": "dgamma"},
    {"x": "tx", "gamma": "tgamma"},
)
#: The same for operators with x, gamma and beta.
NORMALISED = (
    {"x": "dx", "gamma": "dgamma", "beta": "dbeta"},
    {"x": "x_bar", "gamma": "gamma_bar", "g": "g_bar"},
    {"a": "dx", "b": "dgamma", "c": "dbeta"},
    {"x": "tx", "gamma": "tgamma", "beta": "tbeta"},
)


def normalisation(
    page: str, shape: tuple[int, ...], parameter: tuple[int, ...], n: int, settings: Tensors, *, seed: int,
    tables: tuple[Tensors, ...] = NORMALISED, statistics: tuple[str, ...] = (), outputs: tuple[str, ...] = ("y",),
    sums: Tensors | None = None, label: str = "",
) -> Scene:  # fmt: skip
    """A scene of an operator that normalises x of this shape in groups of n values, with parameters of their shape."""
    draw = Drawn(seed)
    draw("x", "g", "a", "tx", "sx", shape=shape)
    draw("gamma", "beta", "b", "c", "tgamma", "tbeta", "sgamma", "sbeta", shape=parameter)
    draw(*statistics, shape=parameter)
    if statistics:
        draw.values["running_var"] = np.abs(draw.values["running_var"])
    if tables is GAINED:
        for name in ("beta", "c", "tbeta", "sbeta"):
            del draw.values[name]
    v = draw.values
    first, second, cotangents, tangents = tables

    def told() -> Tensors:
        args = tuple(v[name] for name in (*first, *statistics))

        def call(derivative: str, *more: str) -> Any:
            function = getattr(import_module(f"normspec.reference.{page}"), f"{page}{derivative}_exact")
            return function(*args, *(v[name] for name in more), **{"eps": EPS, **settings})

        y = call("") if len(outputs) > 1 else (call(""),)
        found = {
            "ty": call("_jvp", *tangents.values()),
            **dict(zip(outputs, y, strict=True)),
            **dict(zip(first.values(), call("_vjp", "g"), strict=True)),
            **dict(zip(second.values(), call("_vjp_vjp", "g", *cotangents), strict=True)),
        }
        return {name: pair(z) for name, z in found.items()}

    momentum = {"momentum": mpf(settings["momentum"])} if "momentum" in settings else {}
    values = {**draw.exact(), **(sums or {}), "n": n, "eps": mpf(EPS), **momentum}
    world = World(page, values, labels=frozenset({label} - {""}))
    return Scene(f"{page}, {label}" if label else page, page, world, *tables, told)


def batch_norm(*, training: bool) -> Scene:
    """batch_norm of samples in rows and channels in columns: a group runs along the first axis."""
    settings = {"momentum": MOMENTUM, "training": training, "channel_axis": 1}
    sums = {
        "mean": lambda z: z.sum(axis=0) / len(z),
        **dict.fromkeys(("sum", "sum over the channel"), lambda z: z.sum(axis=0)),
        "sum over channel j": lambda z: z[:, 0].sum(),
    }
    return normalisation(
        "batch_norm", (N, ROWS), (ROWS,), N, settings, seed=2, sums=sums, label="training" if training else "inference",
        statistics=("running_mean", "running_var"), outputs=("y", "new_running_mean", "new_running_var"),
    )  # fmt: skip


def of_samples(page: str, positions: int, channels: int, groups: int, settings: Tensors, seed: int) -> Scene:
    """group_norm or instance_norm of samples, positions and channels, along the axes in this order."""
    width = channels // groups

    def total(z: Any) -> Array:
        z = np.asarray(z, dtype=object)
        split = z.reshape(*z.shape[:-1], -1, min(width, z.shape[-1]))
        return np.broadcast_to(split.sum(axis=(1, 3), keepdims=True), split.shape).reshape(z.shape)

    sums = {
        "sum": total,
        "mean": lambda z: total(z) / (z.shape[1] * min(width, z.shape[-1])),
        "sum over samples and positions": lambda z: z.sum(axis=(0, 1)),
    }
    shape = (ROWS, positions, channels)
    return normalisation(page, shape, (channels,), positions * width, settings, seed=seed, sums=sums)


#: The functions of parts, by the reference's names of their kinds.
KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "linear": lambda x, w: x @ w,
    "tanh_linear": lambda x, w: apply(mpmath.tanh)(x @ w),
    "square": lambda x, w: x * x,
    "tanh": lambda x, w: apply(mpmath.tanh)(x),
    "identity": lambda x, w: x,
}


@attrs.frozen(eq=False)
class Role:
    """A part of a scene: its name on the page, its role, its kind, the name of its leaf, and what it gets."""

    name: str
    role: str
    kind: str
    leaf: str | None = None
    at: str = "x"

    def part(self) -> Part:
        """As the world knows it."""
        return Part(KINDS[self.kind], self.at, self.leaf)

    def described(self) -> Described:
        """As the reference knows it."""
        return Described(self.kind, () if self.leaf is None else (f"{self.role}.{self.leaf}",))


def composed(
    name: str, page: str, roles: tuple[Role, ...], tables: tuple[Tensors, ...], *,
    draw: Drawn, labels: frozenset[str] = frozenset(), explicit: tuple[str, ...] = ("x",),
    settings: Tensors | None = None, absent: Tensors | None = None, extra: Tensors | None = None,
    normalised: str = "x",
) -> Scene:  # fmt: skip
    """A scene of a composed operator; the leaf of each part is drawn under its own name, its tangent as t and name."""
    for role in roles:
        if role.leaf is not None:
            draw(role.leaf, f"t{role.leaf}", shape=(N, N), scale=0.5)
    v = draw.values
    first, second, cotangents, tangents = tables
    leaves = {role.leaf: f"{role.role}.{role.leaf}" for role in roles if role.leaf is not None}
    tangents = {**tangents, **{leaf: f"t{leaf}" for leaf in leaves}}

    def told() -> Tensors:
        names = {**{one: one for one in explicit}, **leaves}
        parts: dict[str, Any] = dict.fromkeys(absent or {})
        branches = [role.described() for role in roles if role.role.startswith("branches.")]
        parts |= {role.role: role.described() for role in roles if not role.role.startswith("branches.")}
        parts |= {"branches": tuple(branches)} if branches else {}
        parts |= {"fuse": extra["described"]} if extra and "described" in extra else {}
        call = Composed(page, {names[one]: v[one] for one in names}, settings or {}, parts, Arithmetic.of("float64"))
        pulled = call.gradients(v["g"])
        gradients = {d: v[c] for c, d in cotangents.items()}
        along_inputs = {one: gradients[d] for one, d in first.items() if d in gradients}
        again = call.vjp_vjp(v["g"], along_inputs)
        found = {
            "y": call.y(),
            "ty": call.jvp({names[one]: v[t] for one, t in tangents.items()}),
            **{d: pulled[names.get(one, one)] for one, d in first.items()},
            **{bar: again[one] for one, bar in second.items()},
        }
        return {one: pair(z.exact) for one, z in found.items()}

    values: dict[str, Any] = {**draw.exact(), "n": N}
    values |= {role.name: role.part() for role in roles if not role.role.startswith("branches.")}
    values |= {name: z for name, z in (extra or {}).items() if name != "described"}
    branches = [role.part() for role in roles if role.role.startswith("branches.")]
    values |= {"H_": branches, "K": len(branches)} if branches else {}
    values |= {name: mpf(z) for name, z in (settings or {}).items()}
    world = World(page, values, labels=labels, normalised=normalised)
    return Scene(name, page, world, first, second, cotangents, tangents, told)


#: The tables of an operator whose only named input is x.
PLAIN = ({"x": "dx"}, {"x": "x_bar", "g": "g_bar"}, {"a": "dx"}, {"x": "tx"})


def drawn(seed: int) -> Drawn:
    """x, its cotangents and its tangents."""
    draw = Drawn(seed)
    draw("x", "g", "a", "tx", "sx", shape=(ROWS, N))
    return draw


def residual(*, full: bool) -> Scene:
    """residual, plain or with shortcut and activation."""
    roles = (Role("F", "branch", "tanh_linear", "w"),)
    identity = Part(KINDS["identity"])
    extra: dict[str, Any] = {"S": identity, "A": attrs.evolve(identity, at="s")}
    absent: dict[str, Any] = {"shortcut": None, "activation": None}
    if full:
        roles = (*roles, Role("S", "shortcut", "linear", "w_S"), Role("A", "activation", "tanh", at="s"))
        extra, absent = {}, {}
    labels = frozenset({} if full else {"without shortcut and activation"})
    name = "residual, with shortcut and activation" if full else "residual"
    return composed(name, "residual", roles, PLAIN, draw=drawn(3), extra=extra, absent=absent, labels=labels)


def block(page: str) -> Scene:
    """pre_norm or post_norm."""
    draw = drawn(4)
    draw("gamma", "beta", "b", "c", "tgamma", "tbeta", "sgamma", "sbeta", shape=(N,))
    first, second, cotangents, tangents = NORMALISED
    tables = (first, {**second, "beta": "beta_bar"}, cotangents, tangents)
    roles = (Role("F", "sublayer", "tanh_linear", "w", at="z" if page == "pre_norm" else "x"),)
    explicit = ("x", "gamma", "beta")
    return composed(
        page, page, roles, tables, draw=draw, explicit=explicit, settings={"eps": EPS},
        normalised="x" if page == "pre_norm" else "s",
    )  # fmt: skip


def highway(*, carry: bool) -> Scene:
    """highway, with its own carry gate or without."""
    roles = (Role("H", "transform", "tanh_linear", "w"), Role("z", "gate", "linear", "w_z"))
    label = "with carry" if carry else "without carry"
    roles = (*roles, Role("k", "carry", "tanh_linear", "w_k")) if carry else roles
    absent = {} if carry else {"carry": None}
    return composed(
        f"highway, {label}", "highway", roles, PLAIN, draw=drawn(5), absent=absent, labels=frozenset({label})
    )


def mhc(*, fuse: bool) -> Scene:
    """mhc, with softmax weights or with a fuse that couples its branches."""
    draw = drawn(6)
    kinds = ("tanh_linear", "linear", "square")
    roles = tuple(
        Role(f"H_{k}", f"branches.{k}", kind, None if kind == "square" else f"w{k}") for k, kind in enumerate(kinds)
    )
    first, second, cotangents, tangents = PLAIN
    if fuse:
        coupled = Part(lambda ys, _: sum(ys) + sum(apply(mpmath.tanh)(a) * b for a, b in pairwise(ys)), "ys")
        extra = {"f": coupled, "described": Described("fuse_coupled"), "dot f": 0}
        return composed("mhc, with fuse", "mhc", roles, PLAIN, draw=draw, extra=extra, labels=frozenset({"with fuse"}))
    draw("logits", "b", "tlogits", "slogits", shape=(BRANCHES,))
    tables = (
        {**first, "logits": "dlogits"},
        {**second, "logits": "logits_bar"},
        {**cotangents, "b": "dlogits"},
        {**tangents, "logits": "tlogits"},
    )
    return composed(
        "mhc, without fuse", "mhc", roles, tables, draw=draw, explicit=("x", "logits"), absent={"fuse": None},
        labels=frozenset({"without fuse"}),
    )  # fmt: skip


def scenes() -> dict[str, Scene]:
    """Every scene by its name."""
    found = (
        normalisation("layer_norm", (ROWS, N), (N,), N, {"axes": (-1,)}, seed=1),
        normalisation("rms_norm", (ROWS, N), (N,), N, {"axes": (-1,)}, seed=7, tables=GAINED),
        batch_norm(training=True),
        batch_norm(training=False),
        of_samples("group_norm", 2, 4, 2, {"groups": 2, "channel_axis": -1}, seed=8),
        of_samples("instance_norm", N, 2, 2, {"channel_axis": -1}, seed=9),
        residual(full=False),
        residual(full=True),
        block("pre_norm"),
        block("post_norm"),
        highway(carry=False),
        highway(carry=True),
        mhc(fuse=False),
        mhc(fuse=True),
    )
    return {scene.name: scene for scene in found}
