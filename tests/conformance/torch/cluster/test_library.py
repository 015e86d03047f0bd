"""Who judges changes no verdict in the library: several processes and a cluster report what one process does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from distributed import LocalCluster

import normspec
from normspec.conformance.faults import FAULTS
from normspec.conformance.running import choice
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
    """The report, without the time it took."""
    report = normspec.check(targets, op=operator, profile="quick", dtypes=["float32", "float16"], slow=True, **where)
    found = json.loads(report.to_json())
    del found["seconds"]
    return found


@pytest.mark.campaign
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("operator", OPERATORS)
def test_no_verdict_of_the_library_depends_on_who_judges(operator, cluster, tmp_path, monkeypatch):
    """Known mistakes and sound functions: one process, two, four, and two workers of a cluster."""
    monkeypatch.setattr(choice, "cores", lambda: 4)
    names = iter([one.name for one in (*FAULTS, *SOUND, *DECLARED) if one.operator == operator])
    number = 0
    while some := {f"function_{place}": name for place, name in enumerate(islice(names, _TOGETHER))}:
        file = Path(tmp_path / f"some_{number}.py")
        file.write_text(_FILE.format(names=some))
        targets, number = tuple(f"{file}:{place}" for place in some), number + 1
        alone = told(targets, operator, jobs=1)
        for where in ({"jobs": 2}, {"jobs": 4}, {"cluster": cluster}):
            assert told(targets, operator, **where) == alone, (where, some)
    assert number
