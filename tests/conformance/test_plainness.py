"""How telling a case is: every case that runs can be ranked, and the plainest have few values."""

from __future__ import annotations

import pytest

from normspec.conformance.cases.plain import oddness, plainer
from normspec.conformance.requests.profiles import profile_of
from normspec.spec.operators import OPERATORS


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_case_can_be_ranked_and_simplified(operator):
    """A violation on any case of any profile is shrunk, whatever its parameters and its cotangent."""
    kinds = {}
    for description in profile_of("standard").cases(operator, 0):
        kinds.setdefault((description.gamma, description.beta, description.cotangent), description)
    for description in kinds.values():
        assert len(oddness(description)) == len(oddness(next(plainer(description))))
