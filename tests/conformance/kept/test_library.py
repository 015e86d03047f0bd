"""Kept truths change no verdict in the library, neither on a known mistake nor on a sound function."""

from __future__ import annotations

import json
from typing import Any

import pytest

from normspec.conformance.engine.engine import Run
from normspec.conformance.faults import FAULTS, Fault
from normspec.conformance.kept.cache_folder import truths_store
from normspec.conformance.kept.store import Store
from normspec.conformance.requests.implementation_targets import implementation_target
from normspec.conformance.requests.plan import Plan
from normspec.conformance.requests.profiles import profile_of
from normspec.conformance.sound import DECLARED, SOUND, Sound
from normspec.spec.operators import OPERATORS

from .damage import damage

LIBRARY: tuple[Fault | Sound, ...] = (*FAULTS, *SOUND, *DECLARED)


def told(specimen: Fault | Sound, store: Store | None) -> dict[str, Any]:
    """The report on a function of the library in float32, without the time it took."""
    conventions = dict(getattr(specimen, "conventions", {}))
    plan = Plan(
        targets=(implementation_target(specimen.name, specimen.operator, specimen.build(), conventions),),
        dtypes=("float32",),
        device="cpu",
        conventions={},
        profile=profile_of("quick"),
        seed=0,
        explain=False,
        store=store,
    )
    found = json.loads(Run(plan).report().to_json())
    found.pop("seconds")
    return found


@pytest.mark.campaign
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("operator", OPERATORS)
def test_no_verdict_of_the_library_depends_on_what_is_kept(operator, tmp_path):
    """Each report is the same with nothing kept, a cold, a warm and a damaged store."""
    specimens = [one for one in LIBRARY if one.operator == operator]
    alone = [told(one, None) for one in specimens]
    store = truths_store(str(tmp_path))
    assert specimens and store is not None
    assert [told(one, store) for one in specimens] == alone
    store.hits = 0
    assert [told(one, store) for one in specimens] == alone
    assert store.hits > 100
    damage(tmp_path, 200)
    store.misses = 0
    assert [told(one, store) for one in specimens] == alone
    assert store.misses >= 150  # several runs of one case share an entry
