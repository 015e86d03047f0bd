"""
Runs on few cases: JAX compiles again for every shape, and that is nearly the whole cost of a run.

Each requirement runs on as few cases as requested, one by default; otherwise nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from normspec import Report
from normspec.adapters.target import Target
from normspec.conformance.engine.engine import Run
from normspec.conformance.requests.plan import Plan
from normspec.conformance.requests.profiles import Profile
from normspec.spec.operators import OPERATORS


class _Few(Run):
    """A run in which no binding runs on all cases."""

    regime: str

    def _run_subject(self, *arguments: Any, **options: Any) -> None:
        subject, cases, library, results = arguments[:4]
        wanted = [case for case in cases if any(regime.startswith(self.regime) for regime, _ in case.groups)]
        super()._run_subject(subject, wanted, library, results, self.plan.profile.secondary_bindings)


def run(
    target: Target,
    dtype: str,
    requirements: Iterable[str] | None = None,
    *,
    cases: int = 1,
    regime: str = "",
    generated: int = 0,
) -> Report:
    """
    Run the checks of some requirements, all by default, each on this many cases that have a group of this regime.

    The cases are those of the fixed deck, and as many generated ones.
    """
    plan = Plan(
        targets=(target,),
        dtypes=(dtype,),
        device="cpu",
        conventions={},
        profile=Profile("quick", generated, 0, 8, secondary_bindings=cases),
        seed=0,
        explain=False,
        requirements=None if requirements is None else frozenset(requirements),
    )
    found = _Few(plan)
    found.regime = regime
    return found.report()


def only(target: Target, name: str, *, without: str | None = None) -> Target:
    """The target with only one of its bindings, optionally without one of that binding's declarations."""
    (binding,) = (binding for binding in target.bindings if binding.name == name)
    kept = {key: value for key, value in binding.conventions.items() if key != without}
    return replace(target, bindings=(replace(binding, conventions=kept, known_violations=()),))


#: Requirements for a first look: results, gradients, statistics, purity, and results for a NaN.
PLAIN = (
    *("CM-T1", "CM-T2", "CM-T3", "CM-P1", "CM-P4", "CM-P5", "CM-N1", "CM-D1", "CM-D2", "CM-D3"),
    *(f"{one.prefix}-{place}" for one in OPERATORS.values() for place in ("F1", "F2", "G1", "G2")),
    *("BN-S1", "BN-S2", "BN-I1", "BN-I4", "BN-G4"),
)

#: The cases that show a convention, where not every one does.
SHOWING: Mapping[str, dict[str, Any]] = {
    "variance_algorithm": {"regime": "offset"},
}
