"""Operators with a mistake planted in one of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from normspec.adapters.targets import resolve
from normspec.conformance.faults import registered
from normspec.conformance.requests.implementation_targets import implementation_target
from normspec.studies.operators import Operators


@pytest.fixture
def planted() -> Callable[[str], Operators]:
    """For the name of a fault in the library: the operators, with that mistake in one of them."""

    def operators(name: str) -> Operators:
        (found,) = (one for one in registered() if one.name == name)
        return Operators(implementation_target(name, found.operator, found.build()), resolve("numpy"))

    return operators
