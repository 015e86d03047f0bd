"""Judges in this process, as the self-test does, without a worker or a command's report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rows.row import DTYPES


def _plan_and_run() -> tuple[Any, Any, Any]:
    """`Plan`, `profile_of` and `Run` of the version on the path."""
    try:
        from normspec.conformance.engine.engine import Run
        from normspec.conformance.requests.plan import Plan
        from normspec.conformance.requests.profiles import profile_of
    except ImportError:  # before `conformance` had rooms
        from normspec.conformance.engine import Plan, Run  # pyright: ignore[reportAttributeAccessIssue]
        from normspec.conformance.profiles import profile_of
    return Plan, profile_of, Run


def target_of(name: str, operator: str, implementation: Any) -> Any:
    """A sound function or a fault as a target."""
    try:
        from normspec.conformance.requests.implementation_targets import implementation_target
    except ImportError:  # before `conformance` had rooms
        from normspec.conformance.specimens import target_of as implementation_target
    return implementation_target(name, operator, implementation)


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
    plan, profile_of, run = _plan_and_run()
    return run(plan(targets, tuple(dtypes), "cpu", {}, profile_of(profile), seed, explain=explain), listener)


def sound(operator: str, most: int | None = None) -> list[Any]:
    """Sound functions of an operator as targets."""
    from normspec.conformance.sound import SOUND

    found: Iterable[Any] = [variant for variant in SOUND if variant.operator == operator][:most]
    return [target_of(variant.name, operator, variant.build()) for variant in found]
