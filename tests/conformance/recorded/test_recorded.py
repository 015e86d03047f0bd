"""What the judge does on a sound function stays as it is on record, until somebody means to change it."""

from __future__ import annotations

import pytest

from normspec.conformance.checks.catalogue import checks_of
from normspec.spec.operators import OPERATORS

from .record import DTYPES, different, recorded, written

RECORD = written()
#: What changes in one of them nearly always changes in float32.
_DTYPES = [pytest.param(one, marks=[] if one == "float32" else [pytest.mark.nightly]) for one in DTYPES]


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize("operator", OPERATORS)
def test_each_check_compares_what_it_compared_before(operator, dtype):
    """As many cases, findings and values, within the same envelopes; `record.py` says how to change the record."""
    now, before = recorded(operator, dtype), RECORD[operator][dtype]
    assert {name: (before.get(name), now.get(name)) for name in {**before, **now} if (
        name not in before or name not in now or different(now[name], before[name])
    )} == {}  # fmt: skip


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_check_is_on_record(operator):
    """A check that meets no case of `quick` would be held by nothing here."""
    found = {name for rows in RECORD[operator].values() for name in rows}
    assert {check.requirement for check in checks_of(operator)} - found == set()
