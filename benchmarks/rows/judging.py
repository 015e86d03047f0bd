"""Judges in this process, as the self-test does, without a worker or a command's report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rows.row import DTYPES


def run_of(
    targets: Sequence[Any],
    profile: str,
    *,
    dtypes: Sequence[str] = DTYPES,
    seed: int = 0,
    listener: Callable[[Any], None] | None = None,
    explain: bool = False,
) -> Any:
    """A run over open targets."""
    from normspec.conformance.engine.engine import Run
    from normspec.conformance.requests.plan import Plan
    from normspec.conformance.requests.profiles import profile_of

    return Run(Plan(targets, tuple(dtypes), "cpu", {}, profile_of(profile), seed, explain=explain), listener)


def sound(operator: str, most: int | None = None) -> list[Any]:
    """Sound functions of an operator as targets."""
    from normspec.conformance.requests.implementation_targets import implementation_target
    from normspec.conformance.sound import SOUND

    found: Iterable[Any] = [variant for variant in SOUND if variant.operator == operator][:most]
    return [implementation_target(variant.name, operator, variant.build()) for variant in found]
