"""A user's declarations about a layer, or a function not called canonically: --parameters, --layout and --fixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Callable

from ..spec.errors import WrongDeclaration, choices
from ..spec.operators import OPERATORS, Groups
from .fixed import FixedSettings

#: Where the target expects the channels (features) of x: in the last axis, or in axis 1.
LAYOUTS: tuple[str, ...] = ("channels-last", "channels-first")

#: The arguments whose name in the target can be declared, or whose absence.
ARGUMENTS: tuple[str, ...] = ("gamma", "beta", "running_mean", "running_var")


@dataclass(frozen=True)
class Declarations:
    """The user's declarations; nothing by default."""

    #: The target's own name for each parameter, by canonical name: {"gamma": "g"}.
    parameters: Mapping[str, str] = field(default_factory=dict)
    #: One of LAYOUTS; empty for the usual layout of its framework.
    layout: str = ""
    #: The settings that the target fixes, by name, as text: {"eps": "1e-6", "beta": "none"}.
    fixed: Mapping[str, str] = field(default_factory=dict)
    #: Whether the target is a model whose layers are to be checked.
    layers: bool = False

    def __post_init__(self) -> None:
        for name in self.parameters:
            if name not in ARGUMENTS:
                raise WrongDeclaration(f"--parameters {name}={self.parameters[name]}: {_unknown(name, ARGUMENTS)}")
        if self.layout and self.layout not in LAYOUTS:
            raise WrongDeclaration(f"--layout {self.layout}: no such layout{choices(self.layout, LAYOUTS)}")
        for name, text in self.fixed.items():
            if name not in _READ:
                raise WrongDeclaration(f"--fixed {name}={text}: {_unknown(name, _READ)}")
            try:
                _READ[name](text)
            except (ValueError, KeyError):
                raise WrongDeclaration(f"--fixed {name}={text}: give {_FORMS[name]}") from None

    def __bool__(self) -> bool:
        return bool(self.parameters or self.layout or self.fixed or self.layers)

    def value(self, name: str) -> Any:
        """The declared value of a setting; None if there is none."""
        return _READ[name](self.fixed[name]) if name in self.fixed else None

    @property
    def channel_axis(self) -> int | None:
        """The axis of the channels in the declared layout; None if none is declared."""
        return {"channels-first": 1, "channels-last": -1}.get(self.layout)

    def affine(self, word: str) -> frozenset[str]:
        """Which of gamma and beta are declared as ``word``: ``none``, or always ``given``."""
        return frozenset(name for name in ("gamma", "beta") if self.fixed.get(name, "").lower() == word)

    def about(self, operator: str, label: str) -> Declarations:
        """
        What is declared about settings and sizes that the operator has.

        Raises WrongDeclaration where they contradict each other.
        """
        found = replace(self, fixed={name: text for name, text in self.fixed.items() if has(operator, name)})
        found._ensure_consistent(operator, label)
        return found

    def _ensure_consistent(self, operator: str, label: str) -> None:
        channels, groups, axes, shape, rank = (
            self.value(name) for name in ("channels", "groups", "axes", "shape", "rank")
        )
        if channels and groups and channels % groups:
            raise WrongDeclaration(f"--fixed channels={channels},groups={groups}: {groups} does not divide {channels}")
        if axes and shape and axes != len(shape):
            raise WrongDeclaration(
                f"--fixed axes={self.fixed['axes']},shape={self.fixed['shape']}: this shape has {len(shape)} axes"
            )
        least = 2 if OPERATORS[operator].has_channels else len(shape) if shape else axes or 1
        if rank and rank < least:
            raise WrongDeclaration(f"--fixed rank={rank}: x of {label} has {least} axes at least")
        if OPERATORS[operator].groups is Groups.SAMPLE_CHANNELS and self.value("channel_axis") == 0:
            raise WrongDeclaration(f"--fixed channel_axis=0: axis 0 of {label} has the samples")

    def settings(self) -> FixedSettings:
        """The declared settings and sizes."""
        names = ("eps", "momentum", "training", "axes", "channels", "groups", "channel_axis")
        found = {name: self.value(name) for name in names if name in self.fixed}
        shape = self.value("shape") or ()
        if shape:
            found["axes"] = len(shape)
        return FixedSettings(**found, shape=shape, ranks=(self.value("rank"),) if "rank" in self.fixed else ())

    def to_plain(self) -> dict[str, Any]:
        """The declarations as plain values, which `from_plain` reads back."""
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Declarations:
        """Declarations from the values of `to_plain`. Raises WrongDeclaration."""
        return cls(
            dict(plain.get("parameters", {})),
            plain.get("layout", ""),
            dict(plain.get("fixed", {})),
            bool(plain.get("layers", False)),
        )


def has(operator: str, name: str) -> bool:
    """Whether an operator has a setting, size or parameter that --fixed names."""
    owner = {"shape": "axes", "channels": "channel_axis"}.get(name, name)
    return name == "rank" or owner in (*OPERATORS[operator].settings, *OPERATORS[operator].arguments)


def pairs(option: str, texts: Any) -> dict[str, str]:
    """Read KEY=VALUE,KEY=VALUE of an option that may be repeated, as a dict. Raises WrongDeclaration."""
    found: dict[str, str] = {}
    for text in (one.strip() for several in texts for one in several.split(",")):
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise WrongDeclaration(f"{option} {text or '(nothing)'}: write NAME=VALUE, several divided by commas")
        if found.get(name, value) != value:
            raise WrongDeclaration(f"{option} gives {name} twice, {found[name]} and {value}: keep one")
        found[name] = value
    return found


def _unknown(name: str, known: Any) -> str:
    return f"no such name{choices(name, known)}"


def _shape(text: str) -> tuple[int, ...]:
    sizes = tuple(int(part) for part in text.lower().split("x"))
    if min(sizes) < 1:
        raise ValueError(text)
    return sizes


def _number(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(text)
    return value


def _axes(text: str) -> int:
    """The number of trailing axes: -1 stands for the last axis, -2 for the last two. 1 would be any axis but these."""
    return _count(str(-int(text)))


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def _affine(text: str) -> str:
    return {"none": "none", "given": "given"}[text.lower()]


def _flag(text: str) -> bool:
    return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]


#: The function that reads each setting's text.
_READ: Mapping[str, Callable[[str], Any]] = {
    "eps": _number, "momentum": _number, "training": _flag, "axes": _axes, "shape": _shape, "channels": _count,
    "groups": _count, "channel_axis": int, "rank": _count, "gamma": _affine, "beta": _affine,
}  # fmt: skip

#: The form of each setting's value, for messages.
_FORMS: Mapping[str, str] = {
    "eps": "a number such as 1e-6", "momentum": "a number such as 0.1", "training": "yes or no",
    "axes": "-1 for the last axis, -2 for the last two; for features in axis 1, add --layout channels-first",
    "shape": "extents such as 768 or 4x5",
    "channels": "a number such as 64", "groups": "a number such as 8", "channel_axis": "an axis such as 1 or -1",
    "rank": "a number of dimensions such as 4", "gamma": "none or given", "beta": "none or given",
}  # fmt: skip

#: Nothing is declared.
NOTHING_DECLARED = Declarations()
