"""The checks by requirement: how a check is registered, and which cases it runs on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from types import CodeType
from typing import Literal

import attrs

from ...reference.formats import ALL_DTYPES
from ...spec.identifiers import COMMON, prefix_of
from ...spec.operators import OPERATORS, Groups, Operator
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject

Body = Callable[[Subject, Case], Iterable[Finding]]
When = Callable[[Case], bool]

#: What it means to a check that the target raises: it violates the requirement, it leaves nothing to judge (CM-T1
#: or CM-T3 is about it), or the target does not support the call.
Raising = Literal["violates", "error", "unsupported"]

#: What a law may follow from: the formula of y, of its gradients, or of the new running statistics.
Theorem = Literal["", "formula", "gradients", "statistics"]

#: Requirements whose checks repeat a call many times, or make large calls. They cost the most, and say little about a
#: formula: a search for a cause or for a declaration asks them last, or not at all.
COSTLY = frozenset({"CM-P2", "CM-P3", "CM-S1"})

#: The modes of a batch_norm requirement that holds in both modes, and of one about inference.
BOTH = ("training", "inference")
INFERENCE = ("inference",)


@attrs.frozen
class Check:
    """One requirement's check."""

    requirement: str
    body: Body
    #: Whether it runs on a case.
    when: When
    raising: Raising = "error"
    #: The dtypes it is about. A run in none of them has no result for it.
    dtypes: tuple[str, ...] = ALL_DTYPES
    #: Whether it takes gradients of y: it is unsupported for a target without them.
    gradient: bool = False
    #: The modes of batch_norm in which the requirement means something.
    modes: tuple[str, ...] = BOTH
    #: Whether it is about the plain call itself: then a plain call that raises is a violation.
    plain: bool = False
    #: Whether it makes extra calls on a few cases only, so that it runs on all cases of a slow target too.
    calls_rarely: bool = False
    #: Whether it makes a dozen calls or more on each case, so that `quick` spares a framework some of its cases.
    calls_often: bool = False
    #: What it follows from. Where that holds, it cannot fail by more than the envelopes of its calls.
    of: Theorem = ""

    @property
    def is_of_16_bits(self) -> bool:
        """Whether it is about 16-bit data alone, such as data beside float32 parameters."""
        return "float32" not in self.dtypes


#: Every check by its requirement, in the order of registration.
CHECKS: dict[str, Check] = {}

#: For each of them the code of its body and the line that registers it: one function may make several bodies.
_MADE_AT: dict[str, tuple[CodeType, int]] = {}


def check(
    *requirements: str,
    every: When | None = None,
    when: When | None = None,
    raising: Raising = "error",
    dtypes: tuple[str, ...] = ALL_DTYPES,
    gradient: bool = False,
    modes: tuple[str, ...] | None = None,
    plain: bool = False,
    calls_rarely: bool = False,
    calls_often: bool = False,
    of: Theorem = "",
) -> Callable[[Body], Body]:
    """
    Register a function as the check of these requirements.

    They are the ids of one law on the pages of several operators, or CM- ids.

    It runs on the cases that name one of these ids (``requirements=`` of a case; one id stands for all that are
    registered together) and on every case for which ``every`` is true. ``when`` narrows both.

    By default a CM- requirement has a meaning in both modes of batch_norm, and a BN- requirement in training.
    ``plain``: where ``raising`` is "violates", a plain call that raises violates too, not only the changed one.
    ``calls_rarely``: it makes extra calls on few cases. ``calls_often``: it makes a dozen or more on each case. ``of``:
    the formula that this law follows from.
    """

    takes = _takes(frozenset(requirements), every, when)
    line = sys._getframe(1).f_lineno

    def register(body: Body) -> Body:
        # A file that is loaded twice, perhaps from another place, enters the same again.
        made_at = body.__code__, line
        for requirement in requirements:
            if _MADE_AT.setdefault(requirement, made_at) != made_at:
                raise ValueError(f"{requirement} has two checks")
            own = ("training",) if requirement.startswith("BN-") else BOTH
            CHECKS[requirement] = Check(
                requirement,
                body,
                takes,
                raising,
                dtypes=dtypes,
                gradient=gradient,
                modes=modes or own,
                plain=plain,
                calls_rarely=calls_rarely,
                calls_often=calls_often,
                of=of,
            )
        return body

    return register


def _takes(names: frozenset[str], every: When | None, when: When | None) -> When:
    def takes(case: Case) -> bool:
        named = not names.isdisjoint(case.requirements)
        return (named or (every is not None and every(case))) and (when is None or when(case))

    return takes


def _has_parameters(one: Operator) -> bool:
    return bool(one.parameters)


def _normalises(one: Operator) -> bool:
    return one.normalises


#: Which operators a requirement of the common page is about, if not all. CM-C requirements are about parts.
_ABOUT: Mapping[str, Callable[[Operator], bool]] = {
    "CM-S2": lambda one: one.groups is not Groups.CHANNEL,  # BN-E2 is about the empty batch
    "CM-V3": _has_parameters,
    "CM-N5": lambda one: one.composed,
    "CM-N6": _normalises,
    "CM-N8": lambda one: one.normalises and not one.composed,
    "CM-A1": _has_parameters,
    "CM-A2": _normalises,
    "CM-D1": _has_parameters,
    "CM-D2": _has_parameters,
    "CM-D3": _has_parameters,
    "CM-C8": lambda one: one.composed and not one.normalises,
}


def is_about(requirement: str, operator: str) -> bool:
    """Whether a requirement is about an operator: on the operator's page, or on the common one and concerning it."""
    record, prefix = OPERATORS[operator], prefix_of(requirement)
    if prefix != COMMON:
        return prefix == record.prefix
    return _ABOUT.get(requirement, lambda one: one.composed or not requirement.startswith("CM-C"))(record)


def recipes(*names: str) -> When:
    """Ordinary cases whose composed operator gets the parts of one of these recipes."""
    return lambda case: ordinary(case) and case.description is not None and case.description.recipe in names


def ordinary(case: Case) -> bool:
    """Training cases that every value requirement is judged on: those not made for some requirements alone."""
    return not case.only and in_training(case)


def of_any_size(case: Case) -> bool:
    """The ordinary cases, and those of the sweep of sizes."""
    return not case.only or "CM-S1" in case.requirements


def in_training(case: Case) -> bool:
    """Training cases of batch_norm, and all cases of operators without modes."""
    return case.settings.get("training", True)


def in_inference(case: Case) -> bool:
    """Inference cases of batch_norm that are not made for some requirements alone."""
    return not case.only and not in_training(case)


def laws_in_inference(case: Case) -> bool:
    """The inference cases that laws run on: those of BN-E3."""
    return in_inference(case) and "BN-E3" in case.requirements
