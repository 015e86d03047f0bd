"""Faults that begin where one extent passes a threshold: a sound function, damaged there in one way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import attrs
import numpy as np

from normspec.adapters.numpy.operators import IMPLEMENTATIONS as BASES
from normspec.adapters.target import Target
from normspec.conformance.cases.case import Case
from normspec.conformance.checks.sizes import sizes
from normspec.conformance.specimens import target_of
from normspec.conformance.subject import Subject

Array = np.ndarray

#: Where each extent lies: the axes of x that it is made of, channels second.
_AXES = {"features": (-1,), "channels": (1,), "samples": (0,)}


@attrs.frozen
class Planted:
    """One of them."""

    operator: str
    #: As in cases/sizes.py: "features", "samples, inference".
    extent: str
    #: It shows where the extent is larger than this, and, for a band, no larger than that.
    low: int
    damage: str
    high: int | None = None

    @property
    def counted(self) -> str:
        return self.extent.partition(",")[0]

    def axes(self, x: Array) -> tuple[int, ...]:
        if self.counted == "groups":
            return tuple(range(x.ndim - 1))
        return tuple(range(2, x.ndim)) if self.counted == "positions" else _AXES[self.counted]

    def shows(self, x: Array, settings: dict[str, Any], parts: Sequence[Any] = ()) -> bool:
        """Whether a call is one that it shows in."""
        mode = self.extent.partition(", ")[2]
        if mode and settings["training"] != (mode == "training"):
            return False
        if self.counted == "branches":
            count = max((len(part) for part in parts if isinstance(part, (list, tuple))), default=0)
        else:
            count = int(np.prod([x.shape[axis] for axis in self.axes(x)], dtype=int))
        return count > self.low and (self.high is None or count <= self.high)

    def kept(self, x: Array) -> Array:
        """Which elements of an array of x's shape come before the threshold in the extent."""
        axes = self.axes(x)
        shape = [x.shape[axis] for axis in axes]
        line = (np.arange(np.prod(shape, dtype=int)) < self.low).reshape(shape)
        rest = [axis for axis in range(x.ndim) if axis not in {a % x.ndim for a in axes}]
        return np.broadcast_to(np.expand_dims(line, tuple(rest)) if rest else line, x.shape)


#: What means and variances are taken over.
_NORMALISED_OVER = {
    ("layer_norm", "features"),
    ("batch_norm", "samples, training"),
    ("batch_norm", "positions, training"),
}

Damage = Callable[[Planted, Array, Array], Array]

#: What may befall an array of x's shape.
SHAPED: dict[str, Damage] = {
    "tail unwritten": lambda planted, x, y: np.where(planted.kept(x), y, 0).astype(y.dtype),
    "last value off": lambda planted, x, y: _with_last(y, y.reshape(-1)[-1] * np.float64(1.5)),
    "all off": lambda planted, x, y: (y.astype(np.float64) * 1.0625).astype(y.dtype),
}
#: A block that does not enter the mean and the variance: where values are normalised over the extent.
STATISTICS = "statistics: tail lost"
FORWARD = (*SHAPED, STATISTICS)
BACKWARD = (*(f"dx: {damage}" for damage in SHAPED), "parameters: tail lost", "parameters: all off")


def _with_last(y: Array, value: Any) -> Array:
    y = y.copy()
    y.reshape(-1)[-1] = value
    return y


def _without_tail(planted: Planted, arguments: tuple[Any, ...], settings: dict[str, Any]) -> Array:
    """y of a normalisation whose statistics are those of the values before the threshold."""
    x, gamma, beta, *_ = arguments
    features = planted.operator == "layer_norm"
    axes = (-1,) if features else tuple(axis for axis in range(x.ndim) if axis != 1)
    wide, kept = x.astype(np.float64), planted.kept(x)
    mean = wide.mean(axes, keepdims=True, where=kept)
    variance = ((wide - mean) ** 2).mean(axes, keepdims=True, where=kept)
    shape = (-1,) if features else (-1, *(1,) * (x.ndim - 2))
    y = (wide - mean) / np.sqrt(variance + settings["eps"])
    return (y * gamma.astype(np.float64).reshape(shape) + beta.astype(np.float64).reshape(shape)).astype(x.dtype)


def target(planted: Planted) -> Target:
    """The function with the fault."""
    sound = BASES[planted.operator]().implementation()
    kind, _, damage = planted.damage.rpartition(": ")

    def shows(arguments: tuple[Any, ...], settings: dict[str, Any]) -> bool:
        return planted.shows(arguments[0], settings, arguments)

    def call(*arguments: Any, **settings: Any) -> Any:
        found = sound.call(*arguments, **settings)
        if planted.damage not in FORWARD or not shows(arguments, settings):
            return found
        y, *rest = found if isinstance(found, tuple) else (found,)
        lost = planted.damage == STATISTICS
        y = _without_tail(planted, arguments, settings) if lost else SHAPED[damage](planted, arguments[0], y)
        return (y, *rest) if rest else y

    def vjp(*arguments: Any, **settings: Any) -> Any:
        found = sound.vjp(*arguments, **settings)
        if planted.damage in FORWARD or not shows(arguments, settings):
            return found
        dx, *parameters = found if isinstance(found, tuple) else (found,)
        if kind == "dx":
            dx = SHAPED[damage](planted, arguments[0], dx)
        elif damage == "all off":
            # By half: a sum of 131,074 float32 terms of both signs may err by a percent of them, which is much of it.
            parameters = [None if p is None else (p.astype(np.float64) * 1.5).astype(p.dtype) for p in parameters]
        else:  # as where the cotangent is not read
            *given, g = arguments
            lost = np.where(planted.kept(g), g, 0).astype(g.dtype)
            _, *parameters = sound.vjp(*given, lost, **settings)
        return (dx, *parameters) if isinstance(found, tuple) else dx

    made = replace(sound, call=call, vjp=vjp)
    return target_of("planted", planted.operator, made)


def caught(planted: Planted, dtype: str, cases: Sequence[Case]) -> bool:
    """Whether CM-S1 on some of the cases finds it."""
    own = target(planted)
    subject = Subject(own, own.bindings[0], dtype)
    showing = (case for case in cases if planted.shows(case.x, dict(case.settings), list(case.parts.values())))
    return any(finding.violated and finding.judged for case in showing for finding in sizes(subject, case))


def damages(operator: str, extent: str, direction: str) -> Iterator[str]:
    """What may befall the results of an operator in a direction."""
    for damage in FORWARD if direction == "forward" else BACKWARD:
        elementwise = operator in ("residual", "highway")
        branches = extent == "branches"
        if damage.startswith("parameters") and (elementwise or branches):
            continue  # there are none, or none that the extent is summed over
        if branches and "tail" in damage:
            continue
        if damage == STATISTICS and (operator, extent) not in _NORMALISED_OVER:
            continue
        yield damage
