"""Who judges changes no verdict in the library: several processes and a cluster report what one process does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from distributed import LocalCluster

from normspec.conformance.faults import FAULTS, Fault
from normspec.conformance.kept.cache_folder import NO_CACHE
from normspec.conformance.requests.request import Request
from normspec.conformance.running import choice
from normspec.conformance.running.choice import executor
from normspec.conformance.running.judging import together
from normspec.conformance.sound import DECLARED, SOUND
from normspec.spec.operators import OPERATORS

#: Functions in one run; each has processes of its own.
_TOGETHER = 12

#: The functions of a run, each with its derivatives beside it.
_FILE = """
import numpy

from normspec.adapters.binding import DERIVATIVES
from normspec.conformance.faults import FAULTS
from normspec.conformance.sound import DECLARED, SOUND

for place, name in {names!r}.items():
    (specimen,) = [one for one in (*FAULTS, *SOUND, *DECLARED) if one.name == name]
    built = specimen.build()
    globals()[place] = built.call
    globals()[place + "_conventions"] = dict(getattr(specimen, "conventions", {{}}))
    globals().update({{f"{{place}}_{{one}}": getattr(built, one) for one in DERIVATIVES if getattr(built, one)}})
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of two workers in their own processes."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, worker_dashboard_address=None
    ) as found:
        yield found.scheduler_address


def told(targets: tuple[str, ...], operator: str, **where: Any) -> dict[str, Any]:
    """The merged report, without the causes of violations, which follow from it and take most of the time."""
    request = Request(
        targets=targets, op=(operator,), framework=None, dtypes=("float32", "float16"), device="cpu",
        conventions={}, profile="quick", seed=0, slow=True, cache=NO_CACHE,
    )  # fmt: skip
    with executor(request, **where) as judge:
        reports = [report for _, report in judge.judged(list(judge.units([0])))]
        return json.loads(together(request, judge.subjects(), reports).to_json())


def _remembers(fault: Fault) -> bool:
    return fault.kind == "state" or fault.requirement.startswith("CM-P")


def chunks(operator: str, *, remembers: bool) -> Iterator[dict[str, str]]:
    """Names of functions that remember earlier calls, or of those that do not, by their names in a file."""
    library = [one for one in (*FAULTS, *SOUND, *DECLARED) if one.operator == operator]
    names = iter([one.name for one in library if (isinstance(one, Fault) and _remembers(one)) is remembers])
    while some := {f"function_{place}": name for place, name in enumerate(islice(names, _TOGETHER))}:
        yield some


def violating(found: dict[str, Any]) -> set[str]:
    """The functions with a violation or advice."""
    return {result["target"] for result in found["results"] if result["verdict"] in ("fail", "advice")}


@pytest.mark.campaign
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("operator", OPERATORS)
def test_no_verdict_of_the_library_depends_on_who_judges(operator, cluster, tmp_path, monkeypatch):
    """
    Known mistakes and sound functions: one process, two, four, and two workers of a cluster.

    A function that remembers earlier calls is found by all. What it then returns depends on the calls of its process.
    """
    monkeypatch.setattr(choice, "cores", lambda: 4)
    kinds = [(some, remembers) for remembers in (False, True) for some in chunks(operator, remembers=remembers)]
    for number, (some, remembers) in enumerate(kinds):
        file = tmp_path / f"some_{number}.py"
        file.write_text(_FILE.format(names=some))
        targets = tuple(f"{file}:{place}" for place in some)
        alone = told(targets, operator, jobs=1)
        for where in ({"jobs": 2}, {"jobs": 4}, {"cluster": cluster}):
            found = told(targets, operator, **where)
            if remembers:
                assert violating(found) == violating(alone), (where, some)
            else:
                assert found == alone, (where, some)
