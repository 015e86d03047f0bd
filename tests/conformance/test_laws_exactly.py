"""No law accuses an implementation that returns the exact result, rounded once to float64."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from normspec.conformance.cases.case import Case, build
from normspec.conformance.cases.deck import LAWS, SHIFTS, deck
from normspec.conformance.checks.catalogue import checks_of
from normspec.conformance.engine.tally import findings
from normspec.conformance.judging.subject import Subject
from normspec.spec.operators import OPERATORS

from .rounded import correctly_rounded
from .runs import others_at_night

pytestmark = pytest.mark.exhaustive

#: Every law that is about groups.
NAMED = LAWS | {*SHIFTS, "LN-L13"}
EPS = (1.0, 0.5, 1e-5, 2.0**-20, 1e-12)


def group(random: np.random.Generator, n: int) -> np.ndarray:
    """One group of n values: of one number, of two, of one far from the others, on an offset, of any size."""
    kind = random.integers(7)
    a, b = random.standard_normal(2) * 2.0 ** random.integers(-20, 20)
    values = np.full(n, a)
    if kind == 1:
        values[random.integers(n)] = b
    elif kind == 2:
        values[::2] = b
    elif kind == 3:
        values = np.where(np.arange(n) == random.integers(n), b, 0.0)
    elif kind == 4:
        values = a + 2.0**-40 * abs(a) * random.integers(-4, 5, n)
    elif kind == 5:
        values = random.integers(-8, 9, n).astype(float)
    elif kind == 6:
        values = a * random.standard_normal(n)
    return values


def cotangent(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Ones, small integers or anything."""
    kinds = (np.ones(shape), random.integers(-3, 4, shape).astype(float), random.standard_normal(shape))
    return kinds[random.integers(3)]


def normalisations(operator: str, count: int) -> Iterator[Case]:
    """Cases of an operator that normalises."""
    random = np.random.default_rng(20)
    for _ in range(count):
        n, groups = int(random.choice([1, 2, 2, 3, 3, 4, 5, 8, 17])), int(random.integers(2, 5))
        if operator == "batch_norm":
            n = max(n, 2)
        x = np.stack([group(random, n) for _ in range(groups)])
        record, size = OPERATORS[operator], n if "axes" in OPERATORS[operator].settings else groups
        settings: dict[str, Any] = {"eps": float(random.choice(EPS))}
        if "axes" in record.settings:
            settings["axes"] = (-1,)
        else:
            settings |= {"momentum": 0.3, "training": True, "channel_axis": 1, "groups": groups}
            x = x.T.copy() if record.statistics else x[None]
        gamma, beta = random.standard_normal(size), random.integers(-3, 4, size).astype(float)
        if random.integers(2):
            gamma, beta = np.ones(size), np.zeros(size)
        given = {
            "gamma": gamma,
            "beta": beta,
            "running_mean": random.standard_normal(size),
            "running_var": np.ones(size),
        }
        inputs: dict[str, np.ndarray | None] = {"x": x}
        inputs |= {name: value for name, value in given.items() if name in record.arguments}
        settings = {name: settings[name] for name in record.settings}
        yield Case(operator, inputs, settings, cotangent(random, inputs["x"].shape), NAMED)  # type: ignore[union-attr]


def composed(operator: str) -> Iterator[Case]:
    """The deck's cases of a composed operator; where laws are judged on groups, also cases with their own groups."""
    random = np.random.default_rng(21)
    for description in deck(operator, "quick", 0):
        if description.only or "RS-G4" in description.requirements:
            continue
        case = build(description, "float64")
        yield case
        shape = case.x.shape
        if case.requirements & {"CM-P4", "PO-L1"}:
            rows = [group(random, shape[-1]) for _ in range(math.prod(shape[:-1]))]
            yield case.replace(x=np.stack(rows).reshape(shape), g=cotangent(random, shape))


@pytest.mark.parametrize("operator", others_at_night(OPERATORS, ["layer_norm", "mhc"]))
def test_the_exact_result_rounded_once_violates_nothing(operator: str) -> None:
    """The exact result, rounded to float64, passes every check on random and degenerate groups."""
    target = correctly_rounded(operator)
    subject = Subject(target, target.bindings[0], "float64")
    cases = composed(operator) if OPERATORS[operator].composed else normalisations(operator, 30)
    # The common page is about calls; the laws about values are on the operator's own page.
    checks = [one for one in checks_of(operator) if not one.requirement.startswith("CM-") and "float64" in one.dtypes]
    judged: dict[str, int] = {}
    with np.errstate(all="ignore"):
        for case in cases:
            for check in checks:
                for finding in findings(check, subject, case) if check.when(case) else ():
                    judged[check.requirement] = judged.get(check.requirement, 0) + finding.judged
                    assert not (finding.violated and finding.judged), (check.requirement, finding)
    laws = {check.requirement for check in checks if "-L" in check.requirement}
    assert laws <= {requirement for requirement, count in judged.items() if count}
