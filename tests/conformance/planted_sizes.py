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
from normspec.conformance.judging.subject import Subject
from normspec.conformance.requests.implementation_targets import implementation_target
from normspec.spec.layout import Layout
from normspec.spec.operators import OPERATORS, Groups

Array = np.ndarray

#: The axes of x that make up an extent, where that depends on nothing else.
_AXES = {"features": (-1,), "samples": (0,)}


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
    #: It shows only at multiples of this.
    step: int = 1

    @property
    def counted(self) -> str:
        return self.extent.partition(",")[0]

    @property
    def of_channels(self) -> bool:
        """Whether groups are channels of a sample."""
        return OPERATORS[self.operator].groups is Groups.SAMPLE_CHANNELS

    def axes(self, x: Array, settings: dict[str, Any]) -> tuple[int, ...]:
        if self.counted in _AXES:
            return _AXES[self.counted]
        if "channel_axis" not in settings:  # groups
            return tuple(range(x.ndim - 1))
        channels = settings["channel_axis"] % x.ndim
        return tuple(set(range(1, x.ndim)) - {channels}) if self.counted == "positions" else (channels,)

    def places(self, x: Array, settings: dict[str, Any]) -> Array:
        """The number of each place along the axes of the extent; of a channel, that of its group, or within it."""
        axes = self.axes(x, settings)
        shape = [x.shape[axis] for axis in axes]
        numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        if self.of_channels and self.counted in ("groups", "channels of a group"):
            width = shape[0] // settings.get("groups", shape[0])
            return numbers // width if self.counted == "groups" else numbers % width
        return numbers

    def shows(self, x: Array, settings: dict[str, Any], parts: Sequence[Any] = ()) -> bool:
        """Whether a call is one that it shows in."""
        mode = self.extent.partition(", ")[2]
        if mode and settings["training"] != (mode == "training"):
            return False
        if self.counted == "branches":
            count = max((len(part) for part in parts if isinstance(part, (list, tuple))), default=0)
        else:
            count = int(self.places(x, settings).max(initial=-1)) + 1
        return count > self.low and (self.high is None or count <= self.high) and count % self.step == 0

    def kept(self, x: Array, settings: dict[str, Any]) -> Array:
        """Which elements of an array of x's shape come before the threshold in the extent; no branch is in x."""
        if self.counted == "branches":
            return np.ones(x.shape, bool)
        axes = self.axes(x, settings)
        line = self.places(x, settings) < self.low
        rest = [axis for axis in range(x.ndim) if axis not in {a % x.ndim for a in axes}]
        return np.broadcast_to(np.expand_dims(line, tuple(rest)) if rest else line, x.shape)


#: The axes over which means and variances are taken.
_NORMALISED_OVER = {
    ("layer_norm", "features"),
    ("rms_norm", "features"),
    ("batch_norm", "samples, training"),
    ("batch_norm", "positions, training"),
    ("group_norm", "channels of a group"),
    ("group_norm", "positions"),
    ("instance_norm", "positions"),
}

#: From which elements come before the threshold, and y.
Damage = Callable[[Array, Array], Array]

#: Possible damage to an array of x's shape.
SHAPED: dict[str, Damage] = {
    "tail unwritten": lambda kept, y: np.where(kept, y, 0).astype(y.dtype),
    "last value off": lambda kept, y: _with_last(y, y.reshape(-1)[-1] * np.float64(1.5)),
    "all off": lambda kept, y: (y.astype(np.float64) * 1.0625).astype(y.dtype),
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
    """y of a normalisation whose statistics ignore the values after the threshold."""
    given = dict(zip(OPERATORS[planted.operator].arguments, arguments, strict=False))
    x, gamma, beta = given["x"], given["gamma"], given.get("beta")
    layout = Layout.of(planted.operator, x.shape, settings)
    wide, kept = layout.rows(x.astype(np.float64)), layout.rows(planted.kept(x, settings))
    mean = wide.mean(1, keepdims=True, where=kept) * OPERATORS[planted.operator].centred
    variance = ((wide - mean) ** 2).mean(1, keepdims=True, where=kept)
    y = layout.back((wide - mean) / np.sqrt(variance + settings["eps"])) * layout.spread(gamma.astype(np.float64))
    return (y if beta is None else y + layout.spread(beta.astype(np.float64))).astype(x.dtype)


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
        y = (
            _without_tail(planted, arguments, settings)
            if lost
            else SHAPED[damage](planted.kept(arguments[0], settings), y)
        )
        return (y, *rest) if rest else y

    def vjp(*arguments: Any, **settings: Any) -> Any:
        found = sound.vjp(*arguments, **settings)
        if planted.damage in FORWARD or not shows(arguments, settings):
            return found
        dx, *parameters = found if isinstance(found, tuple) else (found,)
        if kind == "dx":
            dx = SHAPED[damage](planted.kept(arguments[0], settings), dx)
        elif damage == "all off":
            # By half: a sum of 131,074 float32 terms of both signs may err by a percent of them, which is much of it.
            parameters = [None if p is None else (p.astype(np.float64) * 1.5).astype(p.dtype) for p in parameters]
        else:  # as where the cotangent is not read
            *given, g = arguments
            lost = np.where(planted.kept(g, settings), g, 0).astype(g.dtype)
            _, *parameters = sound.vjp(*given, lost, **settings)
        return (dx, *parameters) if isinstance(found, tuple) else dx

    made = replace(sound, call=call, vjp=vjp)
    return implementation_target("planted", planted.operator, made)


def caught(planted: Planted, dtype: str, cases: Sequence[Case]) -> bool:
    """Whether CM-S1 on some of the cases finds it."""
    own = target(planted)
    subject = Subject(own, own.bindings[0], dtype)
    showing = (case for case in cases if planted.shows(case.x, dict(case.settings), list(case.parts.values())))
    return any(finding.violated and finding.judged for case in showing for finding in sizes(subject, case))


def damages(operator: str, extent: str, direction: str) -> Iterator[str]:
    """The kinds of damage to an operator's results in a direction."""
    for damage in FORWARD if direction == "forward" else BACKWARD:
        elementwise = operator in ("residual", "highway")
        branches = extent == "branches"
        if damage.startswith("parameters") and (elementwise or branches):
            continue  # there are no parameters, or their sums do not run over the extent
        if branches and "tail" in damage:
            continue
        if damage == STATISTICS and (operator, extent) not in _NORMALISED_OVER:
            continue
        yield damage
