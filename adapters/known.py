"""Known violations: which requirements a binding is known to violate, where, and how it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Union

import numpy as np

from ..spec.errors import WrongEntry, choices
from .dtypes import DTYPES

#: The ways a violation can show. The call raised, or returned where it must raise. It returned something that is not a
#: tensor, too many or too few tensors, or a tensor of the wrong dtype or shape. A gradient is missing. A number is NaN,
#: infinite, or finite and wrong.
FAILURES: tuple[str, ...] = (
    "raises", "accepts", "type", "count", "dtype", "shape", "missing", "nan", "infinite", "value",
)  # fmt: skip

#: The modes of a call. The setting ``training`` decides; a call of an operator without it is a training call.
MODES: tuple[str, ...] = ("training", "inference")

#: How the notes of CM-A1 begin, by the argument that has one element instead of several.
ONE_OF: Mapping[str, str] = {
    name: f"{name} has one element and would broadcast" for name in ("gamma", "beta", "logits")
}

#: The output of a wrong second derivative in x.
OF_X = ("second-order gradient of x",)
#: The outputs of wrong nested derivatives in x: forward over reverse, reverse over forward, forward over forward.
NESTED_OF_X = ("forward over reverse in x", "reverse over forward in x", "forward over forward of y")

#: Names of all dtypes, including bfloat16 where this interpreter lacks it.
_DTYPES: tuple[str, ...] = tuple(dict.fromkeys((*DTYPES, "bfloat16")))


@dataclass(frozen=True)
class Failure:
    """One failed comparison, as :attr:`KnownViolation.predicts` gets it."""

    #: The wrong output: "y", "dx", "new_running_var", ...
    output: str
    #: What provoked the failure, in the words of the report: "gamma strided".
    note: str
    #: The tensors of the call by name, and its keyword arguments.
    inputs: Mapping[str, np.ndarray | None]
    settings: Mapping[str, Any]
    #: The cotangent of y.
    g: np.ndarray | None = None
    #: The returned and the exact values, in float64 and in the output's shape; None if no numbers were compared.
    got: np.ndarray | None = None
    expected: np.ndarray | None = None
    #: How far a sound result may be from the exact one, under the declared conventions.
    envelope: np.ndarray | None = None
    #: The tangents of the inputs by name, if the derivative takes tangents.
    tangents: Mapping[str, np.ndarray | None] = field(default_factory=dict)
    #: The second tangents of a jvp of a jvp.
    tangents_again: Mapping[str, np.ndarray | None] = field(default_factory=dict)


#: Whether a failure is the predicted one: one answer for the whole output, or one for each element.
Predicted = Union[bool, "np.ndarray"]


@dataclass(frozen=True)
class KnownViolation:
    """
    One way in which a binding is known to violate one requirement.

    The entry covers the failures within all of its limits; an empty limit allows everything. A covered failure is
    reported as *deviates*; any other violation of the requirement remains a failure. An entry that covers nothing in a
    run that tested it is reported too: then it is too wide, or the fault has been fixed. Raises WrongEntry if a limit
    names something that does not exist.
    """

    #: The id of the requirement: "CM-V3".
    requirement: str
    #: What goes wrong and why, in a sentence.
    reason: str
    #: Where to read about it: the source, the documentation, the upstream report.
    links: tuple[str, ...] = ()
    #: How it shows: some of FAILURES.
    failures: tuple[str, ...] = ()
    #: The outputs or gradients it shows in: "y", "dx", "new_running_var", "tangent of y".
    outputs: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    #: Kinds of device: "cpu", "cuda".
    devices: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    #: How many dimensions x may have.
    ranks: tuple[int, ...] = ()
    #: What provokes it: the first words of the report's note, such as "gamma strided".
    notes: tuple[str, ...] = ()
    #: The two functions below, in words for the report.
    where: str = ""
    #: (inputs, settings) -> whether this call goes wrong. The inputs are arrays by name, or None.
    cases: Callable[[Mapping[str, Any], Mapping[str, Any]], bool] | None = None
    #: Failure -> whether the result is wrong in the predicted way; an array answers for each element of the output.
    predicts: Callable[[Failure], Predicted] | None = None
    #: False if it shows only by chance, such as a read of uninitialised memory: a run may not show it.
    always: bool = True

    def __post_init__(self) -> None:
        for one in fields(self):
            if one.name in _LIMITS:
                given = getattr(self, one.name)
                wanted = int if one.name == "ranks" else str
                several = isinstance(given, (tuple, list, set, frozenset))
                if not several or not all(isinstance(value, wanted) for value in given):
                    what = "whole numbers" if wanted is int else "texts"
                    raise WrongEntry(f"{self._label()}: {one.name} is a tuple of {what}, not {given!r}")
                object.__setattr__(self, one.name, tuple(given))
        for name, allowed in (("failures", FAILURES), ("dtypes", _DTYPES), ("modes", MODES)):
            for value in getattr(self, name):
                if value not in allowed:
                    raise WrongEntry(f"{self._label()}: {name} cannot hold {value!r}{choices(value, allowed)}")
        if not (isinstance(self.requirement, str) and self.requirement and isinstance(self.reason, str)):
            raise WrongEntry(f"{self._label()}: a requirement's id and a reason are texts")
        if not self.reason.strip():
            raise WrongEntry(f"{self._label()} has no reason: say what goes wrong, and why")

    def _label(self) -> str:
        return f"the known violation of {self.requirement}"

    @property
    def has_functions(self) -> bool:
        """Whether the entry has functions that also decide what it covers."""
        return self.cases is not None or self.predicts is not None

    def applies(self, *, dtype: str, device: str) -> bool:
        """Whether the entry is about this dtype on this device."""
        kind = device.partition(":")[0]
        return (not self.dtypes or dtype in self.dtypes) and (not self.devices or kind in self.devices)

    def within(
        self, shape: Sequence[int], settings: Mapping[str, Any], output: str, note: str, *, surely: bool = True
    ) -> bool:
        """
        Whether this call and this output lie within the limits.

        Without ``surely``, an empty output or note counts as any output or note.
        """
        return (
            (not self.modes or mode_of(settings) in self.modes)
            and (not self.ranks or len(shape) in self.ranks)
            and (not self.outputs or output in self.outputs or not (surely or output))
            and (not self.notes or note.startswith(self.notes) or not (surely or note))
        )

    def shows_in(self, inputs: Mapping[str, np.ndarray | None], settings: Mapping[str, Any]) -> bool:
        """Whether the call goes wrong, according to the entry's ``cases``."""
        return self.cases is None or bool(self.cases(inputs, settings))

    def covers(self, failure: Failure) -> Predicted:
        """
        Whether a failure within the limits is the predicted one; an array answers for each element.

        What ``predicts`` returns counts only if it is a truth value, or an array of them: None predicts nothing.
        """
        if not self.shows_in(failure.inputs, failure.settings):
            return False
        if self.predicts is None:
            return True
        predicted = np.asarray(self.predicts(failure))
        return predicted if predicted.dtype == bool else False

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

    def to_plain(self) -> dict[str, Any]:
        """The entry as plain values for the worker protocol."""
        found = {name: list(getattr(self, name)) for name in _LIMITS}
        return {
            "requirement": self.requirement, "reason": self.reason, **found,
            "where": self.where, "always": self.always, "asks": self.has_functions,
        }  # fmt: skip


@dataclass(frozen=True)
class RemoteKnownViolation(KnownViolation):
    """A known violation of a binding in a worker; the worker evaluates the entry's functions."""

    #: (inputs, settings, failure or None) -> the answer of the worker's entry about the call, or about the failure.
    ask: Callable[[Mapping[str, Any], Mapping[str, Any], Failure | None], Predicted] | None = field(default=None)

    @property
    def has_functions(self) -> bool:
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
    "count": "returns too many or too few values",
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
    """Entries without limits, from reasons by requirement id; a worker that knows no limits sends these."""
    return tuple(KnownViolation(requirement, reason) for requirement, reason in reasons.items())


def checked_entries(found: Iterable[Any], where: str) -> tuple[KnownViolation, ...]:
    """The entries that an author wrote there. Raises WrongEntry, which says where, if one is not a KnownViolation."""
    several = tuple(found)
    for one in several:
        if not isinstance(one, KnownViolation):
            raise WrongEntry(f"{where}: a known violation is a normspec.KnownViolation, not {type(one).__name__}")
    return several


# Violations that several bindings share --------------------------------------------------------------------


def beta_alone(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether beta is given and gamma is not."""
    return inputs["gamma"] is None and inputs["beta"] is not None


def broadcasts_parameters(reason: str, *links: str) -> KnownViolation:
    """The entry for a gamma or beta of one element that is broadcast."""
    notes = (ONE_OF["gamma"], ONE_OF["beta"])
    return KnownViolation("CM-A1", reason, links, failures=("accepts",), notes=notes)


def broadcasts_results(reason: str, *links: str) -> KnownViolation:
    """The entry for a part's result of another shape that is broadcast."""
    return KnownViolation("CM-C6", reason, links, failures=("accepts",))


def momentum_in_float32(requirement: str, reason: str, *links: str, outputs: tuple[str, ...] = ()) -> KnownViolation:
    """The entry for a momentum that is an attribute in float32, also where the statistics are float64."""
    return KnownViolation(
        requirement,
        reason,
        links,
        failures=("value",),
        outputs=outputs,
        dtypes=("float64",),
        modes=("training",),
        where="a momentum that no float32 number is",
        cases=_float32_momentum,
        predicts=_near_float32_momentum,
    )


def _float32_momentum(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether float32, in which frameworks store the attribute, changes the weight of the old statistic."""
    kept = 1.0 - settings["momentum"]
    return float(np.float32(kept)) != kept


def wrong_second_derivative(
    second_order: str, *nested: str, reason: str, links: tuple[str, ...], dtypes: tuple[str, ...] = ()
) -> tuple[KnownViolation, ...]:
    """
    Entries for a wrong second derivative in x: the second-order requirement, and the three about nested derivatives.

    The fault shows in the given dtypes. In the others the accuracy class hides it from the nested checks in most cases.
    """
    others = tuple(one for one in _DTYPES if dtypes and one not in dtypes)
    found = [KnownViolation(second_order, reason, links, ("value",), OF_X, dtypes)]
    for requirement, output in zip(nested, NESTED_OF_X):
        found.append(KnownViolation(requirement, reason, links, ("value",), (output,), dtypes))
        if others:
            found.append(KnownViolation(requirement, reason, links, ("value",), (output,), others, always=False))
    return tuple(found)


def _near_float32_momentum(failure: Failure) -> Predicted:
    """Whether rounding the weight to float32 can explain the whole error of a running statistic."""
    assert failure.got is not None and failure.expected is not None
    x, axis = np.asarray(failure.inputs["x"], np.float64), failure.settings["channel_axis"]
    rows = np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
    old = np.asarray(failure.inputs[failure.output[len("new_") :]], np.float64)
    batch = rows.mean(axis=1) if failure.output == "new_running_mean" else rows.var(axis=1)
    # Half a unit in the last place of a float32 below 1, twice: the statistic may have been updated once before.
    return np.abs(failure.got - failure.expected) <= 2.0**-24 * (np.abs(old) + np.abs(batch) + np.abs(failure.expected))
