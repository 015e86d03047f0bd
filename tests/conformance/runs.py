"""Runs of the suite for tests: small plans over targets, faults, sound variants and functions made on the spot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pytest

from normspec import Report, Result
from normspec.adapters.binding import DERIVATIVES, Binding
from normspec.adapters.numpy import BRIDGE
from normspec.adapters.target import Target
from normspec.conformance.diagnosis.explained import explained
from normspec.conformance.engine.engine import Run
from normspec.conformance.engine.progress import Listener
from normspec.conformance.faults import FAULTS, Fault
from normspec.conformance.judging.subject import Subject
from normspec.conformance.kept.cache_folder import truths_store
from normspec.conformance.requests.implementation_targets import implementation_target
from normspec.conformance.requests.plan import Plan
from normspec.conformance.requests.profiles import profile_of
from normspec.conformance.sound import DECLARED, SOUND, Sound

#: The operators defined by their groups only: the others take parts.
NORMALISATIONS = ("layer_norm", "batch_norm")
DTYPES = ("float16", "bfloat16", "float32", "float64")

FAULT: Mapping[str, Fault] = {fault.name: fault for fault in FAULTS}
VARIANT: Mapping[str, Sound] = {variant.name: variant for variant in (*SOUND, *DECLARED)}


def run(
    target: Target,
    *,
    dtypes: tuple[str, ...] | None = ("float32",),
    profile: str = "quick",
    seed: int = 0,
    requirements: Iterable[str] | None = None,
    required: Iterable[str] = (),
    explain: bool = False,
    conventions: Mapping[str, str] | None = None,
    forward_only: bool = False,
    mode: str = "",
    listener: Listener | None = None,
    defects: bool = False,
) -> Report:
    """
    Run the checks of some requirements, all by default, against a target; violations are shrunk if ``explain``.

    ``required``: the requirements whose violation fails, whatever their level. Unless ``defects``, nothing may have met
    a defect of normspec: a verdict can hide one, since a violation stands even if its shrinking failed.
    """
    plan = Plan(
        targets=(target,),
        dtypes=dtypes,
        device="cpu",
        conventions=dict(conventions or {}),
        profile=profile_of(profile),
        seed=seed,
        forward_only=forward_only,
        explain=explain,
        requirements=None if requirements is None else frozenset(requirements),
        required=frozenset(required),
        mode=mode,
        store=truths_store(""),
    )
    made = Run(plan, listener)
    report = explained(made, made.report())
    met = "\n".join(one.traceback for one in report.results if one.traceback)
    assert defects or not met, met
    return report


def others_at_night(values: Iterable[Any], now: Collection[Any]) -> list[Any]:
    """
    Values of a parameter, tuples for several at once: each run has those of ``now``, and `tox -e nightly` the others.

    The others are more of the same kind: what breaks one of them nearly always breaks one of ``now`` too.
    """
    return [
        pytest.param(*one if isinstance(one, tuple) else (one,), marks=() if one in now else pytest.mark.nightly)
        for one in values
    ]


def specimen(made: Fault | Sound, *, declared: bool = True) -> Target:
    """A fault or a sound variant as a target, with or without the conventions that it declares."""
    conventions = getattr(made, "conventions", {}) if declared else {}
    return implementation_target(made.name, made.operator, made.build(), conventions)


def subject_of(name: str) -> Subject:
    """A sound variant in float32, as a check receives it."""
    target = specimen(VARIANT[name])
    return Subject(target, target.bindings[0], "float32")


def function(operator: str, call: Callable[..., Any], **derivatives: Callable[..., Any]) -> Target:
    """A function on NumPy arrays, and its derivatives "vjp", "jvp" and so on, as a target."""
    return Target("own", "numpy", np.__version__, BRIDGE, (Binding(operator, "own", call, derivatives),))


def variant_function(name: str, change: Callable[..., Any]) -> Target:
    """A sound variant whose call goes through ``change(call, x, *arguments, **settings)``; gradients stay right."""
    made = VARIANT[name].build()

    def call(*arguments: Any, **settings: Any) -> Any:
        return change(made.call, *arguments, **settings)

    derivatives = {name: getattr(made, name) for name in DERIVATIVES if getattr(made, name) is not None}
    return function(VARIANT[name].operator, call, **derivatives)


def result(report: Report, requirement: str, dtype: str = "float32") -> Result:
    """The one result of a report about a requirement in a dtype."""
    (found,) = (r for r in report.results if (r.requirement, r.dtype) == (requirement, dtype))
    return found


def verdicts(report: Report) -> dict[str, str]:
    """Each requirement's verdict, of a report in one dtype of one binding."""
    return {r.requirement: r.verdict.value for r in report.results}
