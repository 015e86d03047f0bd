"""Probes: small situations in which an implementation is observed, each as a list of arrays and words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from normspec.conformance.sound import Implementation

DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64}

Seen = list[Any]
Probe = Callable[[Implementation, str, Any], Iterator[Any]]


class Situation:
    """Inputs of one call of either operator, in one dtype."""

    def __init__(self, operator: str, x: np.ndarray, dtype: Any, *, seed: int = 0, **changes: Any) -> None:
        random = np.random.default_rng(seed)
        self.operator = operator
        self.axes = changes.pop("axes", (-1,))
        self.channel_axis = changes.pop("channel_axis", -1)
        owner = x.shape[-len(self.axes) :] if operator == "layer_norm" else (x.shape[self.channel_axis],)
        parameters = changes.pop("parameters", dtype)
        self.x = x.astype(dtype)
        self.g = changes.pop("g", None)
        if self.g is None:
            self.g = (random.normal(size=x.shape) * 2 + 0.5).astype(dtype)
        self.gamma = changes.pop("gamma", (random.normal(size=owner) * 2).astype(parameters))
        self.beta = changes.pop("beta", random.normal(size=owner).astype(parameters))
        self.mean = changes.pop("mean", (random.normal(size=owner) + 1).astype(parameters))
        self.variance = changes.pop("variance", np.abs(random.normal(size=owner) / 8).astype(parameters))
        self.eps = changes.pop("eps", 1e-3)
        self.momentum = changes.pop("momentum", 0.3)
        self.training = changes.pop("training", True)
        assert not changes

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The positional arguments of the forward call."""
        if self.operator == "layer_norm":
            return self.x, self.gamma, self.beta
        return self.x, self.gamma, self.beta, self.mean, self.variance

    @property
    def settings(self) -> dict[str, Any]:
        """The keyword arguments."""
        if self.operator == "layer_norm":
            return {"eps": self.eps, "axes": self.axes}
        return {
            "eps": self.eps,
            "momentum": self.momentum,
            "training": self.training,
            "channel_axis": self.channel_axis,
        }

    def call(self, implementation: Implementation) -> Any:
        return attempt(lambda: implementation.call(*self.arrays, **self.settings))

    def vjp(self, implementation: Implementation) -> Any:
        return attempt(lambda: implementation.vjp(*self.arrays, self.g, **self.settings))

    def both(self, implementation: Implementation) -> Any:
        return self.call(implementation), self.vjp(implementation)

    def higher(self, implementation: Implementation) -> Any:
        tx, tgamma, tbeta = self.g, self.gamma * 2 + 1, self.beta * 3 - 1
        yield attempt(lambda: implementation.jvp(*self.arrays, tx, tgamma, tbeta, **self.settings))
        yield attempt(lambda: implementation.vjp_vjp(*self.arrays, self.g, self.x, tgamma, tbeta, **self.settings))
        first, second = (tx, tgamma, tbeta), (self.x, tgamma, tbeta)
        nested = {
            implementation.jvp_vjp: (self.g, *second),
            implementation.vjp_jvp: (*second, self.g),
            implementation.jvp_jvp: (*first, *second),
        }
        for function, moving in nested.items():
            if function is not None:
                yield attempt(lambda f=function, m=moving: f(*self.arrays, *m, **self.settings))


def attempt(thunk: Callable[[], Any]) -> Any:
    """What a call returns, copied, or the name of what it raised."""
    try:
        returned = thunk()
    except Exception as raised:
        return type(raised).__name__
    return (
        tuple(np.array(r) if r is not None else None for r in returned)
        if isinstance(returned, tuple)
        else np.array(returned)
    )


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    """Normal values around 1, with a deviation of 2."""
    return np.random.default_rng(seed).normal(size=shape) * 2 + 1


def plain(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """Ordinary groups, with and without parameters, in training and inference."""
    for training in (True, False):
        yield Situation(op, normal(5, 7), d, training=training).both(i)
        yield Situation(op, normal(5, 7), d, training=training, gamma=None).both(i)
        yield Situation(op, normal(5, 7), d, training=training, beta=None).both(i)
        yield from Situation(op, normal(5, 7), d, training=training).higher(i)


def small_variance(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """Variances about eps, for several eps."""
    for eps in (1e-12, 2.0**-20, 1e-6, 1e-5, 0.1):
        x = normal(6, 6) - 1
        for training in (True, False):
            yield Situation(
                op, x * np.sqrt(eps), d, eps=eps, training=training, variance=np.full(6, eps).astype(d)
            ).both(i)


def special_groups(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """Constant groups, large means, and no, one or two values a group."""
    yield Situation(op, np.full((4, 4), 3.0), d).both(i)
    yield Situation(op, np.ones((4, 3)) * 1000 + normal(4, 3), d).both(i)
    yield Situation(op, normal(3, 1), d).both(i)
    yield Situation(op, normal(1, 3), d).both(i)
    yield Situation(op, normal(2, 2), d).both(i)
    for training in (True, False):
        yield Situation(op, normal(0, 4), d, training=training).both(i)
    yield Situation(op, normal(4), d).both(i)
    yield Situation(op, normal(5, 4) * 2.0**-16, d).both(i)
    for power in (10,) if d is np.float16 else (50, 100):
        yield Situation(op, normal(5, 4) * 2.0**power, d, eps=1e-5).both(i)
    yield Situation(op, normal(4, 4), d, gamma=np.zeros(4, d), g=np.full((4, 4), 1e-3).astype(d)).both(i)
    yield Situation(op, normal(4, 4), d, g=np.zeros((4, 4), d)).vjp(i)


def shapes(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """More axes, some of the same size."""
    for axes, channel_axis, shape in (
        ((-1,), 1, (3, 4, 5)),
        ((-2, -1), -1, (3, 4, 5)),
        ((-2, -1), 1, (2, 3, 3)),
        ((-1,), 2, (3, 3, 3)),
        ((-1,), -1, (3, 3, 3)),
        ((-1,), 1, (2, 2, 2, 2, 3)),
        ((-1,), 1, (4, 4)),
        ((-1,), 0, (3, 19)),  # groups of an odd length, past a vector's
    ):
        yield Situation(op, normal(*shape), d, axes=axes, channel_axis=channel_axis).both(i)


def statistics(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """Momentum 0 and 1, fresh statistics, and several steps."""
    if op == "layer_norm":
        return
    for momentum in (0.0, 1.0, 0.5):
        yield Situation(op, normal(5, 4), d, momentum=momentum).call(i)
    s = Situation(op, normal(5, 4), d, mean=np.zeros(4, d), variance=np.ones(4, d))
    for _ in range(3):
        yield (got := s.call(i))
        if not isinstance(got, tuple):
            return
        s.mean, s.variance = got[1], got[2]


def calls(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """Results read again after other calls, gradients after other calls, and many repetitions."""
    first, second = (Situation(op, normal(4, 5, seed=seed), d, seed=seed) for seed in (1, 2))
    held = i.call(*first.arrays, **first.settings), i.vjp(*first.arrays, first.g, **first.settings)
    second.both(i)
    yield [np.array(a) for part in held for a in (part if isinstance(part, tuple) else (part,))]
    first.call(i)
    second.call(i)
    yield first.vjp(i)
    no_beta = Situation(op, normal(4, 5), d, beta=None)
    yield no_beta.call(i)
    for _ in range(61):
        yield first.call(i)


def handed_in(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """The inputs as they are after the calls."""
    for changes in ({}, {"gamma": None}):
        s = Situation(op, normal(4, 5), d, **changes)
        s.both(i)
        yield [a for a in (*s.arrays, s.g) if a is not None]


def laid_out(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """Inputs and cotangents that are not contiguous."""
    values = normal(4, 3, 4).astype(d)

    def layouts(a: np.ndarray) -> Iterator[np.ndarray]:
        yield np.ascontiguousarray(a.T).T
        yield np.repeat(a, 2, axis=-1)[..., ::2]
        yield np.concatenate([np.zeros(3, a.dtype), a.ravel()])[3:].reshape(a.shape)
        yield np.broadcast_to(a[:1], a.shape)

    for view in layouts(values):
        s = Situation(op, values, d)
        s.x = view
        yield s.both(i)
        yield Situation(op, values, d, g=view).vjp(i)
    s = Situation(op, values, d)
    s.gamma, s.mean = (np.repeat(a, 2)[::2] for a in (s.gamma, s.mean))
    yield s.both(i)
    s.training = False
    yield s.both(i)


def non_finite(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """A NaN and an Inf in one group, and a NaN in each parameter, running statistic and cotangent."""
    for bad in (np.nan, np.inf):
        for training in (True, False):
            x = normal(4, 4)
            x[1, 2] = bad
            yield Situation(op, x, d, training=training).both(i)
    for name in ("gamma", "beta", "mean", "variance", "g"):
        for training in (True, False):
            s = Situation(op, normal(4, 4), d, training=training)
            getattr(s, name)[..., 2] = np.nan
            yield s.both(i)


def undefined(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """A group whose variance and eps are 0, and a negative running variance, beside others."""
    for training in (True, False):
        x = normal(4, 4)
        x[1], x[:, 1] = 1, 1
        variance = np.array([1, 0, 2, 3]).astype(d)
        yield Situation(op, x, d, training=training, eps=0.0, variance=variance).both(i)
    yield Situation(op, normal(4, 4), d, training=False, variance=np.array([1, -4, 2, 3]).astype(d)).both(i)


def mixed(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """16-bit data with float32 parameters, in training and inference."""
    for training in (True, False):
        yield Situation(op, normal(4, 40), d, parameters=np.float32, training=training).both(i)
        yield Situation(op, normal(40, 4), d, parameters=np.float32, training=training).both(i)


def powers(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """The same group at many scales, for what depends on exponents."""
    for k in range(-3, 4):
        yield Situation(op, normal(4, 5) * 2.0**k, d, eps=4.0**k / 64).both(i)


def bad_arguments(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """Calls that must be refused."""
    yield Situation(op, normal(4, 5), d, eps=-0.5).call(i)
    yield Situation(op, normal(4, 5), d, momentum=1.5).call(i)
    yield Situation(op, normal(4, 5), d, gamma=np.ones(1, d)).call(i)
    wrong = Situation(op, normal(4, 5), d)
    wrong.axes, wrong.channel_axis = (-3,), 3
    yield wrong.call(i)


def prepared(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """Other modes, and gradients of some of the inputs."""
    first, second = (Situation(op, normal(4, 5, seed=seed), d, eps=1.0) for seed in (1, 2))
    if i.prepare is None:
        yield first.both(i), second.both(i)
        for _ in range(3):
            yield second.both(i)
        return
    yield first.both(i), second.both(i)
    i.prepare(mode="training", wrt=("gamma", "beta"))
    yield second.both(i)
    i.prepare(mode="training", wrt=("x",))
    yield second.both(i)
    first.call(i)
    i.prepare(mode="inference", wrt=())
    yield second.both(i)


def nearly_the_same(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """Two calls whose x differs in its last value alone."""
    x = normal(6, 6)
    yield Situation(op, x, d).both(i)
    x[-1, -1] += 2
    yield Situation(op, x, d).both(i)


def memory_used_again(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """Two calls on the same array, overwritten in between."""
    s = Situation(op, normal(6, 6), d)
    yield s.both(i)
    s.x[...] = (normal(6, 6, seed=2) * 2).astype(d)
    yield s.both(i)


def large(i: Implementation, op: str, d: Any) -> Iterator[Any]:
    """Sizes at which blocks, grids and counters end."""
    for rows, columns in (
        (2, 70),
        (70, 2),
        (2, 300),
        (2, 1100),
        (2, 4100),
        (1100, 3),
        (2, 33000),
        (2, 66000),
        (66000, 2),
    ):
        x = normal(rows, columns) if op == "layer_norm" else normal(columns, rows)
        yield Situation(op, x, d).both(i)
    if op == "batch_norm":
        yield Situation(op, normal(2, 2100, 3), d, training=False).both(i)


PROBES: tuple[Probe, ...] = (
    plain,
    small_variance,
    special_groups,
    shapes,
    statistics,
    handed_in,
    laid_out,
    non_finite,
    undefined,
    mixed,
    powers,
    bad_arguments,
    prepared,
    calls,
    nearly_the_same,
    memory_used_again,
    large,
)


def same(a: Any, b: Any) -> bool:
    """Whether two observations agree in kind, shape, dtype and bits."""
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and (a is None or bool(a == b))


def first_difference(
    one: Callable[[], Implementation], other: Callable[[], Implementation], operator: str, dtype: str
) -> str | None:
    """The name of the first probe in which two implementations differ, None if there is none."""
    for probe in PROBES:
        left, right = (list(probe(build(), operator, DTYPES[dtype])) for build in (one, other))
        if not same(left, right):
            return probe.__name__
    return None
