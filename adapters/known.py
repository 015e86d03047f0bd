"""Known violations: what a binding is known to get wrong, where, and how it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Union

import numpy as np

from ..spec.errors import WrongEntry, choices
from .dtypes import DTYPES

#: The ways in which a requirement can be seen to be violated. The call raised, or returned where it must raise; it
#: returned what is no tensor, or one of another dtype or shape; a gradient is missing; a number is NaN, infinite, or
#: another finite one than it must be.
FAILURES: tuple[str, ...] = ("raises", "accepts", "type", "dtype", "shape", "missing", "nan", "infinite", "value")

#: The modes of a call: by the setting ``training`` where an operator has it, and training otherwise.
MODES: tuple[str, ...] = ("training", "inference")

#: How the notes of CM-A1 begin, by the argument that has one element in the place of several.
ONE_OF: Mapping[str, str] = {
    name: f"{name} has one element and would broadcast" for name in ("gamma", "beta", "logits")
}

#: The output of a wrong second derivative in x.
OF_X = ("second-order gradient of x",)
#: The outputs of wrong nested derivatives in x: forward over reverse, reverse over forward, forward over forward.
NESTED_OF_X = ("forward over reverse in x", "reverse over forward in x", "forward over forward of y")

#: Names of dtypes, whether or not this interpreter holds them all.
_DTYPES: tuple[str, ...] = tuple(dict.fromkeys((*DTYPES, "bfloat16")))


@dataclass(frozen=True)
class Failure:
    """One comparison that failed, as :attr:`KnownViolation.predicts` is handed it."""

    #: What is wrong: "y", "dx", "new_running_var", ...
    output: str
    #: What was done to provoke it, in the words of the report: "gamma strided".
    note: str
    #: The tensors of the call by name, and its keyword arguments.
    inputs: Mapping[str, np.ndarray | None]
    settings: Mapping[str, Any]
    #: The cotangent of y.
    g: np.ndarray | None = None
    #: What was returned and what is exact, in float64 and in the output's shape; None where no numbers were compared.
    got: np.ndarray | None = None
    expected: np.ndarray | None = None
    #: How far a sound result may be from that, under the conventions that are declared.
    envelope: np.ndarray | None = None
    #: The tangents of the inputs by name, of a derivative that takes them; the second ones of a jvp of the jvp.
    tangents: Mapping[str, np.ndarray | None] = field(default_factory=dict)
    tangents_again: Mapping[str, np.ndarray | None] = field(default_factory=dict)


#: Whether a failure is the predicted one: for all of the output, or for each of its elements.
Predicted = Union[bool, "np.ndarray"]


@dataclass(frozen=True)
class KnownViolation:
    """
    One way in which a binding is known to violate one requirement.

    The entry covers what lies within all of its limits; a limit that is left empty is none. What it covers is reported
    as *deviates*, and whatever else violates the requirement is a failure as ever. An entry that covers nothing in a
    run that put it to the test is reported as well: then it is too wide, or the fault is mended. Raises WrongEntry
    where a limit names what does not exist.
    """

    #: The id of the requirement: "CM-V3".
    requirement: str
    #: What goes wrong and why, in a sentence.
    reason: str
    #: Where that can be read: the source, the documentation, the report upstream.
    links: tuple[str, ...] = ()
    #: How it shows, of FAILURES.
    failures: tuple[str, ...] = ()
    #: In which outputs or gradients: "y", "dx", "new_running_var", "tangent of y".
    outputs: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    #: Kinds of device: "cpu", "cuda".
    devices: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    #: Numbers of x's dimensions.
    ranks: tuple[int, ...] = ()
    #: What was done to provoke it: words with which the report's note begins, such as "gamma strided".
    notes: tuple[str, ...] = ()
    #: In words, what the two functions below say; it stands in the report.
    where: str = ""
    #: (inputs, settings) -> whether the call is one that goes wrong. The inputs are arrays by name, or None.
    cases: Callable[[Mapping[str, Any], Mapping[str, Any]], bool] | None = None
    #: Failure -> whether the result is wrong in the predicted way; an array says so for each element of the output.
    predicts: Callable[[Failure], Predicted] | None = None
    #: False for what shows by chance, such as a read of memory that was never written: it may stay away.
    always: bool = True

    def __post_init__(self) -> None:
        for one in fields(self):
            if one.name in _LIMITS:
                given = getattr(self, one.name)
                wanted = int if one.name == "ranks" else str
                if isinstance(given, str) or not all(isinstance(value, wanted) for value in given):
                    raise WrongEntry(f"{self._label()}: {one.name} is a tuple, not {given!r}")
                object.__setattr__(self, one.name, tuple(given))
        for name, allowed in (("failures", FAILURES), ("dtypes", _DTYPES), ("modes", MODES)):
            for value in getattr(self, name):
                if value not in allowed:
                    raise WrongEntry(f"{self._label()}: {name} cannot hold {value!r}{choices(value, allowed)}")
        if not (isinstance(self.requirement, str) and self.requirement and isinstance(self.reason, str)):
            raise WrongEntry(f"{self._label()}: a requirement's id and a reason are texts")

    def _label(self) -> str:
        return f"the known violation of {self.requirement}"

    @property
    def asks(self) -> bool:
        """Whether a function of the entry has to be asked as well."""
        return self.cases is not None or self.predicts is not None

    def applies(self, *, dtype: str, device: str) -> bool:
        """Whether it is about this dtype on this device."""
        kind = device.partition(":")[0]
        return (not self.dtypes or dtype in self.dtypes) and (not self.devices or kind in self.devices)

    def within(
        self, shape: Sequence[int], settings: Mapping[str, Any], output: str, note: str, *, surely: bool = True
    ) -> bool:
        """Whether such a call and such an output lie within the limits; perhaps, where an empty text may be any."""
        return (
            (not self.modes or mode_of(settings) in self.modes)
            and (not self.ranks or len(shape) in self.ranks)
            and (not self.outputs or output in self.outputs or not (surely or output))
            and (not self.notes or note.startswith(self.notes) or not (surely or note))
        )

    def shows_in(self, inputs: Mapping[str, np.ndarray | None], settings: Mapping[str, Any]) -> bool:
        """Whether the call is one that goes wrong, as far as the entry says."""
        return self.cases is None or bool(self.cases(inputs, settings))

    def covers(self, failure: Failure) -> Predicted:
        """Whether a failure within the limits is the predicted one, or which elements of it are."""
        if not self.shows_in(failure.inputs, failure.settings):
            return False
        return True if self.predicts is None else self.predicts(failure)

    def scope(self) -> str:
        """The limits in words: "float32, float64; inference; dx, gamma strided"."""
        parts = (
            ", ".join(self.dtypes),
            ", ".join(self.devices),
            ", ".join(self.modes),
            f"rank {', '.join(map(str, self.ranks))}" if self.ranks else "",
            ", ".join(self.notes),
            ", ".join(self.outputs),
            " or ".join(_WORDS[failure] for failure in self.failures),
            self.where,
        )
        return "; ".join(part for part in parts if part)

    def told(self) -> dict[str, Any]:
        """The entry in the words of the worker protocol."""
        found = {name: list(getattr(self, name)) for name in _LIMITS}
        return {
            "requirement": self.requirement, "reason": self.reason, **found,
            "where": self.where, "always": self.always, "asks": self.asks,
        }  # fmt: skip


@dataclass(frozen=True)
class AskedViolation(KnownViolation):
    """A known violation of a binding in a worker, which is asked for what the entry's functions say."""

    #: (inputs, settings, failure or None) -> what the entry in the worker says of the call, or of the failure.
    ask: Callable[[Mapping[str, Any], Mapping[str, Any], Failure | None], Predicted] | None = field(default=None)

    @property
    def asks(self) -> bool:
        return self.ask is not None

    def shows_in(self, inputs: Mapping[str, np.ndarray | None], settings: Mapping[str, Any]) -> bool:
        return self.ask is None or bool(np.all(self.ask(inputs, settings, None)))

    def covers(self, failure: Failure) -> Predicted:
        return True if self.ask is None else self.ask(failure.inputs, failure.settings, failure)


#: The limits that are lists.
_LIMITS = ("links", "failures", "outputs", "dtypes", "devices", "modes", "ranks", "notes")

_WORDS: Mapping[str, str] = {
    "raises": "raises",
    "accepts": "returns where it must raise",
    "type": "returns no tensor",
    "dtype": "has another dtype",
    "shape": "has another shape",
    "missing": "is missing",
    "nan": "is NaN",
    "infinite": "is infinite",
    "value": "is a wrong number",
}


def mode_of(settings: Mapping[str, Any]) -> str:
    """The mode of a call with these settings."""
    return "training" if settings.get("training", True) else "inference"


def without_limits(reasons: Mapping[str, str]) -> tuple[KnownViolation, ...]:
    """Entries that cover all of a requirement: the reasons by id, as workers that know no limits give them."""
    return tuple(KnownViolation(requirement, reason) for requirement, reason in reasons.items())


def entries(found: Iterable[Any]) -> tuple[KnownViolation, ...]:
    """A list of entries, as a function's author gives them. Raises WrongEntry where one is none."""
    several = tuple(found)
    for one in several:
        if not isinstance(one, KnownViolation):
            raise WrongEntry(f"a known violation is a normspec.KnownViolation, not {type(one).__name__}")
    return several


# What several bindings get wrong alike ---------------------------------------------------------------------


def float32_momentum(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether the weight of the old statistic is another number in float32, as frameworks hold an attribute."""
    kept = 1.0 - settings["momentum"]
    return float(np.float32(kept)) != kept


def wrong_second_derivative(
    second_order: str, *nested: str, reason: str, links: tuple[str, ...], dtypes: tuple[str, ...] = ()
) -> tuple[KnownViolation, ...]:
    """
    What a wrong second derivative in x violates: the requirement about second order, and the three about nesting.

    In the dtypes that are given it shows; in the others of nested ones the accuracy class hides it in most cases.
    """
    others = tuple(one for one in _DTYPES if dtypes and one not in dtypes)
    found = [KnownViolation(second_order, reason, links, ("value",), OF_X, dtypes)]
    for requirement, output in zip(nested, NESTED_OF_X):
        found.append(KnownViolation(requirement, reason, links, ("value",), (output,), dtypes))
        if others:
            found.append(KnownViolation(requirement, reason, links, ("value",), (output,), others, always=False))
    return tuple(found)


def near_float32_momentum(failure: Failure) -> Predicted:
    """Whether a running statistic is off by no more than a weight rounded to float32 makes it."""
    assert failure.got is not None and failure.expected is not None
    x, axis = np.asarray(failure.inputs["x"], np.float64), failure.settings["channel_axis"]
    rows = np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
    old = np.asarray(failure.inputs[failure.output[len("new_") :]], np.float64)
    batch = rows.mean(axis=1) if failure.output == "new_running_mean" else rows.var(axis=1)
    # Half a unit of the last place of a float32 below 1, twice: the statistic may have been moved before.
    return np.abs(failure.got - failure.expected) <= 2.0**-24 * (np.abs(old) + np.abs(batch) + np.abs(failure.expected))
