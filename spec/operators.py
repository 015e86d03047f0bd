"""The operators, one record each: how it is called, what it returns and how its values form groups.

The page of an operator is spec/<name>.md; the formula of a composed operator is in reference/<name>.py.
A record from elsewhere (`enter`) brings both with it.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


class Groups(enum.Enum):
    """The values that an operator normalises together, or could."""

    #: Values that differ only in the trailing axes that the setting ``axes`` names.
    TRAILING = "trailing axes"
    #: Values of one channel.
    CHANNEL = "channel"
    #: Values of consecutive channels of one sample; samples lie along axis 0.
    SAMPLE_CHANNELS = "channels of a sample"
    #: Values that differ only in the last axis.
    LAST = "last axis"


@dataclass(frozen=True)
class Operator:
    """What code and text share about one operator; its formulas are on the page of its name."""

    name: str
    #: The prefix of its requirements' ids.
    prefix: str
    #: The positional arguments of the canonical call: tensors, and parts under the names of their roles.
    arguments: tuple[str, ...]
    groups: Groups
    #: The keyword arguments that are always given.
    settings: tuple[str, ...] = ()
    #: The roles of its parts, in call order.
    roles: tuple[str, ...] = ()
    #: The results; one is returned bare, several as a tuple.
    outputs: tuple[str, ...] = ("y",)
    #: The arguments that have a gradient, in the order in which a written-out vjp returns these.
    differentiable: tuple[str, ...] = ("x", "gamma", "beta")
    #: Whether it subtracts the mean before it divides.
    centred: bool = True
    #: For a block: whether it normalises its sublayer's input, or the sum with the sublayer's result.
    normalises_handed: bool = False
    normalises_sum: bool = False
    #: For an operator from elsewhere: the file that enters it, which other processes load too; the text of its page;
    #: and y as a function of numbers that carry their error bounds (reference/bounded.py).
    file: str = ""
    page: str = ""
    formula: Callable[..., Any] | None = None

    @property
    def optional(self) -> tuple[str, ...]:
        """The roles whose parts are keyword arguments with the default None; a function may lack them."""
        return tuple(role for role in self.roles if role not in self.arguments)

    @property
    def signature(self) -> str:
        """The canonical call, as shown to the author of a function that cannot be called in this way."""
        keywords = (*self.settings, *(f"{role}=None" for role in self.optional))
        return f"{self.name}({', '.join((*self.arguments, *(('*', *keywords) if keywords else ())))})"

    @property
    def parameters(self) -> tuple[str, ...]:
        """The tensor arguments other than x."""
        return tuple(name for name in self.arguments if name != "x" and name not in self.roles)

    @property
    def has_channels(self) -> bool:
        """Whether a call names an axis of channels, each with its own value of gamma."""
        return "channel_axis" in self.settings

    @property
    def channels_alone(self) -> bool:
        """Whether each group has values of one channel only; groups of one value are then special (BN-E1, IN-E1)."""
        return self.has_channels and "groups" not in self.settings

    @property
    def composed(self) -> bool:
        """Whether it takes parts."""
        return bool(self.roles)

    @property
    def has_gates(self) -> bool:
        """Whether logits from a part decide how much of each path is used."""
        return "gate" in self.roles

    @property
    def has_branches(self) -> bool:
        """Whether it takes a list of parts."""
        return "branches" in self.roles

    @property
    def second_order_results(self) -> tuple[str, ...]:
        """The results of a written-out vjp_vjp; no gradient depends on a beta that is added last."""
        kept = self.differentiable if self.composed else tuple(n for n in self.differentiable if n != "beta")
        return (*kept, "g")

    @property
    def normalises(self) -> bool:
        """Whether it divides by the root of a variance or of a mean square, plus eps."""
        return "eps" in self.settings

    @property
    def has_gain(self) -> bool:
        """Whether it multiplies by a gain."""
        return "gamma" in self.arguments

    @property
    def has_modes(self) -> bool:
        """Whether it computes one thing in training and another in inference."""
        return "training" in self.settings

    @property
    def statistics(self) -> tuple[str, ...]:
        """The running statistics that it takes, and returns updated."""
        return tuple(name for name in self.arguments if name.startswith("running_"))


#: What frameworks' names of layers, and other spellings, have in addition to an operator's: LayerNormalization,
#: BatchNorm1d, "layer norm", pre-norm.
_OF_A_LAYER = re.compile(r"ali[sz]ation|[\s_-]?\d*d$|[\s_-]")


def operator_spelt(word: str) -> str | None:
    """The operator that a word means in another spelling, such as RMSNorm, "layer norm" or BN; None if it is none."""
    bare = _OF_A_LAYER.sub("", word.strip().lower())
    spelt = (name for name, one in OPERATORS.items() if bare == name.replace("_", "") or word.strip() == one.prefix)
    return next(spelt, None)


_NORM = ("x", "gamma", "beta")
_BLOCK = ("x", "sublayer", "gamma", "beta")

_records: dict[str, Operator] = {
    one.name: one
    for one in (
        Operator("layer_norm", "LN", _NORM, Groups.TRAILING, settings=("eps", "axes")),
        Operator(
            "batch_norm",
            "BN",
            (*_NORM, "running_mean", "running_var"),
            Groups.CHANNEL,
            settings=("eps", "momentum", "training", "channel_axis"),
            outputs=("y", "new_running_mean", "new_running_var"),
        ),
        Operator(
            "rms_norm",
            "RM",
            ("x", "gamma"),
            Groups.TRAILING,
            settings=("eps", "axes"),
            differentiable=("x", "gamma"),
            centred=False,
        ),
        Operator("group_norm", "GN", _NORM, Groups.SAMPLE_CHANNELS, settings=("eps", "groups", "channel_axis")),
        Operator("instance_norm", "IN", _NORM, Groups.SAMPLE_CHANNELS, settings=("eps", "channel_axis")),
        Operator(
            "residual",
            "RS",
            ("x", "branch"),
            Groups.LAST,
            roles=("branch", "shortcut", "activation"),
            differentiable=("x",),
        ),
        Operator("pre_norm", "PR", _BLOCK, Groups.LAST, settings=("eps",), roles=("sublayer",), normalises_handed=True),
        Operator("post_norm", "PO", _BLOCK, Groups.LAST, settings=("eps",), roles=("sublayer",), normalises_sum=True),
        Operator(
            "highway",
            "HW",
            ("x", "transform", "gate"),
            Groups.LAST,
            roles=("transform", "gate", "carry"),
            differentiable=("x",),
        ),
        Operator(
            "mhc",
            "MH",
            ("x", "branches", "logits"),
            Groups.LAST,
            roles=("branches", "fuse"),
            differentiable=("x", "logits"),
        ),
    )
}

#: Every operator by its name, in the order of the pages.
OPERATORS: Mapping[str, Operator] = MappingProxyType(_records)

#: The names of the operators that take parts.
COMPOSED: tuple[str, ...] = tuple(name for name, one in OPERATORS.items() if one.composed)


def enter(record: Operator) -> None:
    """
    Enter an operator from elsewhere; from then on it is like any other.

    The same file enters its checks, cases, faults and sound variants. Raises ValueError if another operator has its
    name or the prefix of its ids.
    """
    for other in OPERATORS.values():
        again = (other.name, other.file) == (record.name, record.file)  # its file was loaded twice
        if not again and (other.name == record.name or other.prefix == record.prefix):
            raise ValueError(f"{record.name} ({record.prefix}) is taken: there is {other.name} ({other.prefix})")
    _records[record.name] = record


def files_of(operators: Iterable[str]) -> tuple[str, ...]:
    """The outside files that enter some of these operators."""
    return tuple(dict.fromkeys(OPERATORS[name].file for name in operators if OPERATORS[name].file))
